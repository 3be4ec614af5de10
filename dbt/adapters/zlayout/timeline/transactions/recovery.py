"""Recovery: the next writer finishes the transactions of dead writers, or rolls them back completely."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import AlreadyExistsError
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation, State
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.instant import next_instant
from dbt.adapters.zlayout.timeline.files.naming import (
    SPARK_MANIFEST_FOLDER,
    STAGING_FOLDER,
    TIMELINE_FOLDER,
    instants_in_name,
    is_scratch,
    staged_under,
)
from dbt.adapters.zlayout.timeline.files.table_file import without_nested_tables
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.pending import (
    Liveness,
    Pending,
    abandon,
    list_pending,
    list_state_files,
    liveness,
)


@dataclass(frozen=True)
class Recovered:
    """The result of a recovery.

    Attributes:
        rolled_back: Instants that were rolled back completely.
        finished: Instants that were committed and only had state files left.
    """

    rolled_back: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()


def recover(timeline: Timeline) -> Recovered:
    """Finishes or rolls back the transactions of dead writers; live ones are left alone.

    Writers call this, readers never do. Several may call it at once, and it may be interrupted anywhere.
    """
    store, runtime = timeline.store, timeline.runtime
    dead: list[Pending] = []
    rolled_back: list[str] = []
    finished: list[str] = []
    states = [(pending, liveness(pending, store, runtime)) for pending in list_pending(store)]
    living = {pending.instant for pending, state in states if state is Liveness.LIVE}
    for pending, state in states:
        # If two share an instant, one has written nothing yet; which one is decided when the live one has ended.
        if pending.instant in living:
            continue
        plan = pending.plan(store)
        # A request that a dead process sent to a cloud store may still arrive: only the log can prevent that.
        fence = state is Liveness.SILENT or may_arrive_late(store)
        settled = is_committed(timeline, pending.instant, plan.base_version if plan else None, fence=fence)
        if settled is None:
            continue
        (finished if settled else rolled_back).append(pending.instant)
        dead.append(pending)
    if rolled_back:
        withdraw(store, [pending for pending in dead if pending.instant in rolled_back])
        delete_written(timeline, rolled_back)
    for pending in dead:
        if pending.instant in rolled_back:
            abandon(store, pending.instant, pending.action)
    delete_state_files(store, dead)
    _retire_abandoned(timeline)
    if dead:
        before_ms = runtime.now_ms() - int(1000 * runtime.dead_after_seconds)
        stored = store.list(STAGING_FOLDER, recursive=True)
        store.delete(file.path for file in stored if is_scratch(file.path) and file.modified_ms < before_ms)
    return Recovered(tuple(rolled_back), tuple(finished))


def may_arrive_late(store: Store) -> bool:
    """Returns whether a write that was reported as failed may still happen, which is the case over a network."""
    return store.local_path("") is None


def withdraw(store: Store, pending: Iterable[Pending]) -> None:
    """Announces that transactions accept no more files: whoever still writes one sees this and deletes it."""
    store.delete(path for found in pending for path in found.paths if path.endswith(State.INFLIGHT.value))


def delete_written(timeline: Timeline, instants: Collection[str]) -> None:
    """Deletes every file that carries one of these instants and is not listed by the table."""
    store = timeline.store
    stored = without_nested_tables(store.list("", recursive=True))
    dead = frozenset(instants)
    written = [file.path for file in stored if _written_under(file.path, dead)]
    if not written:
        return
    if (newest := timeline.newest()) is not None:
        # Adopted files may have any name.
        paths = newest.files["path"]
        listed = set(paths.filter(pc.is_in(paths, value_set=pa.array(written, pa.string()))).to_pylist())
        written = [path for path in written if path not in listed]
    store.delete(written)


def delete_state_files(store: Store, pending: Iterable[Pending]) -> None:
    """Deletes state files, the inflight file first, so that an interruption leaves a recognisable state."""
    for found in pending:
        store.delete(reversed(found.paths))


def is_committed(timeline: Timeline, instant: str, base_version: int | None, *, fence: bool) -> bool | None:
    """Returns whether an instant is in the log.

    Args:
        base_version: The version that its transaction started from, None if there was none or it is not known.
        fence: Whether its writer may still be about to commit: then a version is added that forbids it.

    Returns:
        True if it is committed, False if it is not and never will be, None if that cannot be decided yet (a fence
        needs a table that has a version).
    """
    # Without a plan the base is unknown, so the search covers the whole log.
    seen = -1 if base_version is None else base_version
    while True:
        latest = timeline.latest_version()
        if latest is None:
            return None if fence else False
        for version in range(seen + 1, latest + 1):
            entry = timeline.read(version)
            if entry.aborts == instant:
                return False
            if entry.instant == instant:
                return True
        seen = latest
        if not fence:
            return False
        head = timeline.snapshot(latest)
        try:
            timeline.append(_fence(timeline, head, instant), head)
        except AlreadyExistsError:
            continue
        return False


def _fence(timeline: Timeline, head: Snapshot, instant: str) -> Commit:
    """Returns a version that changes nothing, except that the instant can never be committed after it."""
    now_ms = timeline.runtime.now_ms()
    own = next_instant(max(head.last_instant, instant), now_ms)
    step = {
        "version": head.version + 1,
        "instant": own,
        "action": Action.ROLLBACK,
        "operation": Operation.RECOVERY.value,
        "committed_ms": max(now_ms, head.committed_ms),
        "last_instant": own,
    }
    nothing = DataFiles.empty(head.partition_by)
    return Commit(**{**head.state(), **step}, adds=nothing, removes=(), aborts=instant)


def _retire_abandoned(timeline: Timeline) -> None:
    # Every new instant is higher than all instants in the log.
    abandoned = [file for file in list_state_files(timeline.store) if file.state is State.ABANDONED]
    if abandoned and timeline.latest_version() is not None:
        last_instant = timeline.snapshot().last_instant
        timeline.store.delete(file.path for file in abandoned if file.instant <= last_instant)


def _written_under(path: str, instants: frozenset[str]) -> bool:
    if path.startswith((TIMELINE_FOLDER + "/", SPARK_MANIFEST_FOLDER + "/")):
        return False
    if path.startswith(STAGING_FOLDER + "/"):
        return staged_under(path) in instants
    return not instants.isdisjoint(instants_in_name(path))
