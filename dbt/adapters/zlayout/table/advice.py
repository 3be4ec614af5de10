"""Advises a layout for a table: reads the workload, samples the rows, and asks the index what is read now."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from dbt.adapters.zlayout.advice.advice import Advice, Present, TableSize, advise
from dbt.adapters.zlayout.advice.sample import Layout, Sample
from dbt.adapters.zlayout.advice.workload import Query, WeightedCondition
from dbt.adapters.zlayout.curve.keys import is_orderable
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.index.statistics.tracked import canonical_type
from dbt.adapters.zlayout.predicate.expr import ColumnPath, Expr, columns_of
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.jobs.jobs import Progress
from dbt.adapters.zlayout.spark.read.conditions import predicates_of
from dbt.adapters.zlayout.spark.rewrite.column_sample import column_sample
from dbt.adapters.zlayout.spark.schema.table_schema import type_at
from dbt.adapters.zlayout.spark.schema.types import arrow_schema
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def advice_for_table(
    spark: SparkSession,
    opened: TableSnapshot,
    workload: Sequence[WeightedCondition],
    subject: str,
    min_gain: float,
    progress: Progress | None = None,
) -> Advice:
    """Advises a layout for a version of a table. Writes nothing.

    Args:
        spark: The session.
        opened: The version.
        workload: Conditions on its rows.
        subject: Name of the table, for error messages.
        min_gain: As for `advise`.
        progress: Receives a line now and then.

    Raises:
        ConfigError: A condition does not fit the table, or there is nothing to judge.
    """
    queries = _queries(spark, opened.row_schema_json, workload, subject)
    config = config_of(opened.snapshot)
    keys = config.clustering.columns
    folders: tuple[ColumnPath, ...] = tuple((name,) for name in opened.partition_columns)
    paths = _sampled_paths(opened.row_schema_json, queries, (*keys, *folders))
    rows = int(pc.sum(opened.files.column("row_count")).as_py() or 0)
    if not rows:
        raise ConfigError(["the table has no rows, so nothing tells how queries read it"], subject)
    if not paths:
        raise ConfigError(
            ["workload: no condition compares a column that has an order; zlayout_explain says why for each"], subject
        )
    sample = Sample.of(column_sample(Catalog(spark), opened, paths, progress), paths)
    known = set(paths)
    layout = Layout(
        tuple(path for path in keys if path in known),
        tuple(path for path in folders if path in known),
        config.clustering.curve == "linear",
    )
    size = TableSize(rows, len(opened.files), opened.files.total_bytes, config.file_sizing.target_file_bytes)
    present = Present(layout, tuple(config.indexes.bloom or ()), partial(_opened, opened, rows))
    return advise(sample, queries, size, present, min_gain)


def _queries(spark: SparkSession, schema_json: str, workload: Sequence[WeightedCondition], subject: str) -> list[Query]:
    predicates = predicates_of(spark, schema_json, [each.sql for each in workload], subject)
    return [Query(condition, predicate) for condition, predicate in zip(workload, predicates, strict=True)]


def _sampled_paths(schema_json: str, queries: Sequence[Query], further: Sequence[ColumnPath]) -> tuple[ColumnPath, ...]:
    """Returns the columns to sample: those that conditions compare, and further ones."""
    schema = arrow_schema(schema_json)
    named = sorted({path for each in queries for path in columns_of(each.predicate)})
    wanted = dict.fromkeys([*further, *named])
    return tuple(
        path for path in wanted if path[0] in schema.names and is_orderable(canonical_type(type_at(schema, path)))
    )


def _opened(opened: TableSnapshot, rows: int, predicate: Expr) -> float:
    """Returns the share of rows in the files that a predicate reads, by the index."""
    kept = opened.scan(predicate).candidates
    return float(np.asarray(opened.files.column("row_count").to_numpy())[kept].sum()) / rows
