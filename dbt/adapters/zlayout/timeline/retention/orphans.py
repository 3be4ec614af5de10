"""Orphans: data files in the folder that belong to no version and to no running transaction; what the folder holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError, FileMissingError
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.files.naming import (
    STAGING_FOLDER,
    instants_in_name,
    is_data_path,
    is_own_name,
    log_path,
    staged_under,
)
from dbt.adapters.zlayout.timeline.files.table_file import without_nested_tables
from dbt.adapters.zlayout.timeline.retention.past import last_known_clean
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.pending import Liveness, list_pending, liveness

# Spark's file committer leaves it in the folder of each job; this package never does.
_SPARK_MARK = "_SUCCESS"


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


def stored_data_files(store: Store) -> list[StoredFile]:
    """Lists the folder, and returns its data files without those of tables in folders below."""
    return [file for file in without_nested_tables(store.list("", recursive=True)) if is_data_path(file.path)]


def orphans(timeline: Timeline, stored: Sequence[StoredFile] | None = None) -> list[StoredFile]:
    """Returns the data files that no readable version lists and no live transaction is writing.

    They come from a plain `INSERT` of another tool, from manual copies, or from writers that died.

    Args:
        stored: `stored_data_files`, from before this call; None to list the folder.
    """
    store = timeline.store
    # The order matters: files, then running transactions, then the log. A commit in between is in one of the last two.
    stored = stored_data_files(store) if stored is None else stored
    under_way = {
        pending.instant
        for pending in list_pending(store)
        if liveness(pending, store, timeline.runtime) is Liveness.LIVE
    }
    newest = timeline.latest_version()
    known: set[str] = set()
    if newest is not None:
        # A file that a version after the last complete clean removed is kept for older readers: it is not an orphan.
        oldest = min(last_known_clean(store).deleted_through, newest)
        known.update(timeline.snapshot(oldest).files["path"].to_pylist())
        for entry in timeline.entries(oldest + 1, newest):
            known.update(entry.adds["path"].to_pylist())
    return [file for file in stored if file.path not in known and under_way.isdisjoint(instants_in_name(file.path))]


def foreign_files(timeline: Timeline) -> list[StoredFile]:
    """Returns the orphans that other tools wrote. It lists the folder."""
    return [file for file in orphans(timeline) if not is_own_name(file.path)]


def spark_has_written(timeline: Timeline, version: int) -> bool:
    """Returns whether an `INSERT` of Spark has written into the folder since the version before this one.

    Takes one store call, or two after the first such `INSERT`. Other tools leave no mark.
    """
    if not version:
        return False  # an adopted folder has the mark of who wrote it
    try:
        marked_ms = timeline.store.stat(_SPARK_MARK).modified_ms
    except FileMissingError:
        return False
    return marked_ms >= timeline.store.stat(log_path(version - 1)).modified_ms


def foreign_text(count: int, *, merges_on_read: bool) -> str:
    """Returns the sentence on files of other tools in the folder: how many, and what to do."""
    take = (
        "read them and upsert their rows, then delete the files"
        if merges_on_read
        else "append them with zlayout_refresh_index and take_orphans: true if their rows are new, or delete them: a "
        "command that failed, such as an INSERT of Delta, may have left copies"
    )
    files, them = counted(count, "file"), "it" if count == 1 else "them"
    return f"another tool put {files} into the folder, and no version lists {them}, so no reader sees the rows; {take}"


def storage_use(timeline: Timeline, managed: bool) -> StorageUse:
    """Returns what the data files in the folder are for. It lists the folder.

    If this package does not write the table, every file in the folder counts as live.
    """
    snapshot = timeline.snapshot()
    stored = stored_data_files(timeline.store)
    sizes = pa.array([file.size_bytes for file in stored], pa.int64())
    paths = pa.array([file.path for file in stored], pa.string())
    live_paths = snapshot.files["path"]
    is_live = pc.is_in(paths, value_set=live_paths.combine_chunks())
    missing = len(live_paths) - int(pc.sum(is_live, min_count=0).as_py())
    live = int(pc.sum(sizes.filter(is_live), min_count=0).as_py())
    if not managed:
        return StorageUse(live, 0, 0, 0, 0, 0, missing)
    try:
        strays = orphans(timeline, stored)
    except CorruptError:
        strays = []  # an old entry of the log is damaged; then all other files count as those of older versions
    own = [file for file in strays if is_own_name(file.path)]
    foreign = [file for file in strays if not is_own_name(file.path)]
    total = int(pc.sum(sizes, min_count=0).as_py())
    retained = total - live - _bytes_of(strays)
    return StorageUse(live, max(0, retained), _bytes_of(own), _bytes_of(foreign), len(own), len(foreign), missing)


def own_orphans(timeline: Timeline) -> list[StoredFile]:
    """Returns data and staged files of this format that no version lists and no unfinished transaction wrote.

    A data file outside the folders of the table's partitions does not belong to the table.
    """
    store = timeline.store
    # Files first, then running transactions. Files that a worker staged for a rolled-back writer are orphans too.
    staged = [file for file in store.list(STAGING_FOLDER, recursive=True) if staged_under(file.path) is not None]
    layouts = _partition_columns(timeline)
    lost = [file for file in orphans(timeline) if is_own_name(file.path) and _columns_of(file.path) in layouts]
    open_ended = {pending.instant for pending in list_pending(store)}
    return [
        *(file for file in lost if open_ended.isdisjoint(instants_in_name(file.path))),
        *(file for file in staged if staged_under(file.path) not in open_ended),
    ]


def _partition_columns(timeline: Timeline) -> set[tuple[str, ...] | None]:
    """Returns the partition columns, in lower case, of every version whose files may be in the folder."""
    newest = timeline.latest_version()
    if newest is None:
        return set()
    oldest = min(last_known_clean(timeline.store).deleted_through, newest)
    found = [timeline.snapshot(oldest).partition_by]
    found += [entry.partition_by for entry in timeline.entries(oldest + 1, newest)]
    return {tuple(name.lower() for name in columns) for columns in found}


def _columns_of(path: str) -> tuple[str, ...] | None:
    """Returns the columns of the partition folders that contain a file, in lower case; None in any other folder."""
    folders = path.split("/")[:-1]
    columns = tuple(unquote(folder.partition("=")[0]).lower() for folder in folders)
    return columns if all("=" in folder for folder in folders) else None


def _bytes_of(files: Sequence[StoredFile]) -> int:
    return sum(file.size_bytes for file in files)
