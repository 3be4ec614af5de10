"""Past versions: resolves a version, instant or time, and checks that the version's files still exist.

Clean records say which files exist. A clean writes its record before it deletes a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError, FileMissingError, VersionNotFoundError
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.instant import create_at_next_instant, instant_of, is_instant
from dbt.adapters.zlayout.timeline.files.json_file import from_json_bytes, read_fields, to_json_bytes
from dbt.adapters.zlayout.timeline.files.naming import CLEAN_FOLDER, instants_in_name
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.timeline import Timeline

# In the summary of a version that dropped files which were missing from the folder.
DROPPED, DROPPED_AS_MISSING = "dropped", "missing"
_RECORDS_KEPT = 3
_DELETE = "delete this file: it is the record of a clean, and old versions are not cleaned while it is here"
# Above this number of files, one listing is cheaper than a request for each file.
_STATS_BEFORE_LISTING = 200


@dataclass(frozen=True)
class CleanRecord:
    """The result of one clean, or of several combined.

    Attributes:
        oldest_version: From this version on all files exist; files of older versions may be gone.
        deleted_through: Unneeded files up to this version have been deleted; after an interrupted clean this is less
            than ``oldest_version``.
        cleaned_ms: Time of the clean, milliseconds since the epoch.
        failed: Number of files that could not be deleted.
    """

    oldest_version: int
    deleted_through: int
    cleaned_ms: int = 0
    files: int = 0
    size_bytes: int = 0
    failed: int = 0

    def to_json(self) -> bytes:
        """Returns the bytes of the file."""
        return to_json_bytes(vars(self))


def read_records(store: Store) -> dict[str, CleanRecord]:
    """Returns the records by path, oldest first.

    Raises:
        CorruptError: One of them cannot be understood.
    """
    found: dict[str, CleanRecord] = {}
    paths = [file.path for file in store.list(CLEAN_FOLDER)]
    for path in [path for path in paths if any(map(is_instant, instants_in_name(path)))]:
        with suppress(FileMissingError):  # another clean has just deleted it
            content = from_json_bytes(store.read(path), path, _DELETE)
            # Records of older releases have no field `failed`.
            fields = dict.fromkeys(CleanRecord.__dataclass_fields__, int)
            found[path] = CleanRecord(*read_fields({"failed": 0, **content}, path, _DELETE, **fields))
    return found


def combined(records: Iterable[CleanRecord]) -> CleanRecord:
    """Returns the result of several cleans, oldest first: each may have continued an interrupted one."""
    all_ = [CleanRecord(0, 0), *records]
    return replace(
        all_[-1],
        oldest_version=max(each.oldest_version for each in all_),
        deleted_through=max(each.deleted_through for each in all_),
    )


def last_clean(store: Store) -> CleanRecord:
    """Returns the result of all cleans so far; version 0 if there was none.

    Raises:
        CorruptError: A record cannot be understood.
    """
    return combined(read_records(store).values())


def last_known_clean(store: Store) -> CleanRecord:
    """Returns what `last_clean` does, or as if there was no clean if a record is damaged."""
    try:
        return last_clean(store)
    except CorruptError:
        return CleanRecord(0, 0)


def create_record(store: Store, record: CleanRecord, after: Sequence[str]) -> str:
    """Writes a record under a new name.

    ``after`` are the paths of the previous records.

    Returns:
        Its path.
    """
    last = max((instant for path in after for instant in instants_in_name(path)), default=None)
    _, path = create_at_next_instant(
        store, last, lambda: record.cleaned_ms, lambda instant: f"{CLEAN_FOLDER}/{instant}.json", record.to_json()
    )
    return path


def retire_records(store: Store, superseded: Sequence[str]) -> None:
    """Deletes the oldest of the records that a newer record has superseded."""
    store.delete(superseded[: max(0, len(superseded) + 1 - _RECORDS_KEPT)])


def snapshot_of(timeline: Timeline, version: int, subject: str) -> Snapshot:
    """Returns the snapshot of a version after checking that it can be read.

    Raises:
        VersionNotFoundError: There is no such version, or its files were cleaned.
    """
    check_version(timeline, version, subject)
    found = timeline.snapshot(version)
    check_kept(timeline, found.files["path"], f"{subject}: the files of version {version}")
    return found


def check_version(timeline: Timeline, version: int, subject: str) -> None:
    """Checks that a version exists or existed.

    Raises:
        VersionNotFoundError: It never existed.
    """
    newest = _newest(timeline, subject)
    if not 0 <= version <= newest:
        raise VersionNotFoundError(f"{subject} has no version {version}; {_readable(timeline, newest)}")


def version_of_instant(timeline: Timeline, instant: str, subject: str) -> int:
    """Returns the version that a transaction made, by its instant.

    Raises:
        VersionNotFoundError: No version has this instant.
    """
    newest, before = _newest(timeline, subject), ""
    for entry in timeline.headers():
        if entry.instant == instant:
            return entry.version
        if entry.last_instant < instant:
            before = f"version {entry.version} of {entry.last_instant} is the last before it; "
            break
    shape = "" if is_instant(instant) else "an instant has 17 digits, yyyyMMddHHmmssSSS in UTC; "
    raise VersionNotFoundError(
        f"{subject} has no version of instant {instant}; {shape}{before}{_readable(timeline, newest)}"
    )


def version_at_time(timeline: Timeline, time_ms: int, subject: str) -> int:
    """Returns the newest version that was committed at or before a time.

    The time is in milliseconds since the epoch.

    Raises:
        VersionNotFoundError: All versions are newer.
    """
    _newest(timeline, subject)
    for entry in timeline.headers():
        committed_ms = entry.committed_ms
        if committed_ms <= time_ms:
            return entry.version
    raise VersionNotFoundError(
        f"{subject} has no version at or before {_utc(time_ms)}; the first, version 0, is of {_utc(committed_ms)}"
    )


def check_kept(timeline: Timeline, paths: pa.ChunkedArray, what: str) -> None:
    """Checks that no clean has deleted any of these files, or is about to.

    Raises:
        VersionNotFoundError: One was deleted; the message names the versions that can be read.
    """
    oldest = last_clean(timeline.store).oldest_version
    if not oldest or not len(paths):
        return
    newest = timeline.latest_version() or 0
    if oldest > newest:  # the folder was recreated since
        return
    # A clean that keeps versions from v on keeps the files of v and all files added later.
    kept = [timeline.snapshot(oldest).files["path"]]
    kept += [entry.adds["path"] for entry in timeline.entries(oldest + 1, newest)]
    known = pa.chunked_array([chunk for column in kept for chunk in column.chunks], pa.string())
    if not pc.all(pc.is_in(paths, value_set=known)).as_py():
        raise VersionNotFoundError(
            f"{what} were cleaned; {_readable(timeline, newest)}; "
            "the table's retain_versions and retain_hours say how long files stay"
        )


def check_not_dropped(entries: Iterable[Commit], paths: pa.ChunkedArray, what: str) -> None:
    """Checks that none of these files was missing from the folder, so that a version dropped it with its rows.

    Args:
        entries: The log entries of the versions that may have dropped one.
        paths: The files.
        what: What they are, for the error message.

    Raises:
        VersionNotFoundError: One was dropped.
    """
    for entry in entries:
        dropped = entry.removes if entry.summary.get(DROPPED) == DROPPED_AS_MISSING else ()
        if dropped and pc.any(pc.is_in(paths, value_set=pa.array(dropped, pa.string()))).as_py():
            raise VersionNotFoundError(
                f"{what} were missing from the folder, and version {entry.version} dropped them; read all rows instead"
            )


def missing_files(timeline: Timeline, files: DataFiles) -> list[str]:
    """Returns the paths of files that are missing in the folder, or have another size there."""
    sizes = {file.path: file.size_bytes for file in stored_files(timeline.store, files["path"].to_pylist())}
    wanted = zip(files["path"].to_pylist(), files["size_bytes"].to_pylist(), strict=True)
    return [path for path, size_bytes in wanted if sizes.get(path) != size_bytes]


def stored_files(store: Store, paths: Collection[str]) -> list[StoredFile]:
    """Returns the files among the given paths that exist in the folder."""
    if len(paths) > _STATS_BEFORE_LISTING:
        wanted = frozenset(paths)
        return [file for file in store.list("", recursive=True) if file.path in wanted]
    found: list[StoredFile] = []
    for path in sorted(paths):
        with suppress(FileMissingError):
            found.append(store.stat(path))
    return found


def _newest(timeline: Timeline, subject: str) -> int:
    newest = timeline.latest_version()
    if newest is None:
        raise VersionNotFoundError(f"{subject} has no version yet; run the model that builds it")
    return newest


def _readable(timeline: Timeline, newest: int) -> str:
    oldest = min(last_clean(timeline.store).oldest_version, newest)
    return f"versions {oldest} to {newest} can be read" if oldest < newest else f"version {newest} can be read"


def _utc(time_ms: int) -> str:
    digits = instant_of(time_ms)
    date, clock = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}", f"{digits[8:10]}:{digits[10:12]}:{digits[12:14]}"
    return f"{date} {clock}.{digits[14:]} UTC"
