"""What existing files hold, for Bloom filters and lookup indexes: tasks read files with Arrow.

They read only columns of which Arrow gives the values that Spark sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import StoreError
from dbt.adapters.zlayout.index.bloom.filter_slices import BLOOM_FILTERS, FilterSlice
from dbt.adapters.zlayout.index.bloom.filter_table import FilterBuilder, filter_table
from dbt.adapters.zlayout.index.bloom.hashing import Hashes
from dbt.adapters.zlayout.index.bloom.table_filters import FilesFilters, TableFilters
from dbt.adapters.zlayout.index.footers.parquet_values import writer_rules
from dbt.adapters.zlayout.index.lookup.hash_runs import run_bytes
from dbt.adapters.zlayout.index.lookup.keys import HashCollector, LookupKey
from dbt.adapters.zlayout.index.lookup.lookup_slices import LOOKUPS, LookupSlice
from dbt.adapters.zlayout.index.lookup.table_lookups import FilesLookups, TableLookups
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn, canonical_type
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.commit.optional_slices import NOTHING_OPTIONAL, NewFilters, NewLookups, NewOptional
from dbt.adapters.zlayout.spark.files.file_report import filter_piece, piece_of
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, run
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.schema.arrow_columns import at_path
from dbt.adapters.zlayout.store import Store, open_store
from dbt.adapters.zlayout.store.protocol import PartsFile
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles
from dbt.adapters.zlayout.timeline.log.entry import IndexSlices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PIECES = {"filters": pa.binary(), "staged": pa.string(), "hashes": pa.binary(), "staged_hashes": pa.string()}
_PIECES_SCHEMA = "filters binary, staged string, hashes binary, staged_hashes string"
_LACKING = {"path": pa.string(), "kind": pa.string(), "column": pa.int64(), "missing": pa.int64()}
_LACKING_SCHEMA = "path string, kind string, column long, missing long"
_MOST_TASKS = 1_000
_BATCH_ROWS = 1 << 14
# A check of one file looks up as many of its hashes, evenly spread, so that it does not read the whole index.
_MOST_CHECKED = 100_000


@dataclass(frozen=True)
class Wanted:
    """The optional parts of the index that files should have.

    Attributes:
        filtered: Columns with Bloom filters.
        looked_up: Lookup indexes.
    """

    filtered: tuple[TrackedColumn, ...] = ()
    looked_up: tuple[LookupKey, ...] = ()

    @property
    def columns(self) -> Sequence[TrackedColumn]:
        """Every column of any of them, once."""
        found = {each.path: each for each in self.filtered}
        return list((found | {each.path: each for key in self.looked_up for each in key.columns}).values())


@dataclass(frozen=True)
class FileValues:
    """The distinct values of a file. Columns that Arrow reads otherwise than Spark are left out.

    Attributes:
        filters: By column.
        hashes: By lookup index.
    """

    filters: dict[ColumnPath, FilterBuilder]
    hashes: dict[LookupKey, HashCollector]


def optional_of_files(
    spark: SparkSession,
    store: Store,
    instant: str,
    files: DataFiles,
    wanted: Wanted,
    progress: Progress | None = None,
) -> NewOptional:
    """Reads columns of files in one Spark job and returns what they add to the optional parts of the index.

    A file has nothing for a column that Arrow reads otherwise than Spark does, and nothing if it cannot be read.

    Args:
        spark: The session whose cluster reads.
        store: The table's folder.
        instant: Instant of the transaction, which stages large parts.
        files: The files.
        wanted: What they should have.
        progress: Called with a line of text as the work goes on.
    """
    paths = files["path"].to_pylist()
    if not paths or not wanted.columns:
        return NOTHING_OPTIONAL
    use_driver_python(spark)
    rows = spark.createDataFrame([(path,) for path in paths], "path string")
    parted = rows.repartition(min(len(paths), _MOST_TASKS))
    task = ValuesTask(store.root_uri, instant, wanted)
    found = run(spark, "index of values", progress, parted.mapInArrow(task.__call__, _PIECES_SCHEMA).collect)
    filters = tuple(row.staged if row.filters is None else bytes(row.filters) for row in found)
    hashes = tuple(row.staged_hashes if row.hashes is None else bytes(row.hashes) for row in found)
    return NewOptional(
        NewFilters(filters if wanted.filtered else (), files), NewLookups(hashes if wanted.looked_up else (), files)
    )


@dataclass(frozen=True)
class ValuesTask:
    """Task spec: reads files and returns their Bloom filters and the hashes of their values."""

    root_uri: str
    instant: str
    wanted: Wanted

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the pieces of each path of the first column; none for a file that cannot be read."""
        store = open_store(self.root_uri)
        for batch in batches:
            for path in batch.column(0).to_pylist():
                values = self._values(store, path)
                if values is None:
                    continue
                cells: dict[str, bytes | str | None] = dict.fromkeys(_PIECES)
                if self.wanted.filtered:
                    filters = filter_piece(store, self.instant, self._filters(path, values))
                    cells["filters" if isinstance(filters, bytes) else "staged"] = filters
                if self.wanted.looked_up:
                    hashes = piece_of(store, self.instant, run_bytes(path, self._hashes(values)), "hashes.runs")
                    cells["hashes" if isinstance(hashes, bytes) else "staged_hashes"] = hashes
                arrays = [pa.array([cells[name]], kind) for name, kind in _PIECES.items()]
                yield pa.RecordBatch.from_arrays(arrays, names=list(_PIECES))

    def _values(self, store: Store, path: str) -> FileValues | None:
        try:
            return values_in_file(store, path, self.wanted)
        except (OSError, pa.ArrowException, StoreError):
            return None

    def _filters(self, path: str, values: FileValues) -> pa.Table:
        columns, known = self.wanted.filtered, values.filters
        found = {each.path: known[each.path].content() if each.path in known else None for each in columns}
        return filter_table([path], columns, {column: [content] for column, content in found.items()})

    def _hashes(self, values: FileValues) -> dict[LookupKey, Hashes | None]:
        keys = self.wanted.looked_up
        return {key: values.hashes[key].hashes() if key in values.hashes else None for key in keys}


