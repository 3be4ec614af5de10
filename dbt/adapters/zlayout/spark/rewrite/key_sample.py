"""Samples of rows: keys in one light pass, and some columns from as many files as a few seconds allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions

from dbt.adapters.zlayout.index.statistics.tracked import canonical_type
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.spark.files.parquet_file import ParquetSettings, encoded_bytes_per_row
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, numbered_tasks, rewrite_session, run
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.read.relations import frame_of
from dbt.adapters.zlayout.spark.rewrite.stage import RESULT_SCHEMA, Staged, StageTask, sample_rows
from dbt.adapters.zlayout.spark.schema.arrow_columns import typed
from dbt.adapters.zlayout.spark.schema.table_schema import type_at
from dbt.adapters.zlayout.spark.schema.types import arrow_schema
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_MOST_ROWS = 1 << 16
_MOST_FILES, _FEWEST_FILES = 256, 16
_MOST_ROWS_READ = 16_000_000
_MEASURED_ROWS = 20_000


def key_sample(
    rows: DataFrame,
    data_schema: pa.Schema,
    keys: tuple[ColumnPath, ...],
    partition_by: tuple[str, ...],
    settings: ParquetSettings,
    progress: Progress | None,
) -> Staged:
    """Samples keys, reading only the key and partition columns.

    Args:
        data_schema: Arrow types of its data columns.
        settings: How files are written.

    Returns:
        A sample and counts, but neither rows nor their size.
    """
    tops = _tops(keys)
    data = [functions.col(backquoted(name)) for name in tops]
    folders = [functions.col(backquoted(name)).cast("string") for name in partition_by]
    narrow = rows.select(*(each.alias(f"c{number}") for number, each in enumerate([*data, *folders])))
    spark = rows.sparkSession
    text = [pa.field(name, pa.string()) for name in partition_by]
    schema = pa.schema([*(data_schema.field(name) for name in tops), *text])
    tasks = max(2, int(spark.sparkContext.defaultParallelism))
    stage = _stage(schema, keys, partition_by, settings, tasks)
    return Staged.of(run(spark, "layout", progress, narrow.mapInArrow(stage.__call__, RESULT_SCHEMA).collect))


def key_sample_of_files(
    spark: SparkSession,
    source: ArrowSource,
    keys: tuple[ColumnPath, ...],
    settings: ParquetSettings,
    target_file_bytes: int,
    progress: Progress | None,
) -> Staged:
    """Samples keys of files of one partition that Arrow reads.

    Args:
        source: The files.
        settings: How files are written.

    Returns:
        A sample and the bytes that a row would take, but no rows.
    """
    schema = pa.schema([source.schema.field(name) for name in _tops(keys)])
    # All tasks but the last have one size. Each samples twice the rows needed, because the smallest share decides.
    tasks = max(2, len(source.units) // 2)
    sample = partial(_stage(schema, keys, (), settings, tasks, target_file_bytes).sample_files, source)
    numbers = numbered_tasks(rewrite_session(spark), len(source.units))
    return Staged.of(run(spark, "layout", progress, numbers.mapInArrow(sample, RESULT_SCHEMA).collect))


def _tops(keys: tuple[ColumnPath, ...]) -> list[str]:
    return list(dict.fromkeys(path[0] for path in keys))


def _stage(
    schema: pa.Schema,
    keys: tuple[ColumnPath, ...],
    partition_by: tuple[str, ...],
    settings: ParquetSettings,
    tasks: int,
    target_file_bytes: int = 0,
) -> StageTask:
    return StageTask(
        schema=schema,
        root_uri="",
        folder="",
        keys=keys,
        partition_by=partition_by,
        sample_rows=sample_rows(tasks),
        settings=settings,
        target_file_bytes=target_file_bytes,
        keeps_rows=False,
    )


def column_sample(
    catalog: Catalog, opened: TableSnapshot, paths: Sequence[ColumnPath], progress: Progress | None
) -> pa.Table:
    """Samples the rows in the files of a version.

    Args:
        opened: The version. In a merge-on-read table, the rows of logs and deleted rows count too.
        paths: Columns and fields of structs, at least one.
        progress: Called with a line of text now and then.

    Returns:
        A column for each path, named '0', '1', …, with at most 65,536 rows. The rows of a table with many files come
        from files that are spread evenly over it.
    """
    return sampled(frame_of(catalog, opened, _spread(opened)), opened.schema_json, paths, progress)[0]


def sampled(
    frame: DataFrame, schema_json: str, paths: Sequence[ColumnPath], progress: Progress | None = None
) -> tuple[pa.Table, int]:
    """Samples the rows of a query. Runs it for these columns only.

    Args:
        schema_json: Spark's JSON of its columns.
        paths: Columns and fields of structs, at least one.
        progress: Called with a line of text now and then.

    Returns:
        A table as `column_sample`, and the number of rows of the query.
    """
    spark, known = frame.sparkSession, arrow_schema(schema_json)
    use_driver_python(spark)
    names = [f"s{number}" for number in range(len(paths))]
    narrow = frame.select(
        *(functions.col(".".join(map(backquoted, path))).alias(name) for name, path in zip(names, paths, strict=True))
    )
    schema = pa.schema([(name, canonical_type(type_at(known, path))) for name, path in zip(names, paths, strict=True)])
    settings = ParquetSettings("zstd", schema_json, str(spark.version))
    staged = key_sample(narrow, schema, tuple((name,) for name in names), (), settings, progress)
    if not staged.samples:
        return pa.table({str(number): pa.array([], field.type) for number, field in enumerate(schema)}), 0
    found = staged.uniform_sample()
    if found.num_rows > _MOST_ROWS:
        chosen = np.random.default_rng(0).choice(found.num_rows, _MOST_ROWS, replace=False)
        found = found.take(pa.array(np.sort(chosen)))
    return found, sum(rows for rows, _ in staged.samples)


def _spread(opened: TableSnapshot) -> npt.NDArray[np.bool_] | None:
    """Returns a mask of files that are spread evenly over the table; None for all files."""
    count = len(opened.files)
    rows = max(1, opened.files.total_rows)
    most = max(_FEWEST_FILES, min(_MOST_FILES, int(_MOST_ROWS_READ * count / rows)))
    if count <= most:
        return None
    mask = np.zeros(count, bool)
    mask[((np.arange(most) + 0.5) * count / most).astype(np.int64)] = True
    return mask


@contextmanager
def kept_on_disk(frame: DataFrame) -> Iterator[DataFrame]:
    """Keeps the rows of a query on the executors' disks, so that it runs once although its rows are read twice.

    Yields:
        The same rows. A query whose rows the user keeps already stays as it is.
    """
    own = frame.storageLevel == StorageLevel.NONE
    # Another frame, since the given one may have been planned before its rows were kept.
    rows = (frame.persist(StorageLevel.DISK_ONLY) if own else frame).select("*")
    try:
        yield rows
    finally:
        if own:
            frame.unpersist()


def bytes_of_a_row(frame: DataFrame, schema_json: str, settings: ParquetSettings, target_file_bytes: int) -> float:
    """Returns the bytes that a row takes in a file, measured on the first rows of a query.

    Args:
        frame: The query, with at least one row. Only its first rows are computed.
        schema_json: Spark's JSON of its columns, all of which Arrow carries.
        settings: How files are written.
    """
    use_driver_python(frame.sparkSession)
    some = frame.limit(_MEASURED_ROWS).coalesce(1)
    plain = some.selectExpr(*(f"{backquoted(name)} as c{number}" for number, name in enumerate(frame.columns)))
    measure = _Measure(arrow_schema(schema_json), settings, target_file_bytes)
    rows = plain.mapInArrow(measure.__call__, "bytes_per_row double").collect()
    return max((float(row[0]) for row in rows), default=1.0)


@dataclass(frozen=True)
class _Measure:
    schema: pa.Schema
    settings: ParquetSettings
    target_file_bytes: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [typed(batch, self.schema) for batch in batches if batch.num_rows]
        if held:
            rows = pa.Table.from_batches(held, self.schema)
            size = encoded_bytes_per_row(rows, self.settings, self.target_file_bytes)
            yield pa.RecordBatch.from_pydict({"bytes_per_row": pa.array([size], pa.float64())})
