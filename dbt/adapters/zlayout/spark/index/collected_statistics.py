"""Collects statistics of existing files, from their footers if these can be trusted and from their data otherwise.

Spark reads the data, so that values are what a query sees. Arrow compares them in Python workers, batch by batch,
without sorting or shuffling rows. It takes one Spark job for each set of columns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions

from dbt.adapters.zlayout.index.footers.footer import ColumnFooter, FooterStatistics, footer_statistics, footer_table
from dbt.adapters.zlayout.index.footers.from_data import columns_to_read, completed, entries_of
from dbt.adapters.zlayout.index.gaps import complete_cells
from dbt.adapters.zlayout.index.statistics.column_stats import (
    cast_stats,
    column_paths,
    column_stats_table,
    cut_bounds,
    stacked,
)
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.spark.files.existing_files import footers_found
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, in_halves, reading_session
from dbt.adapters.zlayout.spark.read.values_by_file import statistics_by_file
from dbt.adapters.zlayout.spark.schema.types import split_partition_columns, with_plain_texts
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
Seen = Mapping[ColumnPath, ColumnFooter]
Examine = Callable[[DataFiles, Mapping[str, Sequence[TrackedColumn]]], Mapping[str, Seen]]
"""Reads columns of files: takes files and, by path, the columns to read of each. See `examining`."""


@dataclass(frozen=True)
class Collected:
    """Statistics collected from some files.

    Attributes:
        files: The files that could be read, with their row counts.
        column_stats: One row per file, as the index stores it.
        unreadable: Paths of the other files, which are gone or are not Parquet files.
        data_files: Number of files whose data was read, not only the footer.
    """

    files: DataFiles
    column_stats: pa.Table
    unreadable: tuple[str, ...] = ()
    data_files: int = 0

    def plus(self, more: Collected) -> Collected:
        """Returns these statistics together with others."""
        return Collected(
            self.files.plus(more.files),
            stacked([self.column_stats, more.column_stats]),
            (*self.unreadable, *more.unreadable),
            self.data_files + more.data_files,
        )

    def only(self, keep: pa.Array) -> Collected:
        """Returns the statistics of some of the files.

        Args:
            keep: bool, one per file.
        """
        files = self.files.filter(keep)
        live = pc.is_in(self.column_stats.column("path"), value_set=contiguous(files["path"]))
        return replace(self, files=files, column_stats=self.column_stats.filter(live))


def collect(
    store: Store,
    files: DataFiles,
    columns: Sequence[TrackedColumn],
    examine: Examine,
    known: pa.Table | None = None,
    footers: Sequence[pq.FileMetaData | None] | None = None,
) -> Collected:
    """Collects statistics of files. What cannot be determined is unknown.

    Args:
        store: The table's folder.
        files: The files. Their row counts are ignored.
        columns: The columns to track.
        examine: Reads the data of files.
        known: Statistics of some of the files. Complete ones are kept and not collected again.
        footers: What `footers_found` returned for the files; None to read them.
    """
    if not len(files):
        return Collected(files, known.slice(0, 0) if known is not None else footer_table([], [], columns))
    found = footers_found(store, files["path"].to_pylist()) if footers is None else footers
    readable = pa.array([each is not None for each in found])
    unreadable = tuple(files.filter(pc.invert(readable))["path"].to_pylist())
    read = [each for each in found if each is not None]
    counts = pa.array([each.num_rows for each in read], pa.int64())
    live = _counted(files.filter(readable), counts)
    paths = live["path"].to_pylist()
    entries = [footer_statistics(each, columns) for each in read]
    stored = _known_statistics(known, live, columns)
    keep = {path: complete_cells(stats) for path, stats in stored.items()}
    wanted = {}
    for number, (path, footer, entry) in enumerate(zip(paths, read, entries, strict=True)):
        left_open = columns_to_read(footer, columns, entry)
        if asked := tuple(each for each in left_open if each.path not in keep or not keep[each.path][number].as_py()):
            wanted[path] = asked
    examined, entries = _examined(live, columns, read, entries, wanted, examine)
    fresh = footer_table(paths, entries, columns)
    structs = {each.path: contiguous(fresh.column(f"c{number}")) for number, each in enumerate(columns)}
    structs |= {path: pc.if_else(keep[path], stats, structs[path]) for path, stats in stored.items()}
    table = column_stats_table(
        contiguous(fresh.column("path")), list(structs), list(map(cut_bounds, structs.values())), examined
    )
    return Collected(live, table, unreadable, len(wanted))


def _counted(files: DataFiles, row_counts: pa.Array) -> DataFiles:
    position = files.arrow.schema.get_field_index("row_count")
    return DataFiles(files.arrow.set_column(position, files.arrow.schema.field("row_count"), row_counts))


def _examined(
    files: DataFiles,
    columns: Sequence[TrackedColumn],
    footers: Sequence[pq.FileMetaData],
    entries: Sequence[FooterStatistics],
    wanted: Mapping[str, Sequence[TrackedColumn]],
    examine: Examine,
) -> tuple[pa.Array, list[FooterStatistics]]:
    """Completes the entries from data. Also returns, per file, whether everything that was wanted has been read."""
    paths = files["path"].to_pylist()
    seen = _seen(files, wanted, examine) if wanted else {}
    done = [
        completed(footer, columns, entry, seen[path]) if path in seen else entry
        for path, footer, entry in zip(paths, footers, entries, strict=True)
    ]
    return pa.array([path in seen or path not in wanted for path in paths], pa.bool_()), done


def _seen(files: DataFiles, wanted: Mapping[str, Sequence[TrackedColumn]], examine: Examine) -> dict[str, Seen]:
    """Reads the data of the files that can be read. Damaged files are left out: less is known, but nothing is wrong."""

    def read(paths: list[str]) -> Mapping[str, Seen]:
        return examine(files, {path: wanted[path] for path in paths})

    def failed(paths: list[str], error: Exception) -> None:
        _LOG.warning("the data of %s and %d more files cannot be read: %s", paths[0], len(paths) - 1, error)

    return {path: seen for some in in_halves(list(wanted), read, failed) for path, seen in some.items()}


def _known_statistics(
    known: pa.Table | None, files: DataFiles, columns: Sequence[TrackedColumn]
) -> dict[ColumnPath, pa.StructArray]:
    """Returns the known statistics by column, one row per file; null for files without any."""
    if known is None:
        return {}
    names = column_paths(known.schema)
    rows = pc.index_in(contiguous(files["path"]), value_set=contiguous(known.column("path")))
    return {
        each.path: cast_stats(contiguous(known.column(names[each.path])), each.type).take(rows)
        for each in columns
        if each.path in names
    }


def examining(
    spark: SparkSession,
    store: Store,
    schema_json: str,
    partition_by: tuple[str, ...],
    progress: Progress | None = None,
) -> Examine:
    """Returns a function that reads columns of one table's files and returns their statistics.

    Args:
        spark: The session whose cluster reads.
        store: The table's folder.
        schema_json: The table's columns, as Spark's JSON.
        partition_by: The partition columns, which the files do not hold.
        progress: Called with a line of text as the work goes on.
    """
    data_json, _ = split_partition_columns(schema_json, partition_by)
    return partial(_seen_in_data, spark, store, data_json, progress)


def _seen_in_data(
    spark: SparkSession,
    store: Store,
    data_json: str,
    progress: Progress | None,
    files: DataFiles,
    wanted: Mapping[str, Sequence[TrackedColumn]],
) -> dict[str, Seen]:
    """Reads columns of files and returns their statistics.

    Args:
        spark: The session whose cluster reads.
        store: The table's folder.
        data_json: The columns in the files, as Spark's JSON.
        progress: Called with a line of text as the work goes on.
        files: Files, which include those to read.
        wanted: The columns to read of each file, by its path.

    Returns:
        Statistics by path and column. Files without a row are left out.
    """
    session = reading_session(spark)
    by_columns: dict[tuple[TrackedColumn, ...], list[str]] = {}
    for path, columns in wanted.items():
        by_columns.setdefault(tuple(columns), []).append(path)
    found: dict[str, Seen] = {}
    for columns, paths in by_columns.items():
        some = files.filter(pc.is_in(files["path"], value_set=pa.array(paths, pa.string())))
        names = [functions.col(".".join(map(backquoted, each.path))) for each in columns]
        merged = statistics_by_file(
            session, store, with_plain_texts(data_json, collated=True), some, columns, names, progress
        )
        entries = [entries_of(contiguous(merged.column(f"c{i}"))) for i in range(len(columns))]
        for path, *row in zip(merged.column("path").to_pylist(), *entries, strict=True):
            found[path] = {each.path: entry for each, entry in zip(columns, row, strict=True)}
    return found
