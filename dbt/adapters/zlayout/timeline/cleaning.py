"""Cleaning: deleting the files that no retained version, and no transaction under way, needs any more."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from dbt.adapters.zlayout.errors import FileMissingError
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.entry import Commit
from dbt.adapters.zlayout.timeline.instant import next_instant
from dbt.adapters.zlayout.timeline.json_file import from_json_bytes, read_fields, to_json_bytes
from dbt.adapters.zlayout.timeline.log import Timeline
from dbt.adapters.zlayout.timeline.naming import (
    CHECKPOINT_FOLDER,
    CLEAN_FOLDER,
    CURVE_FOLDER,
    INDEX_FOLDER,
    checkpoint_path,
    instants_in_name,
    version_in_name,
)
from dbt.adapters.zlayout.timeline.pending import Pending, list_pending

_HOUR_MS = 3_600_000
_KEPT_RECORDS = 10
# Beyond so many files one listing is cheaper than asking for each.
_STATS_BEFORE_LISTING = 200


@dataclass(frozen=True)
class CleanResult:
    """What a clean deleted, or would delete.

    Attributes:
        files: Number of files: data, index, curve models and checkpoints.
        bytes: Their size.
        oldest_version: The oldest version that can be read afterwards; None for a table without versions.
        paths: The files.
    """

    files: int
    bytes: int
    oldest_version: int | None
    paths: tuple[str, ...]


def clean(
    timeline: Timeline, retain_versions: int, retain_hours: float, now_ms: int, dry_run: bool = False
) -> CleanResult:
    """Delete what only versions need that are past their time.

    Retained are the newest `retain_versions` versions, all that were the newest at any time in the last
    `retain_hours`, and those that a transaction under way began with. Log entries stay: they are the history.

    Args:
        timeline: The table's timeline.
        retain_versions: At least 1.
        retain_hours: At least 0; a reader may take so long.
        now_ms: The time, milliseconds since the epoch.
        dry_run: Only tell what would be deleted.

    Raises:
        ValueError: `retain_versions` or `retain_hours` is too small.
    """
    if retain_versions < 1 or retain_hours < 0:
        raise ValueError(f"cannot retain {retain_versions} versions and {retain_hours} hours: at least 1 and 0")
    store = timeline.store
    # The order matters: files first, then work under way, then the log. A transaction that commits meanwhile is in one
    # of the last two, so that nothing that it wrote can look unneeded.
    own_files = [*store.list(INDEX_FOLDER, recursive=True), *store.list(CURVE_FOLDER, recursive=True)]
    pending = list_pending(store)
    newest = timeline.latest_version()
    if newest is None:
        return CleanResult(0, 0, None, ())
    since_ms = now_ms - int(retain_hours * _HOUR_MS)
    oldest = min(_oldest_retained(timeline, newest, retain_versions, since_ms), *_bases(store, pending, newest))
    retained = timeline.entries(oldest, newest)
    cleaned_through = cleaned_version(store)
    unneeded = [
        *_data_files(timeline, cleaned_through, oldest, retained),
        *_own_files(own_files, retained, pending),
        *_checkpoints(store, oldest),
    ]
    result = CleanResult(
        len(unneeded), sum(file.size_bytes for file in unneeded), oldest, tuple(file.path for file in unneeded)
    )
    if not dry_run and (unneeded or oldest > (cleaned_through or 0)):
        store.delete(result.paths)
        _record(timeline, result, now_ms)
    return result


def cleaned_version(store: Store) -> int | None:
    """Return the oldest version whose files the last clean left whole, None where none was run."""
    for path in reversed(_records(store)):
        with suppress(FileMissingError):  # another clean has just retired it
            (oldest,) = read_fields(from_json_bytes(store.read(path), path), path, oldest_version=int)
            return int(oldest)
    return None


def _oldest_retained(timeline: Timeline, newest: int, retain_versions: int, since_ms: int) -> int:
    # Version v was the newest until v + 1 was committed. Clocks of writers differ, so the search goes by the log's
    # order and ends at the first version that was replaced before the window.
    oldest = newest
    replaced_ms = timeline.read(newest).committed_ms
    while oldest > 0 and (oldest > newest - retain_versions + 1 or replaced_ms >= since_ms):
        oldest -= 1
        replaced_ms = timeline.read(oldest).committed_ms
    return oldest


def _bases(store: Store, pending: Sequence[Pending], newest: int) -> list[int]:
    plans = [found.plan(store) for found in pending]
    return [newest, *(plan.base_version for plan in plans if plan is not None and plan.base_version is not None)]


def _data_files(
    timeline: Timeline, cleaned_through: int | None, oldest: int, retained: Sequence[Commit]
) -> list[StoredFile]:
    # A file that version v <= oldest removed was last needed by v - 1, unless a rollback took it in again.
    removed: set[str] = set()
    for entry in timeline.entries((cleaned_through or 0) + 1, oldest):
        removed.update(entry.removes)
    if not removed:
        return []
    removed.difference_update(timeline.snapshot(oldest).files["path"].to_pylist())
    for entry in retained:
        removed.difference_update(entry.adds["path"].to_pylist())
    return _stored(timeline.store, removed)


def _own_files(files: Sequence[StoredFile], retained: Sequence[Commit], pending: Sequence[Pending]) -> list[StoredFile]:
    needed = {path for entry in retained for slices in entry.index.values() for path in slices}
    needed.update(entry.curve for entry in retained if entry.curve is not None)
    under_way = {found.instant for found in pending}
    return [file for file in files if file.path not in needed and under_way.isdisjoint(instants_in_name(file.path))]


def _checkpoints(store: Store, oldest: int) -> list[StoredFile]:
    stored = {version_in_name(file.path): file for file in store.list(CHECKPOINT_FOLDER)}
    start = max((version for version in stored if version is not None and version <= oldest), default=0)
    return [file for version, file in stored.items() if version is not None and file.path < checkpoint_path(start)]


def _stored(store: Store, paths: set[str]) -> list[StoredFile]:
    if len(paths) > _STATS_BEFORE_LISTING:
        return [file for file in store.list("", recursive=True) if file.path in paths]
    found: list[StoredFile] = []
    for path in sorted(paths):
        with suppress(FileMissingError):
            found.append(store.stat(path))
    return found


def _record(timeline: Timeline, result: CleanResult, now_ms: int) -> None:
    records = _records(timeline.store)
    last = max((instant for path in records for instant in instants_in_name(path)), default=None)
    content = {
        "cleaned_ms": now_ms,
        "oldest_version": result.oldest_version,
        "files": result.files,
        "bytes": result.bytes,
    }
    timeline.store.put(f"{CLEAN_FOLDER}/{next_instant(last, now_ms)}.json", to_json_bytes(content))
    timeline.store.delete(records[: 1 - _KEPT_RECORDS])


def _records(store: Store) -> list[str]:
    return [file.path for file in store.list(CLEAN_FOLDER) if instants_in_name(file.path)]
