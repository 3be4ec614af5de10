"""Verifies the index: whether it lists the files of the folder, and whether its cells agree with footers and data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.column_names import format_column_path, format_column_set
from dbt.adapters.zlayout.config.table_config import StatisticsConfig, TableConfig
from dbt.adapters.zlayout.index.footers.footer import footer_statistics, footer_table
from dbt.adapters.zlayout.index.footers.from_data import completed, readable_columns
from dbt.adapters.zlayout.index.statistics.column_stats import cast_stats, column_paths, stats_type
from dbt.adapters.zlayout.index.statistics.merge import merge_statistics
from dbt.adapters.zlayout.index.statistics.partitions import partition_folder
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.index.table_index import TableIndex
from dbt.adapters.zlayout.index.verification import (
    LOST_FILE_ADVICE,
    NO_INDEX_ROW,
    ORPHAN,
    different_counts,
    lost_files,
    stale_entries,
    values_that_lack,
    wrong_cells,
)
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.publish.spark_manifest import is_published, manifest_path
from dbt.adapters.zlayout.spark.commit.expression_stats import lacking_of_expressions, statistics_of_expressions
from dbt.adapters.zlayout.spark.files.existing_files import footers_found, listed_files
from dbt.adapters.zlayout.spark.index.collected_statistics import examining
from dbt.adapters.zlayout.spark.index.file_values import lacking_values
from dbt.adapters.zlayout.spark.index.lacking_indexes import wanted_columns
from dbt.adapters.zlayout.spark.index.outside_changes import missing_files
from dbt.adapters.zlayout.spark.snapshot.table_layout import (
    TableLayout,
    tracked_of,
)
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.retention.orphans import orphans, stored_data_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALL_COLUMNS = TableConfig(statistics=StatisticsConfig(1 << 30))
_Stats = Mapping[ColumnPath, pa.StructArray]
_OTHER_MANIFEST = "Spark's manifest is missing, or lists other files than the newest version"


def verify_index(spark: SparkSession, opened: TableSnapshot, *, data: bool) -> pa.Table:
    """Returns each cell of the index that contradicts the files.

    It also returns files that a managed table lists but that are gone or are not Parquet files. Queries that need them
    fail. In an indexed table, it ignores files that have changed since they were indexed: no query relies on their
    cells, and the freshness test reports them.

    Args:
        spark: The session whose cluster reads data.
        opened: The table.
        data: Whether to read all tracked columns. Otherwise only footers are compared.

    Returns:
        The text columns ``path`` (with a trailing slash for a partition), ``column``, ``cell``, ``stored`` and
        ``found``. A lost file has the cell ``file``.
    """
    files = opened.snapshot.files
    if not opened.managed:
        files = files.filter(files.same_as(listed_files(opened.store, opened.partition_columns)))
    footers = footers_found(opened.store, files["path"].to_pylist())
    whole = len(files) == len(opened.snapshot.files) and None not in footers
    readable = pa.array([each is not None for each in footers], pa.bool_())
    lost = _lost(opened, files.filter(pc.invert(readable)))
    files = files.filter(readable)
    paths = contiguous(files["path"])
    known = opened.index.stored(files)
    columns = _columns(opened, known)
    rows = pc.index_in(paths, value_set=contiguous(known.column("path")))
    names = column_paths(known.schema)
    stored = {
        each.path: cast_stats(contiguous(known.column(names[each.path])), each.type).take(rows) for each in columns
    }
    read = [each for each in footers if each is not None]
    entries = [footer_statistics(each, columns) for each in read]
    if data:
        examine = examining(spark, opened.store, opened.schema_json, opened.partition_columns)
        wanted = {path: readable_columns(each, columns) for path, each in zip(paths.to_pylist(), read, strict=True)}
        seen = examine(files, {path: asked for path, asked in wanted.items() if asked})
        entries = [
            completed(footer, columns, entry, seen.get(path, {}))
            for path, footer, entry in zip(paths.to_pylist(), read, entries, strict=True)
        ]
    table = footer_table(paths.to_pylist(), entries, columns)
    found = {each.path: contiguous(table.column(f"c{number}")) for number, each in enumerate(columns)}
    counts = pa.array([each.num_rows for each in read], pa.int64())
    wrong = [
        *lost,
        different_counts(paths, "row_count", contiguous(files["row_count"]), counts),
        wrong_cells(paths, stored, found),
    ]
    if data:
        wrong.append(_wrong_values(spark, opened, files))
        wrong.append(_wrong_expressions(spark, opened, files, known))
        wrong.append(_wrong_values_of_expressions(spark, opened, files))
    if whole:
        wrong.append(_wrong_partitions(opened, columns, found))
    return pa.concat_tables(wrong).sort_by([(name, "ascending") for name in ("path", "column", "cell")])


def _wrong_values(spark: SparkSession, opened: TableSnapshot, files: DataFiles) -> pa.Table:
    """Returns the Bloom filters and lookup entries that lack values of their files."""
    layout = TableLayout.of_version(opened.snapshot)
    wanted = wanted_columns(layout)
    found = lacking_values(spark, opened.store, opened.snapshot.index, files, wanted)
    names = {
        "bloom": [format_column_path(each.path) for each in wanted.filtered],
        "lookup": [format_column_set(key.paths) for key in wanted.looked_up],
    }
    pairs = zip(found.column("kind").to_pylist(), found.column("column").to_pylist(), strict=True)
    columns = pa.array([names[kind][number] for kind, number in pairs], pa.string())
    return values_that_lack(found.column("path"), found.column("kind"), columns, found.column("missing"))


def _wrong_expressions(spark: SparkSession, opened: TableSnapshot, files: DataFiles, known: pa.Table) -> pa.Table:
    """Returns the wrong statistics of expressions, as this session understands these."""
    layout = TableLayout.of_version(opened.snapshot)
    if not layout.config.indexes.stats_expressions:
        return wrong_cells(contiguous(files["path"]), {}, {})
    found = statistics_of_expressions(spark, opened.store, files, layout)
    paths, names, stored_names = (
        contiguous(found.column("path")),
        column_paths(found.schema),
        column_paths(known.schema),
    )
    rows = pc.index_in(paths, value_set=contiguous(known.column("path")))
    both = [path for path in names if path in stored_names]
    stored = {path[1:2]: contiguous(known.column(stored_names[path])).take(rows) for path in both}
    return wrong_cells(paths, stored, {path[1:2]: contiguous(found.column(names[path])) for path in both})


def _wrong_values_of_expressions(spark: SparkSession, opened: TableSnapshot, files: DataFiles) -> pa.Table:
    """Returns the Bloom filters and entries of expressions that lack values, as this session understands these."""
    layout = TableLayout.of_version(opened.snapshot)
    found = lacking_of_expressions(spark, opened.store, opened.snapshot.index, files, layout)
    types = pa.string(), pa.string(), pa.string(), pa.int64()
    paths, kinds, expressions, missing = (pa.array([row[i] for row in found], each) for i, each in enumerate(types))
    return values_that_lack(paths, kinds, expressions, missing)


def _lost(opened: TableSnapshot, unread: DataFiles) -> Sequence[pa.Table]:
    """Returns the rows for files without a readable footer, if the table is managed."""
    if not opened.managed or not len(unread):
        return []
    gone = pc.is_in(unread["path"], value_set=pa.array(missing_files(opened.store, unread), pa.string()))
    paths, gone = contiguous(unread["path"]), contiguous(gone)
    return [
        lost_files(paths.filter(gone), f"not in the folder; {LOST_FILE_ADVICE}"),
        lost_files(paths.filter(pc.invert(gone)), f"not a readable Parquet file; {LOST_FILE_ADVICE}"),
    ]


def _columns(opened: TableSnapshot, known: pa.Table) -> Sequence[TrackedColumn]:
    """Returns every column of the table that the index has statistics of."""
    names = column_paths(known.schema)
    every = tracked_of(_ALL_COLUMNS, opened.schema_json, opened.partition_columns)
    return [each for each in every if each.path in names]


def _wrong_partitions(opened: TableSnapshot, columns: Sequence[TrackedColumn], found: _Stats) -> pa.Table:
    files = opened.snapshot.files
    stated = opened.index.partition_statistics(files, [each.path for each in columns])
    partition, count = stated.partition_of_file, len(stated.statistics.row_count)
    stored, merged = {}, {}
    for each in columns:
        bounds = stated.statistics.column(each.path)
        if bounds is not None:
            stored[each.path] = cast_stats(_struct(bounds), each.type)
            merged[each.path] = merge_statistics(found[each.path], partition, count)
    return wrong_cells(_folders(files, partition.tolist(), count), stored, merged)


def _folders(files: DataFiles, partition: Sequence[int], count: int) -> pa.Array:
    firsts = dict(zip(reversed(partition), reversed(range(len(files))), strict=True))
    values = [
        [(name, files.partition_values(name)[firsts[number]].as_py()) for name in files.partition_by]
        for number in range(count)
    ]
    return pa.array([f"{partition_folder(each)}/" for each in values], pa.string())


def _struct(bounds: ColumnBounds) -> pa.StructArray:
    fields = [
        bounds.minimum,
        bounds.maximum,
        bounds.minimum_exact,
        bounds.maximum_exact,
        bounds.null_count,
        bounds.nan_count,
        pa.nulls(len(bounds.minimum), pa.int64()),
    ]
    return pa.StructArray.from_arrays(fields, fields=list(stats_type(bounds.type)))


def stale_files(opened: TableSnapshot) -> pa.Table:
    """Returns the files about which snapshot, index and folder disagree.

    Returns:
        ``path`` string, ``reason`` string, sorted. No rows if everything is fresh.
    """
    store, files = opened.store, opened.snapshot.files
    stored = stored_data_files(store)
    on_disk = pa.table(
        {
            "path": pa.array([each.path for each in stored], pa.string()),
            "size_bytes": pa.array([each.size_bytes for each in stored], pa.int64()),
        }
    )

    def row_counts(paths: Sequence[str]) -> Mapping[str, int]:
        footers = zip(paths, footers_found(store, paths), strict=True)
        # No row count equals -1, so a file that cannot be read is reported.
        return {path: -1 if footer is None else int(footer.num_rows) for path, footer in footers}

    index_rows = TableIndex(store, opened.snapshot.index).rows()
    if not opened.managed:
        # Every file in an indexed table's folder is live. If no version lists a file, the index is behind.
        found = stale_entries(files, on_disk, index_rows, footer_row_counts=row_counts)
        behind = pc.replace_substring(found.column("reason"), ORPHAN, NO_INDEX_ROW)
        return found.set_column(1, "reason", behind)
    timeline = opened.timeline
    lost = {each.path for each in orphans(timeline, stored)}
    retained = {each.path for each in stored} - lost
    found = stale_entries(files, on_disk, index_rows, footer_row_counts=row_counts, retained_paths=retained)
    # Sessions that skip files read the log and all others the manifest. Both must agree on the newest version.
    newest = timeline.snapshot()
    if is_published(store, newest):
        return found
    other = {"path": [manifest_path(newest.version)], "reason": [_OTHER_MANIFEST]}
    return pa.concat_tables([found, pa.table(other, found.schema)])
