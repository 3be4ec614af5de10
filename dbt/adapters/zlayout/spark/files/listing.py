"""The data files that lie in the folder of somebody else's table, as Spark would find them."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.statistics.partitions import parse_partition_folder
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import is_data_path, new_group

# A file that is written twice within one tick of its store's clock, with the same length, looks the same.
_LOCAL_TICK_MS = 20
_REMOTE_TICK_MS = 2_000


def listed_files(store: Store, partition_by: Sequence[str]) -> DataFiles:
    """The files by path, with row counts of 0; those outside of the partitions' folders are left out."""
    stored = [file for file in store.list("", recursive=True) if _looks_like_data(file)]
    placed = [(file, _partition_of(file.path, partition_by)) for file in stored]
    return DataFiles.of(
        (
            DataFile(file.path, partition, 0, file.size_bytes, file.modified_ms, new_group())
            for file, partition in placed
            if partition is not None
        ),
        tuple(partition_by),
    )


def same_files(files: DataFiles, others: DataFiles) -> pa.Array:
    """Which files are among others with the same size and time; bool, one a file."""
    position = pc.index_in(contiguous(files["path"]), value_set=contiguous(others["path"]))
    same = [
        pc.equal(contiguous(files[name]), contiguous(others[name]).take(position))
        for name in ("size_bytes", "modified_ms")
    ]
    return pc.fill_null(pc.and_kleene(*same), False)


def wait_a_tick(store: Store, files: DataFiles) -> None:
    """Waits until whatever is written to these files from now on gets a later time than they have."""
    tick_ms = _LOCAL_TICK_MS if store.local_path("") is not None else _REMOTE_TICK_MS
    newest_ms = max(files["modified_ms"].to_pylist(), default=0)
    # A store whose clock is ahead is not waited for longer than a tick.
    time.sleep(max(0, min(newest_ms + tick_ms - time.time() * 1000, tick_ms)) / 1000)


def _looks_like_data(file: StoredFile) -> bool:
    """Spark takes any file for data whose name is not hidden, whatever it ends in."""
    return is_data_path(file.path) or is_data_path(f"{file.path}.parquet")


def _partition_of(path: str, partition_by: Sequence[str]) -> tuple[tuple[str, str | None], ...] | None:
    try:
        values = {name.lower(): value for name, value in parse_partition_folder(path.rpartition("/")[0])}
    except ValueError:
        return None
    if set(values) != {name.lower() for name in partition_by}:
        return None
    return tuple((name, values[name.lower()]) for name in partition_by)
