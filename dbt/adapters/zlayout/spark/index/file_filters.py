"""Bloom filters of existing files. Each task reads whole files with Arrow, where that gives the values Spark sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import StoreError
from dbt.adapters.zlayout.index.bloom.filter_slices import FilterSlice
from dbt.adapters.zlayout.index.bloom.filter_table import FilterBuilder, filter_table
from dbt.adapters.zlayout.index.bloom.table_filters import FilesFilters, TableFilters
from dbt.adapters.zlayout.index.footers.parquet_values import writer_rules
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn, canonical_type
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.files.file_report import FilterPiece, filter_piece
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, run
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.schema.arrow_columns import at_path
from dbt.adapters.zlayout.store import Store, open_store
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PIECES = "filters binary, staged string"
_LACKING = {"path": pa.string(), "column": pa.int64(), "missing": pa.int64()}
_LACKING_SCHEMA = "path string, column long, missing long"
_MOST_TASKS = 1_000
_BATCH_ROWS = 1 << 17


def filters_of_files(
    spark: SparkSession,
    store: Store,
    instant: str,
    paths: Sequence[str],
    columns: Sequence[TrackedColumn],
    progress: Progress | None = None,
) -> tuple[FilterPiece, ...]:
    """Reads columns of files in one Spark job and returns their filters, one piece for each file.

    A file has no filter for a column that Arrow reads otherwise than Spark does, and none if it cannot be read.

    Args:
        spark: The session whose cluster reads.
        store: The table's folder.
        instant: Instant of the transaction, which stages large filters.
        paths: The files.
        columns: The columns.
        progress: Called with a line of text as the work goes on.
    """
    if not paths or not columns:
        return ()
    use_driver_python(spark)
    rows = spark.createDataFrame([(path,) for path in paths], "path string")
    parted = rows.repartition(min(len(paths), _MOST_TASKS))
    task = FilterTask(store.root_uri, instant, tuple(columns))
    found = run(spark, "bloom filters", progress, parted.mapInArrow(task.__call__, _PIECES).collect)
    return tuple(row.staged if row.filters is None else bytes(row.filters) for row in found)


@dataclass(frozen=True)
class FilterTask:
    """Task spec: reads files and returns their filters."""

    root_uri: str
    instant: str
    columns: tuple[TrackedColumn, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields a piece for each path of the first column."""
        store = open_store(self.root_uri)
        for batch in batches:
            for path in batch.column(0).to_pylist():
                piece = filter_piece(store, self.instant, self._filters(store, path))
                inline, staged = (piece, None) if isinstance(piece, bytes) else (None, piece)
                cells = [pa.array([inline], pa.binary()), pa.array([staged], pa.string())]
                yield pa.RecordBatch.from_arrays(cells, names=["filters", "staged"])

    def _filters(self, store: Store, path: str) -> pa.Table:
        try:
            values = values_in_file(store, path, self.columns)
        except (OSError, pa.ArrowException, StoreError):
            return filter_table([path], self.columns, {})
        found = {each.path: values[each.path].content() if each.path in values else None for each in self.columns}
        return filter_table([path], self.columns, {column: [content] for column, content in found.items()})


def values_in_file(store: Store, path: str, columns: Sequence[TrackedColumn]) -> dict[ColumnPath, FilterBuilder]:
    """Returns the distinct values of a file by column. Leaves out columns that Arrow reads otherwise than Spark.

    Raises:
        OSError, pyarrow.ArrowException, StoreError: The file cannot be read.
    """
    local = store.local_path(path)
    with pq.ParquetFile(str(local) if local is not None else pa.BufferReader(store.read(path))) as file:
        schema, rules = file.schema_arrow, writer_rules(file.metadata.created_by or "", file.metadata.metadata or {})
        lacking = [each for each in columns if _is_absent(schema, each)]
        read = [each for each in columns if each not in lacking and _reads_alike(schema, each, rules.old_dates)]
        builders = {each.path: FilterBuilder(each.type) for each in (*lacking, *read)}
        tops = list(dict.fromkeys(each.path[0] for each in read))
        if tops:
            for batch in file.iter_batches(_BATCH_ROWS, columns=tops, use_threads=False):
                rows = pa.Table.from_batches([batch])
                for each in read:
                    builders[each.path].add(at_path(rows, each.path))
    return builders


