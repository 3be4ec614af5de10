"""Cleaning: deletes the files that no retained version and no running transaction needs any more."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from dbt.adapters.zlayout.errors import FileMissingError, StoreError
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.files.instant import HOUR_MS
from dbt.adapters.zlayout.timeline.files.naming import (
    CHECKPOINT_FOLDER,
    CURVE_FOLDER,
    INDEX_FOLDER,
    STAGING_FOLDER,
    checkpoint_path,
    instants_in_name,
    log_path,
    may_be_cleaned,
    version_in_name,
)
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.retention.orphans import own_orphans
from dbt.adapters.zlayout.timeline.retention.past import (
    CleanRecord,
    combined,
    create_record,
    last_clean,
    read_records,
    retire_records,
    stored_files,
)
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.pending import Liveness, Pending, list_pending, liveness

_TRIES = 5
# The clean after a commit waits until this many versions have expired for each retained one.
_EXPIRED_PER_RETAINED = 0.1


@dataclass(frozen=True)
class CleanResult:
    """What a clean deleted, or would delete.

    Attributes:
        files: Number of files: data, index, curve models and checkpoints.
        oldest_version: From this version on all data files still exist; None for a table without versions.
        failed: The store's error for each file that could not be deleted; the next clean tries again.
    """

    files: int
    bytes: int
    oldest_version: int | None
    paths: tuple[str, ...]
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Findings:
    unneeded: Sequence[StoredFile]
    retained_from: int
    record: CleanRecord
    records_before: Sequence[str]
    is_news: bool

    @property
    def result(self) -> CleanResult:
        paths = tuple(file.path for file in self.unneeded)
        return CleanResult(len(paths), self.record.size_bytes, self.record.oldest_version, paths)

    def only(self, again: _Findings) -> _Findings:
        """Returns these findings without files that have become needed since."""
        return self._of({file.path for file in again.unneeded})

    def without(self, paths: Collection[str]) -> _Findings:
        """Returns these findings without some files."""
        return self._of({file.path for file in self.unneeded}.difference(paths))

    def _of(self, paths: Collection[str]) -> _Findings:
        unneeded = [file for file in self.unneeded if file.path in paths]
        record = replace(self.record, files=len(unneeded), size_bytes=sum(file.size_bytes for file in unneeded))
        return replace(self, unneeded=unneeded, record=record)


def store_time_ms(store: Store) -> int:
    """Returns the time of the clock that dates the store's files, independent of any writer's clock."""
    path = f"{STAGING_FOLDER}/.{uuid.uuid4().hex}.tmp"
    store.put(path, b"")
    try:
        return store.stat(path).modified_ms
    finally:
        store.delete([path])


def clean(
    timeline: Timeline,
    retain_versions: int,
    retain_hours: float,
    now_ms: int,
    dry_run: bool = False,
    orphans: bool = False,
    needed_from: int | None = None,
    at_once: bool = True,
) -> CleanResult:
    """Deletes the files that only expired versions need.

    The newest `retain_versions` versions are retained, as are all versions that were current at any time in the last
    `retain_hours`, and those that a running transaction needs. Log entries are kept: they are the history.

    Args:
        retain_versions: At least 1.
        retain_hours: At least 0; readers may take this long.
        now_ms: The time by the clock of the store, milliseconds since the epoch; see `store_time_ms`.
        dry_run: Only return what would be deleted.
        orphans: Also delete data and staged files of this format that no version lists and that are older than
            `retain_hours`. Files that other tools put into the folder are kept.
        needed_from: Oldest version that readers of another format still see; None if they see the newest.
        at_once: Whether to delete all that is not needed now. Otherwise, nothing is deleted until a tenth as many
            versions have expired as are retained. A clean reads the log entries of them all, which is too much for each
            commit of a table that has many in its window.

    Raises:
        ValueError: `retain_versions` or `retain_hours` is too small.
    """
    if retain_versions < 1 or retain_hours < 0:
        raise ValueError(f"cannot retain {retain_versions} versions and {retain_hours} hours: at least 1 and 0")
    newest = timeline.latest_version()
    if newest is None:
        return CleanResult(0, 0, None, ())
    store = timeline.store
    since_ms = now_ms - int(retain_hours * HOUR_MS)
    if not at_once:
        known, oldest = last_clean(store), _oldest_retained(timeline, newest, retain_versions, since_ms)
        if oldest - known.deleted_through <= _EXPIRED_PER_RETAINED * (newest - oldest):
            return CleanResult(0, 0, known.oldest_version, ())
    look = partial(_look, timeline, retain_versions, since_ms, now_ms, orphans, needed_from)
    found = look()
    for _ in range(_TRIES):
        if dry_run or not (found.unneeded or found.is_news):
            return found.result
        # Writes the record first, then looks again. A transaction that reads an older version announces this before it
        # reads the records. So one of the two sees the other, or the transaction's commit is in the log read here.
        path = create_record(store, found.record, found.records_before)
        again = look() if found.unneeded else found
        if again.retained_from >= found.retained_from:
            found = found.only(again)
            failed = _delete(store, found.result.paths)
            # Files that could not be deleted are found again: the versions that needed them count as not cleaned.
            through = found.record.deleted_through if failed else found.retained_from
            store.put(path, replace(found.record, deleted_through=through, failed=len(failed)).to_json())
            retire_records(store, found.records_before)
            done = found.without(failed).result
            return replace(done, failed=tuple(failed.values()))
        store.delete([path])
        found = again
    return CleanResult(0, 0, found.record.oldest_version, ())


def _delete(store: Store, paths: Sequence[str]) -> dict[str, str]:
    """Deletes files; returns the error of each file that could not be deleted, by path."""
    # Checks once more, wherever the paths came from, that cleaning may delete them.
    allowed = may_be_cleaned(paths)
    failed = {path: f"{path}: neither data nor index of the table" for path in set(paths).difference(allowed)}
    try:
        store.delete(allowed)
    except StoreError:
        for path in allowed:  # one file that cannot be deleted must not protect the others
            try:
                store.delete([path])
            except StoreError as error:  # noqa: PERF203 - each file succeeds or fails on its own
                failed[path] = str(error)
    return failed


def _look(
    timeline: Timeline,
    retain_versions: int,
    since_ms: int,
    now_ms: int,
    with_orphans: bool,
    needed_from: int | None,
) -> _Findings:
    store = timeline.store
    # The order matters: files, then running transactions, then the log. A transaction that commits in between is in one
    # of the last two, so none of its files can look unneeded.
    own_files = [*store.list(INDEX_FOLDER, recursive=True), *store.list(CURVE_FOLDER, recursive=True)]
    records = read_records(store)
    known = combined(records.values())
    pending = list_pending(store)
    lost = [file for file in own_orphans(timeline) if file.modified_ms < since_ms] if with_orphans else []
    bases = _bases(timeline, pending)
    newest = timeline.latest_version() or 0
    oldest = min([_oldest_retained(timeline, newest, retain_versions, since_ms), *bases])
    if needed_from is not None:
        oldest = min(oldest, needed_from)
    retained = timeline.entries(oldest, newest)
    data_files = _data_files(timeline, known.deleted_through, oldest, retained)
    unneeded = [*data_files, *lost, *_own_files(own_files, retained, pending), *_checkpoints(store, oldest)]
    record = CleanRecord(
        oldest_version=max(known.oldest_version, oldest) if data_files else known.oldest_version,
        deleted_through=known.deleted_through,
        cleaned_ms=now_ms,
        files=len(unneeded),
        size_bytes=sum(file.size_bytes for file in unneeded),
    )
    return _Findings(unneeded, oldest, record, tuple(records), is_news=oldest > known.deleted_through)


def _oldest_retained(timeline: Timeline, newest: int, retain_versions: int, since_ms: int) -> int:
    """Returns the newest version that was current when the window began, or an older one that must be retained."""
    if newest < retain_versions:
        return 0

    # Writers' clocks differ, so the store's time counts.
    def is_older_than_window(version: int) -> bool:
        with suppress(FileMissingError):
            return timeline.store.stat(log_path(version)).modified_ms <= since_ms
        return False

    # Steps back, each twice as far, and then halves the last step. The times of a copied folder may be in any order:
    # what is found is then too old, and never too new.
    within, found, step = newest - retain_versions + 2, newest - retain_versions + 1, 1
    while found > 0 and not is_older_than_window(found):
        within, found, step = found, max(0, found - step), 2 * step
    while within - found > 1:
        middle = (within + found) // 2
        within, found = (within, middle) if is_older_than_window(middle) else (middle, found)
    return found


def _bases(timeline: Timeline, pending: Sequence[Pending]) -> list[int]:
    """Returns the oldest version that each running transaction needs."""
    store = timeline.store
    living = [each for each in pending if liveness(each, store, timeline.runtime) is not Liveness.GONE]
    plans = [plan for each in living if (plan := each.plan(store)) is not None]
    return [plan.base_version for plan in plans if plan.base_version is not None]


def _data_files(timeline: Timeline, deleted_through: int, oldest: int, retained: Sequence[Commit]) -> list[StoredFile]:
    # A file that version v <= oldest removed was last needed by v - 1, unless a rollback added it again.
    removed: set[str] = set()
    for entry in timeline.entries(deleted_through + 1, oldest):
        removed.update(entry.removes)
    if not removed:
        return []
    removed.difference_update(timeline.snapshot(oldest).files["path"].to_pylist())
    for entry in retained:
        removed.difference_update(entry.adds["path"].to_pylist())
    return stored_files(timeline.store, removed)


def _own_files(files: Sequence[StoredFile], retained: Sequence[Commit], pending: Sequence[Pending]) -> list[StoredFile]:
    needed = {path for entry in retained for slices in entry.index.values() for path in slices}
    needed.update(entry.curve for entry in retained if entry.curve is not None)
    under_way = {found.instant for found in pending}
    return [file for file in files if file.path not in needed and under_way.isdisjoint(instants_in_name(file.path))]


def _checkpoints(store: Store, oldest: int) -> list[StoredFile]:
    stored = {version_in_name(file.path): file for file in store.list(CHECKPOINT_FOLDER)}
    start = max((version for version in stored if version is not None and version <= oldest), default=0)
    return [file for version, file in stored.items() if version is not None and file.path < checkpoint_path(start)]
