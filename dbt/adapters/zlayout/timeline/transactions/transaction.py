"""Transactions: requested, then inflight, then committed by a single create-if-absent or rolled back completely."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from types import TracebackType
from typing import TypeVar

from dbt.adapters.zlayout.errors import (
    AlreadyExistsError,
    ConflictError,
    StoreError,
    TableNotFoundError,
    ZlayoutError,
)
from dbt.adapters.zlayout.timeline.files.action import Action, State
from dbt.adapters.zlayout.timeline.files.instant import next_instant
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.file_slices import groups_with_logs
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions import recovery
from dbt.adapters.zlayout.timeline.transactions.change import Change, IndexPlan, Signature, changes_shape, entry_after
from dbt.adapters.zlayout.timeline.transactions.conflicts import (
    Attempt,
    Kind,
    check_logs_stay,
    check_may_follow,
    kind_of,
)
from dbt.adapters.zlayout.timeline.transactions.pending import (
    Heartbeat,
    StateContent,
    StateFile,
    list_pending,
    list_state_files,
    mark_closed,
    mark_open,
    state_path,
)
from dbt.adapters.zlayout.timeline.transactions.writer_priority import wait_for_maintenance, yield_to_writers

_T = TypeVar("_T")
_COMMIT_TRIES = 20
_BEGIN_TRIES = 50
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 2.0


class Transaction:
    """Work on the table under one instant; use it as a context manager.

    Leaving it without a commit, with or without an error, deletes every file that carries the instant.

    Attributes:
        instant: Its instant; every file that it writes carries it.
        operation: What the user asked for.
        base: The snapshot that it started from, None for a table without versions.
        committed: The log entry, once there is one.
    """

    def __init__(self, timeline: Timeline, instant: str, action: Action, operation: str) -> None:
        self.instant = instant
        self.action = action
        self.operation = operation
        self.base: Snapshot | None = None
        self.committed: Commit | None = None
        self._timeline = timeline
        self._store = timeline.store
        self._fate_unknown = False
        self._plan: StateContent | None = None
        self._abandoned: list[str] = []
        self._heartbeat: Heartbeat | None = None

    def known_base(self, subject: object) -> Snapshot:
        """Returns the snapshot that the transaction started from.

        Args:
            subject: The table, for the error.

        Raises:
            TableNotFoundError: The table has no version.
        """
        if self.base is None:
            raise TableNotFoundError(f"{subject} has no version yet; build its model first")
        return self.base

    @classmethod
    def begin(cls, timeline: Timeline, action: Action, operation: str, reads_version: int | None = None) -> Transaction:
        """Reserves a free instant, writes the requested and the inflight file, and reads the base.

        Cleans that start later keep the files of ``reads_version``, which the transaction needs as well as its base.

        Raises:
            ConflictError: No free instant was found in many tries.
        """
        word = operation.value if isinstance(operation, Enum) else operation
        for _ in range(_BEGIN_TRIES):
            files = list_state_files(timeline.store)
            if any(file.state is not State.SCHEDULED for file in files):
                recovery.recover(timeline)
                files = list_state_files(timeline.store)
            instant, version = _free_instant(timeline, files)
            transaction = cls(timeline, instant, action, word)
            mark_open(transaction, timeline.store, transaction.instant)
            try:
                if transaction._start(version, reads_version):
                    return transaction
            except BaseException:
                transaction._close()
                raise
            transaction._close()
            timeline.runtime.sleep(random.uniform(0, _FIRST_PAUSE_SECONDS))
        raise ConflictError(
            f"{word}: no free instant in {_BEGIN_TRIES} tries; run it again when fewer writers are busy"
        )

    def commit(self, change: Change, index: IndexPlan | None = None) -> Commit:
        """Makes a change visible atomically, on top of whatever was committed in the meantime.

        Args:
            change: The change; all files that it adds must exist.
            index: The live index slices after the change, relative to `base`; or a function that writes them for the
                snapshot that is followed (called again for each try); None leaves the index as it is.

        Returns:
            The log entry; other versions may lie between `base` and its version.

        Raises:
            ConflictError: Another writer committed a change that this one cannot follow.
            StoreError: The store failed; the transaction is then rolled back, or finished if it was committed.
        """
        head = self.base
        pause_seconds = _FIRST_PAUSE_SECONDS
        if kind_of(self.operation, bool(change.removes)) is Kind.MAINTENANCE and self._plan is not None:
            self._write_plan(replace(self._plan, committing=True))
            yield_to_writers(self._timeline, self.operation, self.instant)
        for _ in range(_COMMIT_TRIES):
            signature = Signature(self.instant, self.action, self.operation, self._timeline.runtime.now_ms())
            entry = entry_after(head, change, signature, index, self.base)
            self._fate_unknown = True
            try:
                self._timeline.append(entry, head)
                return self._finish(entry)
            except AlreadyExistsError:
                pass
            except StoreError:
                if self._landed():
                    return self._finish(entry)
                raise
            latest = self._timeline.snapshot()
            landed = self._check_versions_since(change, head, latest)
            self._fate_unknown = False
            if landed is not None:
                return self._finish(landed)
            head = latest
            self._timeline.runtime.sleep(random.uniform(0, pause_seconds))
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
        raise ConflictError(
            f"{self.operation} {self.instant}: other writers took the next version {_COMMIT_TRIES} times in a row; "
            "nothing of it is visible; run it again when fewer writers are busy"
        )

    def rollback(self) -> None:
        """Deletes the files written under the instant, unless it turns out to be committed."""
        if self.committed is not None:
            return
        self._stop_heartbeat()
        try:
            pending = [found for found in list_pending(self._store) if found.instant == self.instant]
            landed = self._landed() if self._fate_unknown else False
            if landed is None:
                return  # the next writer will find out; until then nothing may be deleted
            if not landed:
                recovery.withdraw(self._store, pending)
                recovery.delete_written(self._timeline, [self.instant])
            recovery.delete_state_files(self._store, pending)
            self._close(left_nothing=True)
        finally:
            self._close()

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Rolls back unless committed; if that fails, the next writer does it."""
        try:
            # The user must see the first error; the next writer rolls back what is left here.
            with suppress(ZlayoutError, OSError):
                self.rollback()
        finally:
            self._close()

    @property
    def inflight_path(self) -> str:
        """Marker: exists while the transaction is open and accepts files."""
        return state_path(self.instant, self.action, State.INFLIGHT)

    def _start(self, seen_version: int | None, reads_version: int | None) -> bool:
        store, runtime = self._store, self._timeline.runtime
        # The base is not older than the version seen before, so cleans know from the first file on what must be kept.
        plan = StateContent(self.operation, _older(seen_version, reads_version), runtime.writer, runtime.now_ms())
        requested = state_path(self.instant, self.action, State.REQUESTED)
        try:
            store.create(requested, plan.to_json())
        except AlreadyExistsError:
            return False
        # The order matters: an instant that another took is visible as a state file or, once that is gone, in the log.
        others = list_state_files(store)
        rivals = [file for file in others if file.instant == self.instant and file.path != requested]
        if kind_of(self.operation, removes_files=False) in (Kind.REWRITE, Kind.OVERWRITE):
            wait_for_maintenance(self._timeline, self.instant, others)
        self.base = self._timeline.newest()
        if rivals or (self.base is not None and self.base.last_instant >= self.instant):
            store.delete([requested])
            self._close(left_nothing=True)
            return False
        plan = replace(plan, base_version=_older(self.base.version if self.base else None, reads_version))
        store.create(self.inflight_path, plan.to_json())
        self._plan = plan
        # This instant is higher than theirs: once it is in the log, they are no longer needed.
        self._abandoned = [file.path for file in others if file.state is State.ABANDONED]
        self._start_heartbeat()
        return True

    def _check_versions_since(self, change: Change, head: Snapshot | None, latest: Snapshot) -> Commit | None:
        # Returns this transaction's own entry if a request that was reported as failed had succeeded after all.
        before = head
        kind = kind_of(self.operation, bool(change.removes))
        attempt = Attempt(
            kind=kind,
            operation=self.operation,
            instant=self.instant,
            base_version=self.base.version if self.base else None,
            adds=frozenset(change.adds["path"].to_pylist()) if kind is not Kind.OVERWRITE else frozenset(),
            removes=frozenset(change.removes),
            changes_shape=changes_shape(self.base, change),
            key_conflict=change.key_conflict,
            log_groups=groups_with_logs(change.adds),
        )
        for version in range(head.version + 1 if head else 0, latest.version + 1):
            winner = self._timeline.read(version)
            if winner.instant == self.instant and winner.aborts is None:
                return winner
            if winner.aborts == self.instant:
                self._fate_unknown = False
                raise ConflictError(
                    f"{self.operation} {self.instant}: another writer considered it dead and rolled it back in "
                    f"version {winner.version}; nothing of it is visible; run it again"
                )
            try:
                check_may_follow(attempt, winner, before is not None and changes_shape(before, winner))
                check_logs_stay(self._timeline, attempt, winner)
            except ConflictError:
                self._fate_unknown = False
                raise
            before = (
                None
                if before is None
                else replace(before, schema_json=winner.schema_json, partition_by=winner.partition_by)
            )
        return None

    def _landed(self) -> bool | None:
        # After a failed request only the log knows the outcome, once a late arrival of the request is ruled out.
        late = recovery.may_arrive_late(self._store)
        version = self.base.version if self.base else None
        landed = recovery.is_committed(self._timeline, self.instant, version, fence=late)
        self._fate_unknown = landed is None
        return landed

    def _write_plan(self, plan: StateContent) -> None:
        # The heartbeat writes the same file, so it is stopped first.
        self._stop_heartbeat()
        self._plan = plan
        self._store.put(self.inflight_path, plan.to_json())
        self._start_heartbeat()

    def _finish(self, entry: Commit) -> Commit:
        self.committed = entry
        self._stop_heartbeat()
        # The version is committed: the next writer cleans up whatever fails from here on.
        with suppress(StoreError):
            self._store.delete([self.inflight_path, state_path(self.instant, self.action, State.REQUESTED)])
            self._close(left_nothing=True)
            self._store.delete(self._abandoned)
        self._close()
        return entry

    def _start_heartbeat(self) -> None:
        every_seconds = self._timeline.runtime.heartbeat_seconds
        if every_seconds is not None and self._plan is not None:
            self._heartbeat = Heartbeat(self._timeline, self.inflight_path, self._plan, every_seconds)

    def _stop_heartbeat(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None

    def _close(self, *, left_nothing: bool = False) -> None:
        self._stop_heartbeat()
        mark_closed(self, left_nothing=left_nothing)


def _free_instant(timeline: Timeline, files: Sequence[StateFile]) -> tuple[str, int | None]:
    """Returns an unused instant and the newest version seen."""
    newest = timeline.newest()
    taken = [file.instant for file in files]
    if newest is not None:
        taken.append(newest.last_instant)
    version = None if newest is None else newest.version
    return next_instant(max(taken, default=None), timeline.runtime.now_ms()), version


def _older(version: int | None, other: int | None) -> int | None:
    return min((each for each in (version, other) if each is not None), default=None)


def retried(run: Callable[[], _T], tries: int, between: Callable[[ConflictError, int], None] | None = None) -> _T:
    """Runs a whole transaction, and runs it again after each conflict.

    Args:
        run: Begins a transaction on the newest version and commits it.
        tries: The most runs.
        between: Called before each repeat with the conflict and the number of the repeat, from 1.

    Raises:
        ConflictError: Every run met a conflict. It is the last one.
    """
    repeat = 1
    while True:
        try:
            return run()
        except ConflictError as conflict:
            if repeat >= tries:
                raise
            if between is not None:
                between(conflict, repeat)
        repeat += 1
