"""One light pass over the keys of some rows: a uniform sample, and the rows of each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions

from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.jobs import Progress, run
from dbt.adapters.zlayout.spark.parquet_file import ParquetSettings
from dbt.adapters.zlayout.spark.schema import quoted
from dbt.adapters.zlayout.spark.stage import RESULT_SCHEMA, Stage
from dbt.adapters.zlayout.spark.staged import Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SAMPLE_ROWS = 1 << 18


def key_sample(
    rows: DataFrame,
    data_schema: pa.Schema,
    keys: tuple[ColumnPath, ...],
    partition_by: tuple[str, ...],
    settings: ParquetSettings,
    progress: Progress | None,
) -> Staged:
    """Reads only the columns of the keys and the partitions.

    Args:
        rows: Rows of a table.
        data_schema: Arrow types of its data columns.
        keys: The clustering keys.
        partition_by: The partition columns.
        settings: How files are written.
        progress: Takes a line now and then.

    Returns:
        A sample, and counts; no rows, and nothing of their size.
    """
    tops = list(dict.fromkeys(path[0] for path in keys))
    data = [functions.col(quoted(name)) for name in tops]
    folders = [functions.col(quoted(name)).cast("string") for name in partition_by]
    narrow = rows.select(*(each.alias(f"c{number}") for number, each in enumerate([*data, *folders])))
    spark = rows.sparkSession
    stage = Stage(
        schema=pa.schema(
            [*(data_schema.field(name) for name in tops), *((name, pa.string()) for name in partition_by)]
        ),
        root_uri="",
        folder="",
        keys=keys,
        partition_by=partition_by,
        sample_rows=max(1024, _SAMPLE_ROWS // max(2, int(spark.sparkContext.defaultParallelism))),
        settings=settings,
        keeps_rows=False,
    )
    return Staged.of(run(spark, "layout", progress, narrow.mapInArrow(stage.__call__, RESULT_SCHEMA).collect))