def lacking_values(
    spark: SparkSession,
    store: Store,
    slices: Sequence[str],
    files: DataFiles,
    columns: Sequence[TrackedColumn],
) -> pa.Table:
    """Reads files and returns the filters that lack values of theirs: queries for these values miss rows.

    Args:
        spark: The session whose cluster reads.
        store: The table's folder.
        slices: Paths of the slices of filters.
        files: The files.
        columns: The columns with filters.

    Returns:
        ``path`` string, ``column`` int64 (its position), ``missing`` int64 (number of values), one row for each.
    """
    empty = {name: pa.array([], kind) for name, kind in _LACKING.items()}
    if not len(files) or not columns or not slices:
        return pa.table(empty)
    use_driver_python(spark)
    given = list(zip(*(files[name].to_pylist() for name in ("path", *IDENTITY)), strict=True))
    rows = spark.createDataFrame(given, "path string, row_count long, size_bytes long, modified_ms long")
    task = CheckTask(store.root_uri, tuple(slices), tuple(columns))
    parted = rows.repartition(min(len(files), _MOST_TASKS))
    found = run(spark, "bloom filters", None, parted.mapInArrow(task.__call__, _LACKING_SCHEMA).collect)
    return pa.table({name: pa.array([row[name] for row in found], kind) for name, kind in _LACKING.items()})


@dataclass(frozen=True)
class CheckTask:
    """Task spec: reads files and compares their values with their filters."""

    root_uri: str
    slices: tuple[str, ...]
    columns: tuple[TrackedColumn, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields a row for each filter that lacks values, given files: ``path`` and the columns of `IDENTITY`."""
        store = open_store(self.root_uri)
        whole = TableFilters(self.slices, cache(partial(FilterSlice, store)), lambda _: None)
        for batch in batches:
            columns = {name: batch.column(number).to_pylist() for number, name in enumerate(("path", *IDENTITY))}
            groups = [""] * batch.num_rows
            filters = whole.of(DataFiles.from_columns((), partition_values=[], **columns, group=groups))
            for position, path in enumerate(columns["path"]):
                with suppress(OSError, pa.ArrowException, StoreError):
                    yield from self._lacking(store, path, position, filters)

    def _lacking(self, store: Store, path: str, position: int, filters: FilesFilters) -> Iterator[pa.RecordBatch]:
        values = values_in_file(store, path, self.columns)
        for number, column in enumerate(self.columns):
            content = filters.content(column.path, str(column.type), position)
            missing = 0 if content is None or column.path not in values else values[column.path].missing_in(content)
            if missing:
                cells = {"path": [path], "column": [number], "missing": [missing]}
                arrays = [pa.array(cells[name], kind) for name, kind in _LACKING.items()]
                yield pa.RecordBatch.from_arrays(arrays, names=list(_LACKING))


def _is_absent(schema: pa.Schema, column: TrackedColumn) -> bool:
    """Returns whether a file lacks a column, in any case of letters, so that all its rows have null there."""
    return column.absent_is_null and column.path[0].lower() not in {name.lower() for name in schema.names}


def _reads_alike(schema: pa.Schema, column: TrackedColumn, old_dates: bool) -> bool:
    if [name.lower() for name in schema.names].count(column.path[0].lower()) != 1:
        return False
    kind = pa.struct(list(schema))
    for name in column.path:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return False
        kind = kind.field(name).type
    days = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    # Other units than microseconds are cut by Spark.
    exact = not pa.types.is_timestamp(kind) or kind.unit == "us"
    return bool(exact and canonical_type(kind) == column.type and (old_dates or not days))
