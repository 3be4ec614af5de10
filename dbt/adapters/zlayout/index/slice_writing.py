"""The index slices that a commit writes, and their names."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.bloom.hashing import hashes_of_each, hashes_of_tuples
from dbt.adapters.zlayout.index.column_slices import GROUP_ROWS, digest_of, footer_of, slice_bytes
from dbt.adapters.zlayout.index.statistics.column_stats import (
    EXAMINED,
    column_paths,
    column_stats_table,
    cut_bounds,
    with_column_paths,
)
from dbt.adapters.zlayout.index.statistics.merge import group_rows, merge_counts, merge_statistics
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles

COLUMN_STATS, PARTITION_STATS = "column_stats", "partition_stats"
FILE_COUNT = "file_count"
PARTITION_PREFIX = "partition."
WHOLE = "whole"
FILE_KEY = "file_key"


def slice_path(partition: str, instant: str, content: bytes) -> str:
    """Returns the path of a slice, relative to the table.

    Args:
        partition: ``column_stats`` or ``partition_stats``.
        instant: The instant of the commit that writes it.
        content: The slice. The digest of its footer becomes part of the name, so that readers can detect damage.
    """
    return f".zlayout/index/{partition}/{instant}_{digest_of(footer_of(content)).hex()}.stats"


def write_slices(files: DataFiles, column_stats: pa.Table, group_rows: int = GROUP_ROWS) -> dict[str, bytes]:
    """Returns the slices for the files that a commit adds, sorted by path.

    Args:
        files: The added files.
        column_stats: From `footer_table`; files that it lacks get rows without statistics.
        group_rows: Files of a row group.

    Returns:
        Content by index partition; name each with `slice_path`.
    """
    files = files.take(pc.sort_indices(contiguous(files.column("path"))))
    rows, structs = _aligned(files, column_stats)
    examined = contiguous(column_stats.column(EXAMINED)).take(rows)
    wide = column_stats_table(contiguous(files.column("path")), list(structs), list(structs.values()), examined)
    for name in IDENTITY:
        wide = wide.append_column(name, contiguous(files.column(name)))
    wide = wide.append_column(FILE_KEY, file_keys(files))
    return {
        COLUMN_STATS: slice_bytes(wide, first_paths=True, group_rows=group_rows),
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
    # The statistics first: what every scan needs is next to the footer, which is read anyway.
    columns: dict[str, pa.Array] = {f"c{number}": struct for number, struct in enumerate(merged.values())}
    columns |= {f"{PARTITION_PREFIX}{name}": values.take(grouped.first_rows) for name, values in texts.items()}
    columns[WHOLE] = pa.array(np.isin(np.arange(count), grouped.group_of_row[len(files) :]))
    columns[FILE_COUNT] = pa.array(np.bincount(groups, minlength=count))
    columns |= {name: merge_counts(contiguous(files.column(name)), groups, count) for name in IDENTITY}
    return slice_bytes(with_column_paths(pa.table(columns), list(merged)), first_paths=False)


def _aligned(files: DataFiles, column_stats: pa.Table) -> tuple[pa.Array, dict[ColumnPath, pa.StructArray]]:
    """Returns for each file its row in the statistics (null if none), and the statistics in the order of the files."""
    rows = pc.index_in(contiguous(files.column("path")), value_set=contiguous(column_stats.column("path")))
    paths = column_paths(column_stats.schema)
    return rows, {path: cut_bounds(contiguous(column_stats.column(name)).take(rows)) for path, name in paths.items()}


def file_keys(files: DataFiles | pa.Table) -> pa.Array:
    """Returns the key of each file, uint64. A file that changes gets another.

    Args:
        files: With ``path`` and the columns of `IDENTITY`; a file with a null among them has no key.
    """
    columns = [contiguous(files.column(name)) for name in ("path", *IDENTITY)]
    mask = None
    if any(column.null_count for column in columns):
        mask = np.any([column.is_null().to_numpy(zero_copy_only=False) for column in columns], axis=0)
        columns = [column.fill_null("" if pa.types.is_string(column.type) else 0) for column in columns]
    numbers = [column.cast(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64) for column in columns[1:]]
    return pa.array(hashes_of_tuples([hashes_of_each(columns[0]), *numbers]), mask=mask)
