"""Slices of the metadata table: Parquet files with the digest of their content in the name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.index.statistics.bound_cutting import cut_bounds
from dbt.adapters.zlayout.index.statistics.column_stats import (
    EXAMINED,
    column_paths,
    column_stats_table,
    with_column_paths,
)
from dbt.adapters.zlayout.index.statistics.merge import group_rows, merge_counts, merge_statistics
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.timeline.files.bounded_parquet import BoundedParquet, parquet_bytes
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles

COLUMN_STATS, PARTITION_STATS = "column_stats", "partition_stats"
FILE_COUNT = "file_count"
PARTITION_PREFIX = "partition."
WHOLE = "whole"
_DIGEST = re.compile(r"_([0-9a-f]{16})\.parquet$")


def slice_path(partition: str, instant: str, content: bytes) -> str:
    """Returns the path of a slice, relative to the table.

    Args:
        partition: ``column_stats`` or ``partition_stats``.
        instant: Of the commit that writes it.
        content: The slice; its digest becomes part of the name, so that readers can detect damage.
    """
    return f".zlayout/index/{partition}/{instant}_{_digest(content)}.parquet"


def verified(path: str, content: bytes) -> bytes:
    """Returns the content after checking it against the digest in its name.

    Raises:
        CorruptError: The content has another digest, or the name has none.
    """
    match = _DIGEST.search(path)
    if match is None or match[1] != _digest(content):
        raise CorruptError(f"index slice {path} is damaged: its content does not have the digest in its name")
    return content


def write_slices(files: DataFiles, column_stats: pa.Table) -> dict[str, bytes]:
    """Returns the slices for the files that a commit adds, sorted by path.

    Args:
        files: The added files.
        column_stats: From `footer_table`; files that it lacks get rows without statistics.

    Returns:
        Content by metadata partition; name each with `slice_path`.
    """
    files = files.take(pc.sort_indices(contiguous(files.column("path"))))
    rows, structs = _aligned(files, column_stats)
    examined = contiguous(column_stats.column(EXAMINED)).take(rows)
    wide = column_stats_table(contiguous(files.column("path")), list(structs), list(structs.values()), examined)
    for name in IDENTITY:
        wide = wide.append_column(name, contiguous(files.column(name)))
    return {
        COLUMN_STATS: parquet_bytes(wide),
        PARTITION_STATS: partition_slice(files, column_stats, files[:0]),
    }


def partition_slice(files: DataFiles, column_stats: pa.Table, gone: DataFiles) -> bytes:
    """Returns the ``partition_stats`` slice of files.

    Args:
        files: Added files; and, of each partition that lost a file, all files that it has now.
        column_stats: Their statistics; files that it lacks are unknown.
        gone: Removed files. The rows of their partitions are complete and supersede rows of older slices.
    """
    _, structs = _aligned(files, column_stats)
    both = files.plus(gone)
    texts = {name: contiguous(both.partition_values(name)) for name in both.partition_by}
    grouped = group_rows(list(texts.values()), len(both))
    groups, count = grouped.group_of_row[: len(files)], grouped.group_count
    merged = {path: merge_statistics(struct, groups, count) for path, struct in structs.items()}
    columns = {f"{PARTITION_PREFIX}{name}": values.take(grouped.first_rows) for name, values in texts.items()}
    columns[WHOLE] = pa.array(np.isin(np.arange(count), grouped.group_of_row[len(files) :]))
    columns[FILE_COUNT] = pa.array(np.bincount(groups, minlength=count))
    columns |= {name: merge_counts(contiguous(files.column(name)), groups, count) for name in IDENTITY}
    columns |= {f"c{number}": struct for number, struct in enumerate(merged.values())}
    return parquet_bytes(with_column_paths(pa.table(columns), list(merged)))


def _aligned(files: DataFiles, column_stats: pa.Table) -> tuple[pa.Array, dict[ColumnPath, pa.StructArray]]:
    """Returns for each file its row in the statistics (null if none), and the statistics in the order of the files."""
    rows = pc.index_in(contiguous(files.column("path")), value_set=contiguous(column_stats.column("path")))
    paths = column_paths(column_stats.schema)
    return rows, {path: cut_bounds(contiguous(column_stats.column(name)).take(rows)) for path, name in paths.items()}


def open_slice(content: bytes) -> BoundedParquet:
    """Opens a slice for reading some of its columns.

    Raises:
        CorruptError: The content is not Parquet.
    """
    try:
        return BoundedParquet(content)
    except CorruptError as error:
        raise CorruptError(f"an index slice cannot be read: {error}") from error


def read_columns(reader: BoundedParquet, names: Sequence[str]) -> pa.Table:
    """Reads whole columns of a slice.

    Raises:
        CorruptError: A column is missing, cannot be decoded, or would take far more memory than the slice.
    """
    if missing := [name for name in names if name not in reader.schema.names]:
        raise CorruptError(f"an index slice lacks the columns {', '.join(missing)}")
    try:
        # The reader interprets dots in names as levels and may return other columns with the same prefix.
        return reader.read(names).select(list(names))
    except CorruptError as error:
        raise CorruptError(f"an index slice cannot be read: {error}") from error


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