def values_in_file(store: Store, path: str, wanted: Wanted) -> FileValues:
    """Returns the distinct values of a file.

    Raises:
        OSError, pyarrow.ArrowException, StoreError: The file cannot be read.
    """
    local = store.local_path(path)
    source = PartsFile(store, path) if local is None else str(local)
    # Parts of a remote file that lie close together come in one request.
    with pq.ParquetFile(source, pre_buffer=local is None) as file:
        schema, rules = file.schema_arrow, writer_rules(file.metadata.created_by or "", file.metadata.metadata or {})
        lacking = [each for each in wanted.columns if _is_absent(schema, each)]
        read = [each for each in wanted.columns if each not in lacking and _reads_alike(schema, each, rules.old_dates)]
        known = {each.path for each in (*lacking, *read)}
        filters = {each.path: FilterBuilder(each.type) for each in wanted.filtered if each.path in known}
        hashes = {key: HashCollector(key) for key in wanted.looked_up if known.issuperset(key.paths)}
        tops = list(dict.fromkeys(each.path[0] for each in read))
        # Without a column to read, one row of nulls stands for all.
        none = pa.table({"": pa.nulls(min(1, file.metadata.num_rows))})
        batches = file.iter_batches(_BATCH_ROWS, columns=tops, use_threads=False) if tops else none.to_batches()
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            found = {each.path: at_path(rows, each.path) for each in read}
            found |= {each.path: pa.nulls(batch.num_rows, each.type) for each in lacking}
            for column, builder in filters.items():
                builder.add(found[column])
            for key, collector in hashes.items():
                collector.add([found[column] for column in key.paths])
    return FileValues(filters, hashes)


