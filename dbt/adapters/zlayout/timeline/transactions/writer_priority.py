"""Maintenance gives way to user writes: neither makes the other fail because both began at the same moment.

Maintenance says that it is about to commit, then looks for user writes under way; a user write says that it begins,
then looks for maintenance about to commit. One of the two sees the other: maintenance gives up, or the user write waits
the moment that the commit takes and starts from its version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt.adapters.zlayout.errors import ConflictError
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.transactions.conflicts import Kind, kind_of
from dbt.adapters.zlayout.timeline.transactions.pending import Liveness, list_pending, liveness

if TYPE_CHECKING:
    from dbt.adapters.zlayout.timeline.timeline import Timeline

_WAIT_SECONDS = 0.05
_WAITS = 200


def yield_to_writers(timeline: Timeline, operation: str, instant: str) -> None:
    """Return if no user write is under way that looked at the files of its base.

    Args:
        timeline: The table's timeline.
        operation: What the maintenance is called.
        instant: Its instant; its plan says by now that it is committing.

    Raises:
        ConflictError: One is; it would fail on its own input if the maintenance landed.
    """
    for pending in list_pending(timeline.store):
        plan = pending.plan(timeline.store)
        if pending.instant == instant or plan is None:
            continue
        if kind_of(plan.operation, removes_files=False) not in {Kind.OVERWRITE, Kind.REWRITE}:
            continue
        if operation == Operation.COMPACTION and pending.action is Action.DELTACOMMIT:
            continue  # it only adds files, and a compaction leaves rows in their file groups
        if liveness(pending, timeline.store, timeline.runtime) is Liveness.LIVE:
            raise ConflictError(
                f"{operation} {instant} gives way to {plan.operation} {pending.instant}, which is under "
                f"way on {plan.writer.host} (process {plan.writer.pid}); run it again when that has ended"
            )


def wait_for_maintenance(timeline: Timeline, instant: str) -> None:
    """Wait while maintenance is about to commit, ten seconds at most: a commit takes a fraction of one.

    Args:
        timeline: The table's timeline.
        instant: Of the user write that begins; its requested file is there.
    """
    for _ in range(_WAITS):
        if not _is_committing(timeline, instant):
            return
        timeline.runtime.sleep(_WAIT_SECONDS)


def _is_committing(timeline: Timeline, instant: str) -> bool:
    for pending in list_pending(timeline.store):
        if pending.instant == instant:
            continue
        plan = pending.plan(timeline.store)
        if plan is not None and plan.committing:
            return liveness(pending, timeline.store, timeline.runtime) is Liveness.LIVE
    return False
