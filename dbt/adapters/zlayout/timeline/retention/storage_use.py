"""What versions hold and what the folder holds: rows and bytes of each version, and the space of old versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.store import StoredFile
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.naming import is_data_path, is_own_name
from dbt.adapters.zlayout.timeline.files.table_file import without_nested_tables
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.file_slices import log_files
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot, replay, row_count
from dbt.adapters.zlayout.timeline.retention.orphans import orphans
from dbt.adapters.zlayout.timeline.retention.past import last_known_clean
from dbt.adapters.zlayout.timeline.timeline import Timeline


@dataclass(frozen=True)
class VersionFigures:
    """One version of a table.

    Attributes:
        version: The version.
        committed_ms: When it was committed, milliseconds since the epoch.
        operation: What the user asked for.
        rows: Rows of the version.
        size_bytes: Size of its files.
        files: Number of its files.
        files_added: Files that it added.
        files_removed: Files that it removed.
        log_records: Records in its logs.
        readable: Whether it is retained.
    """

    version: int
    committed_ms: int
    operation: str
    rows: int
    size_bytes: int
    files: int
    files_added: int
    files_removed: int
    log_records: int
    readable: bool


@dataclass(frozen=True)
class StorageUse:
    """What the data files in a table's folder are for, in bytes.

    Attributes:
        live: Files of the newest version.
        retained: Files that only older versions need.
        left_behind: Orphans that writers of this package left behind.
        foreign: Files of other tools that no version lists.
        orphan_files: Number of files left behind.
        foreign_files: Number of files of other tools.
        missing_files: Files of the newest version that are not in the folder.
    """

    live: int
    retained: int
    left_behind: int
    foreign: int
    orphan_files: int
    foreign_files: int
    missing_files: int


def version_figures(timeline: Timeline, limit: int) -> list[VersionFigures]:
    """Returns the last versions, oldest first.

    Raises:
        CorruptError: An entry of the log is damaged or missing.
    """
    newest = timeline.snapshot().version
    first = max(0, newest - limit + 1)
    oldest = last_known_clean(timeline.store).oldest_version
    before = timeline.snapshot(first - 1) if first else None
    found = []
    for commit in timeline.entries(first, newest):
        before = replay(before, [commit])
        found.append(_figures(before, commit, before.version >= oldest))
    return found


def storage_use(timeline: Timeline, managed: bool) -> StorageUse:
    """Returns what the data files in the folder are for. It lists the folder.

    If this package does not write the table, every file in the folder counts as live.
    """
    snapshot = timeline.snapshot()
    stored = [
        file for file in without_nested_tables(timeline.store.list("", recursive=True)) if is_data_path(file.path)
    ]
    sizes = pa.array([file.size_bytes for file in stored], pa.int64())
    paths = pa.array([file.path for file in stored], pa.string())
    live_paths = snapshot.files["path"]
    is_live = pc.is_in(paths, value_set=live_paths.combine_chunks())
    missing = len(live_paths) - int(pc.sum(is_live, min_count=0).as_py())
    live = int(pc.sum(sizes.filter(is_live), min_count=0).as_py())
    if not managed:
        return StorageUse(live, 0, 0, 0, 0, 0, missing)
    try:
        strays = orphans(timeline)
    except CorruptError:
        strays = []  # an old entry of the log is damaged; then all other files count as those of older versions
    own = [file for file in strays if is_own_name(file.path)]
    foreign = [file for file in strays if not is_own_name(file.path)]
    total = int(pc.sum(sizes, min_count=0).as_py())
    retained = total - live - _bytes_of(strays)
    return StorageUse(live, max(0, retained), _bytes_of(own), _bytes_of(foreign), len(own), len(foreign), missing)


def last_version_of(versions: Sequence[VersionFigures], operation: str) -> VersionFigures | None:
    """Returns the newest version that an operation made, among some."""
    return next((each for each in reversed(versions) if each.operation == operation), None)


def _figures(after: Snapshot, commit: Commit, readable: bool) -> VersionFigures:
    files: DataFiles = after.files
    return VersionFigures(
        version=commit.version,
        committed_ms=commit.committed_ms,
        operation=commit.operation,
        rows=row_count(after),
        size_bytes=files.total_bytes,
        files=len(files),
        files_added=len(commit.adds),
        files_removed=len(np.unique(commit.removes)),
        log_records=log_files(files).total_rows,
        readable=readable,
    )


def _bytes_of(files: Sequence[StoredFile]) -> int:
    return sum(file.size_bytes for file in files)
