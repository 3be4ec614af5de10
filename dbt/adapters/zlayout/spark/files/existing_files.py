"""Finds the files that a folder holds already: lists them as Spark would, and reads their footers in a few threads."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import FileMissingError, StoreError
from dbt.adapters.zlayout.index.footers.footer import footer_in
from dbt.adapters.zlayout.index.statistics.partitions import is_read_alike, parse_partition_folder
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import is_data_path, new_group

# This option of `DataSource` must be false, or Spark treats a bracket in a path as a pattern.
GLOB = "__globPaths__"
# A file that is rewritten with the same length within one tick of its store's clock looks unchanged.
_LOCAL_TICK_MS = 20
_REMOTE_TICK_MS = 2_000
_THREADS = 8


def listed_files(store: Store, partition_by: Sequence[str]) -> DataFiles:
    """Returns the files by path, with row counts of 0. Files outside of partition folders are left out."""
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


def ambiguous_folder(files: DataFiles, partition_by: Sequence[str], schema_json: str) -> str | None:
    """Returns what is wrong with a partition folder that Spark would read as two values; None if there is none."""
    types = {each["name"]: each["type"] for each in json.loads(schema_json)["fields"]}
    for column in partition_by:
        for text in pc.unique(files.partition_values(column)).to_pylist():
            if not is_read_alike(text, types[column]):
                return (
                    f"the partition folder '{column}={text}' is not spelled as Spark writes the type {types[column]}, "
                    "so sessions would read different values from it"
                )
    return None


def wait_a_tick(store: Store, files: DataFiles) -> None:
    """Waits until any further write to these files would give them a later time than they have now."""
    tick_ms = _LOCAL_TICK_MS if store.local_path("") is not None else _REMOTE_TICK_MS
    newest_ms = max(files["modified_ms"].to_pylist(), default=0)
    # If the store's clock is ahead, this still waits at most one tick.
    time.sleep(max(0, min(newest_ms + tick_ms - time.time() * 1000, tick_ms)) / 1000)


def read_footers(store: Store, paths: Sequence[str]) -> list[pq.FileMetaData]:
    """Returns the footer of each file.

    Args:
        paths: Paths of the files relative to the folder.

    Raises:
        OSError: A file cannot be read, or is not a Parquet file (``pyarrow.ArrowInvalid``).
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(partial(_footer, store), paths))


def footers_found(store: Store, paths: Sequence[str]) -> list[pq.FileMetaData | None]:
    """Returns the footer of each file, or None for a file that cannot be read or is not a Parquet file."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(partial(_footer_or_none, store), paths))


def _looks_like_data(file: StoredFile) -> bool:
    """Returns whether Spark treats a file as data: any file whose name is not hidden, whatever its extension."""
    return is_data_path(file.path) or is_data_path(f"{file.path}.parquet")


def _partition_of(path: str, partition_by: Sequence[str]) -> tuple[tuple[str, str | None], ...] | None:
    try:
        values = {name.lower(): value for name, value in parse_partition_folder(path.rpartition("/")[0])}
    except ValueError:
        return None
    if set(values) != {name.lower() for name in partition_by}:
        return None
    return tuple((name, values[name.lower()]) for name in partition_by)


def _footer_or_none(store: Store, path: str) -> pq.FileMetaData | None:
    try:
        return _footer(store, path)
    except (OSError, pa.ArrowException, StoreError):
        return None


def _footer(store: Store, path: str) -> pq.FileMetaData:
    try:
        footer = _read_footer(store, path)
        # Read now, so that a damaged footer fails here and not later.
        _ = footer.created_by, footer.metadata, [footer.schema.column(i).path for i in range(footer.num_columns)]
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid(f"{path}: its footer is damaged: {error}") from error
    return footer


def _read_footer(store: Store, path: str) -> pq.FileMetaData:
    local = store.local_path(path)
    if local is None:
        return footer_in(store, path)
    if not local.is_file():
        raise FileMissingError(f"{path} is not a regular file")
    return pq.read_metadata(str(local))