def lacking_values(spark: SparkSession, store: Store, index: IndexSlices, files: DataFiles, wanted: Wanted) -> pa.Table:
    """Reads files and returns the filters and lookup entries that lack values of theirs: queries miss rows.

    Of a file with more than 100,000 values, so many are looked up in its lookup entries.

    Args:
        spark: The session whose cluster reads.
        store: The table's folder.
        index: The slices of the version.
        files: The files.
        wanted: What the files should have.

    Returns:
        ``path`` string, ``kind`` string ('bloom' or 'lookup'), ``column`` int64 (position among the filtered columns or
        the lookup indexes), ``missing`` int64 (number of values), one row for each.
    """
    slices = {name: tuple(index.get(name, ())) for name in (BLOOM_FILTERS, LOOKUPS)}
    if not len(files) or not wanted.columns or not any(slices.values()):
        return pa.table({name: pa.array([], kind) for name, kind in _LACKING.items()})
    use_driver_python(spark)
    given = list(zip(*(files[name].to_pylist() for name in ("path", *IDENTITY)), strict=True))
    rows = spark.createDataFrame(given, "path string, row_count long, size_bytes long, modified_ms long")
    task = CheckTask(store.root_uri, slices[BLOOM_FILTERS], slices[LOOKUPS], wanted)
    parted = rows.repartition(min(len(files), _MOST_TASKS))
    found = run(spark, "index of values", None, parted.mapInArrow(task.__call__, _LACKING_SCHEMA).collect)
    return pa.table({name: pa.array([row[name] for row in found], kind) for name, kind in _LACKING.items()})


@dataclass(frozen=True)
class CheckTask:
    """Task spec: reads files and compares their values with their filters and lookup entries."""

    root_uri: str
    filter_slices: tuple[str, ...]
    lookup_slices: tuple[str, ...]
    wanted: Wanted

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields a row for each part that lacks values, given files: ``path`` and the columns of `IDENTITY`."""
        store = open_store(self.root_uri)
        filters = TableFilters(self.filter_slices, cache(partial(FilterSlice, store)), lambda _: None)
        lookups = TableLookups(self.lookup_slices, partial(LookupSlice, store), lambda _: None)
        for batch in batches:
            columns = {name: batch.column(number).to_pylist() for number, name in enumerate(("path", *IDENTITY))}
            groups = [""] * batch.num_rows
            files = DataFiles.from_columns((), partition_values=[], **columns, group=groups)
            told = filters.of(files), lookups.of(files)
            for position, path in enumerate(columns["path"]):
                with suppress(OSError, pa.ArrowException, StoreError):
                    values = values_in_file(store, path, self.wanted)
                    for kind, number, missing in self._lacking(values, position, *told):
                        cells = {"path": [path], "kind": [kind], "column": [number], "missing": [missing]}
                        arrays = [pa.array(cells[name], kind) for name, kind in _LACKING.items()]
                        yield pa.RecordBatch.from_arrays(arrays, names=list(_LACKING))

    def _lacking(
        self, values: FileValues, position: int, filters: FilesFilters, lookups: FilesLookups
    ) -> Iterator[tuple[str, int, int]]:
        for number, column in enumerate(self.wanted.filtered):
            content = filters.content(column.path, str(column.type), position)
            builder = values.filters.get(column.path)
            if content is not None and builder is not None and (missing := builder.missing_in(content)):
                yield "bloom", number, missing
        for number, key in enumerate(self.wanted.looked_up):
            hashes = values.hashes[key].hashes() if key in values.hashes else None
            if hashes is None:
                continue
            spread = np.linspace(0, len(hashes) - 1, min(len(hashes), _MOST_CHECKED)).astype(np.int64)
            if missing := lookups.missing(key, hashes[spread], position):
                yield "lookup", number, missing


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
    # Day-time intervals are plain numbers in files.
    stored = pa.int64() if pa.types.is_duration(column.type) else column.type
    return bool(exact and canonical_type(kind) == stored and (old_dates or not days))
