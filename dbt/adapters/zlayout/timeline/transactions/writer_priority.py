"""Writer priority: maintenance yields to user writes, so that neither fails because both started at the same moment.

Maintenance announces that it is about to commit, then looks for running user writes. A user write announces that it
starts, then looks for maintenance that is about to commit. One of the two sees the other: maintenance gives up, or the
user write waits the short time that the commit takes and starts from its version.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.zlayout.errors import ConflictError
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.conflicts import Kind, kind_of
from dbt.adapters.zlayout.timeline.transactions.pending import (
    Liveness,
    Pending,
    StateFile,
    list_pending,
    list_state_files,
    liveness,
    pending_in,
)

_WAIT_SECONDS = 0.05
_WAITS = 200


def yield_to_writers(timeline: Timeline, operation: str, instant: str) -> None:
    """Checks that no user write is running that has read the files of its base.

    Args:
        timeline: The table's timeline.
        operation: The maintenance operation.
        instant: Its instant; its plan must already say that it is committing.

    Raises:
        ConflictError: One is running; it would fail on its own input if the maintenance were committed.
    """
    for pending in list_pending(timeline.store):
        plan = pending.plan(timeline.store)
        if pending.instant == instant or plan is None:
            continue
        if kind_of(plan.operation, removes_files=False) not in {Kind.OVERWRITE, Kind.REWRITE}:
            continue
        if operation == Operation.COMPACTION and pending.action is Action.DELTACOMMIT:
            continue  # it only adds files, and compaction keeps rows in their file groups
        if liveness(pending, timeline.store, timeline.runtime) is Liveness.LIVE:
            raise ConflictError(
                f"{operation} {instant} gives way to {plan.operation} {pending.instant}, which is "
                f"running on {plan.writer.host} (process {plan.writer.pid}); run it again when that has ended"
            )


def wait_for_maintenance(timeline: Timeline, instant: str, files: Sequence[StateFile]) -> None:
    """Waits while maintenance is about to commit, for ten seconds at most; a commit takes a fraction of a second.

    Args:
        timeline: The table's timeline.
        instant: Of the user write that starts.
        files: The state files, listed after the write's requested file was created.
    """
    for _ in range(_WAITS):
        if not _is_committing(timeline, instant, pending_in(files)):
            return
        timeline.runtime.sleep(_WAIT_SECONDS)
        files = list_state_files(timeline.store)


def _is_committing(timeline: Timeline, instant: str, running: Sequence[Pending]) -> bool:
    for pending in running:
        if pending.instant == instant:
            continue
        plan = pending.plan(timeline.store)
        if (
            plan is not None
            and plan.committing
            and liveness(pending, timeline.store, timeline.runtime) is Liveness.LIVE
        ):
            return True
    return False
