"""What existing files hold, for Bloom filters and lookup indexes: tasks read files with Arrow.

They read only columns of which Arrow gives the values that Spark sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import StoreError
from dbt.adapters.zlayout.index.footers.parquet_values import writer_rules
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn, canonical_type
from dbt.adapters.zlayout.spark.files.distinct_values import (
    LACKING,
    LACKING_SCHEMA,
    PIECES_SCHEMA,
    FileValues,
    Pieces,
    ValueTables,
    Wanted,
    value_slices,
)
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, run
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.schema.arrow_columns import at_path
from dbt.adapters.zlayout.store import Store, open_store
from dbt.adapters.zlayout.store.protocol import PartsFile
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles
from dbt.adapters.zlayout.timeline.log.entry import IndexSlices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_TASKS = 1_000
_BATCH_ROWS = 1 << 14


def optional_of_files(
    spark: SparkSession,
    store: Store,
    instant: str,
    files: DataFiles,
    wanted: Wanted,
    progress: Progress | None = None,
) -> Pieces:
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
        return Pieces()
    use_driver_python(spark)
    rows = spark.createDataFrame([(path,) for path in paths], "path string")
    parted = rows.repartition(min(len(paths), _MOST_TASKS))
    task = ValuesTask(store.root_uri, instant, wanted)
    return Pieces.of_rows(
        run(spark, "index of values", progress, parted.mapInArrow(task.__call__, PIECES_SCHEMA).collect)
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
                yield values.pieces(store, self.instant, path, self.wanted)

    def _values(self, store: Store, path: str) -> FileValues | None:
        try:
            return values_in_file(store, path, self.wanted)
        except (OSError, pa.ArrowException, StoreError):
            return None


def values_in_file(store: Store, path: str, wanted: Wanted) -> FileValues:
    """Returns the distinct values of a file.

    Raises:
        OSError, pyarrow.ArrowException, StoreError: The file cannot be read.
    """
    local = store.local_path(path)
    source = PartsFile(store, path) if local is None else str(local)
    # Parts of a remote file that lie close together come in one request.
    with pq.ParquetFile(source, pre_buffer=local is None, page_checksum_verification=True) as file:
        schema, rules = file.schema_arrow, writer_rules(file.metadata.created_by or "", file.metadata.metadata or {})
        lacking = [each for each in wanted.columns if _is_absent(schema, each)]
        read = [each for each in wanted.columns if each not in lacking and _reads_alike(schema, each, rules.old_dates)]
        values = FileValues.of_columns(wanted, [*lacking, *read])
        tops = list(dict.fromkeys(each.path[0] for each in read))
        # Without a column to read, one row of nulls stands for all.
        none = pa.table({"": pa.nulls(min(1, file.metadata.num_rows))})
        batches = file.iter_batches(_BATCH_ROWS, columns=tops, use_threads=False) if tops else none.to_batches()
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            found = {each.path: at_path(rows, each.path) for each in read}
            found |= {each.path: pa.nulls(batch.num_rows, each.type) for each in lacking}
            values.add(found)
    return values


def lacking_values(spark: SparkSession, store: Store, index: IndexSlices, files: DataFiles, wanted: Wanted) -> pa.Table:
    """Reads files and returns the filters and lookup entries that lack values of theirs: queries miss rows.

    At most 100,000 values of a file are looked up in its lookup entries.

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
    slices = value_slices(index)
    if not len(files) or not wanted.columns or not any(slices.values()):
        return pa.table({name: pa.array([], kind) for name, kind in LACKING.items()})
    use_driver_python(spark)
    given = list(zip(*(files[name].to_pylist() for name in ("path", *IDENTITY)), strict=True))
    rows = spark.createDataFrame(given, "path string, row_count long, size_bytes long, modified_ms long")
    task = CheckTask(store.root_uri, slices, wanted)
    parted = rows.repartition(min(len(files), _MOST_TASKS))
    found = run(spark, "index of values", None, parted.mapInArrow(task.__call__, LACKING_SCHEMA).collect)
    return pa.table({name: pa.array([row[name] for row in found], kind) for name, kind in LACKING.items()})


@dataclass(frozen=True)
class CheckTask:
    """Task spec: reads files and compares their values with their filters and lookup entries."""

    root_uri: str
    slices: Mapping[str, tuple[str, ...]]
    wanted: Wanted

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields a row for each part that lacks values, given files: ``path`` and the columns of `IDENTITY`."""
        store = open_store(self.root_uri)
        tables = ValueTables.of(store, self.slices)
        for batch in batches:
            columns = {name: batch.column(number).to_pylist() for number, name in enumerate(("path", *IDENTITY))}
            groups = [""] * batch.num_rows
            files = DataFiles.from_columns((), partition_values=[], **columns, group=groups)
            stored = tables.of_files(files)
            for position, path in enumerate(columns["path"]):
                with suppress(OSError, pa.ArrowException, StoreError):
                    yield from stored.lacking(path, position, values_in_file(store, path, self.wanted), self.wanted)


def _is_absent(schema: pa.Schema, column: TrackedColumn) -> bool:
    """Returns whether a file lacks a column, in any case of letters, so that all its rows have null there."""
    return column.absent_is_null and column.path[0].lower() not in {name.lower() for name in schema.names}


def _reads_alike(schema: pa.Schema, column: TrackedColumn, old_dates: bool) -> bool:
    """Returns whether Arrow and Spark read the same values of a leaf. Spark finds columns in any case of letters.

    `arrow_source` asks it of whole files, whose rows are written again, and takes fewer types.
    """
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
