"""Who goes first: maintenance yields to user writes, and a write can wait for those that it would conflict with.

Maintenance and a write must not fail because both started at the same moment.

Maintenance announces that it is about to commit, then looks for running user writes. A user write announces that it
starts, then looks for maintenance that is about to commit. One of the two sees the other: maintenance gives up, or the
user write waits the short time that the commit takes and starts from its version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dbt.adapters.zlayout.errors import ConflictError
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.conflicts import DECISIONS, Decision, Kind, kind_of
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
_LONG_WAIT_SECONDS = 0.25
_SILENT_SECONDS = 10
_WAITS = 200


def yield_to_writers(timeline: Timeline, operation: str, instant: str) -> None:
    """Raises an error if a user write is running that depends on files of its base.

    The plan of ``instant`` must already say that it is committing.

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

    The state files were listed after the write's requested file was created.
    """
    for _ in range(_WAITS):
        if not _is_committing(timeline, instant, pending_in(files)):
            return
        timeline.runtime.sleep(_WAIT_SECONDS)
        files = list_state_files(timeline.store)


def wait_for_writers(
    timeline: Timeline, operation: str, tell: Callable[[str], None], check: Callable[[], None] = lambda: None
) -> None:
    """Waits for the user writes that are running now and that a write would conflict with. Not for later ones.

    A write that waits has begun nothing, so two writes never wait for each other. Those that start at the same moment
    do not wait, and one of them runs into a conflict.

    Args:
        timeline: The table's log.
        operation: The write that waits.
        tell: Receives a line for each write that is waited for, and one every ten seconds while it takes longer.
        check: Called several times a second. The wait ends if it raises.
    """
    mine = kind_of(operation, removes_files=False)
    for pending in list_pending(timeline.store):
        plan = pending.plan(timeline.store)
        if plan is None:
            continue
        theirs = kind_of(plan.operation, removes_files=False)
        if theirs is Kind.MAINTENANCE or DECISIONS[mine, theirs] is Decision.REBASE:
            continue
        what = f"the {plan.operation} {pending.instant} of process {plan.writer.pid} on {plan.writer.host}"
        begun, lines = timeline.runtime.now_ms(), 0
        while _is_live(timeline, pending):
            seconds = (timeline.runtime.now_ms() - begun) / 1000
            if not lines:
                tell(f"waits for {what}, which is writing this table")
            elif seconds >= lines * _SILENT_SECONDS:
                tell(f"still waits for {what}, {seconds:,.0f} s")
            lines = 1 + int(seconds // _SILENT_SECONDS)
            check()
            timeline.runtime.sleep(_LONG_WAIT_SECONDS)


def _is_live(timeline: Timeline, pending: Pending) -> bool:
    """Returns whether a transaction is still open, and its writer is alive.

    A silent writer on another machine counts as dead soon. If it is not, the two writes meet a conflict.
    """
    now = [each for each in list_pending(timeline.store) if each.instant == pending.instant]
    impatient = timeline.runtime.with_least_patience()
    return any(liveness(each, timeline.store, impatient) is Liveness.LIVE for each in now)


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
