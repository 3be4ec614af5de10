"""Samples the keys of some rows in one light pass: a uniform sample, and the rows of each partition."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions

from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.spark.files.parquet_file import ParquetSettings
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, numbered_tasks, rewrite_session, run
from dbt.adapters.zlayout.spark.rewrite.stage import RESULT_SCHEMA, Staged, StageTask, sample_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
        rows: Rows of a table.
        data_schema: Arrow types of its data columns.
        keys: The clustering keys.
        partition_by: The partition columns.
        settings: How files are written.
        progress: Called with a line of text as the work goes on.

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
        spark: The session.
        source: The files.
        keys: The clustering keys.
        settings: How files are written.
        target_file_bytes: Target size of a file.
        progress: Called with a line of text as the work goes on.

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
