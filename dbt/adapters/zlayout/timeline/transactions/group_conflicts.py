"""Conflicts between logs and file groups: the additional cases of merge-on-read tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.file_slices import groups_with_logs
from dbt.adapters.zlayout.timeline.transactions.conflicts import Attempt, conflict

if TYPE_CHECKING:
    from dbt.adapters.zlayout.timeline.timeline import Timeline


def check_logs_stay(timeline: Timeline, attempt: Attempt, winner: Commit) -> None:
    """Check that no log is added to a file group whose rows a clustering moves to other groups.

    A compaction keeps rows in their group, so logs may come before and after it.

    Args:
        timeline: The table's timeline.
        attempt: The commit.
        winner: A version that it did not know when it started.

    Raises:
        ConflictError: One is: its rows and those that they replace would be in different groups.
    """
    if winner.operation == Operation.CLUSTERING and attempt.log_groups:
        if not attempt.log_groups.isdisjoint(_groups_of(timeline, winner.removes, winner.version - 1)):
            raise conflict(attempt, winner, "it rewrote files that this commit adds logs to")
    elif attempt.operation == Operation.CLUSTERING and attempt.base_version is not None:
        logged = groups_with_logs(winner.adds)
        if logged and not logged.isdisjoint(_groups_of(timeline, attempt.removes, attempt.base_version)):
            raise conflict(attempt, winner, "it added logs to files that this commit rewrites")


def _groups_of(timeline: Timeline, paths: Iterable[str], version: int) -> frozenset[str]:
    files = timeline.snapshot(version).files
    found = files.filter(pc.is_in(files["path"], value_set=pa.array(list(paths), pa.string())))
    return frozenset(found["group"].to_pylist())
