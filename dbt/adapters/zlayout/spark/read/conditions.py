"""Conditions in SQL as predicates, read without a scan of any table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.expr import Constant, Expr
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.catalyst.expressions import KnownExpressions
from dbt.adapters.zlayout.spark.catalyst.predicates import to_predicate
from dbt.adapters.zlayout.spark.jobs.jobs import why_failed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def predicates_of(spark: SparkSession, schema_json: str, conditions: Sequence[str], subject: str) -> list[Expr]:
    """Reads conditions as Spark's optimizer leaves them, with constants folded and casts in place.

    Args:
        spark: The session. Nothing runs in it.
        schema_json: Spark's JSON of the columns that the conditions may name.
        conditions: Conditions, as in a WHERE clause.

    Returns:
        A predicate for each condition. Parts that no rule covers are ``Unknown``.

    Raises:
        ConfigError: Conditions do not fit the columns. The message names each of them.
    """
    read = list(_read(spark, schema_json, conditions))
    problems = [
        f"workload: {sql!r} does not fit the table: {why_failed(found)}"
        for sql, found in zip(conditions, read, strict=True)
        if isinstance(found, Exception)
    ]
    if problems:
        raise ConfigError(problems, subject)
    return [each for each in read if not isinstance(each, Exception)]


def predicates_that_fit(
    spark: SparkSession, schema_json: str, conditions: Sequence[str], expressions: Sequence[str] = ()
) -> list[Expr | None]:
    """Reads conditions as `predicates_of` does; gives None for those that do not fit the columns.

    Args:
        expressions: Expressions that count as columns, because an index knows them.
    """
    read = _read(spark, schema_json, conditions, expressions)
    return [None if isinstance(each, Exception) else each for each in read]


def _read(
    spark: SparkSession, schema_json: str, conditions: Sequence[str], expressions: Sequence[str] = ()
) -> Iterator[Expr | Exception]:
    if not conditions:
        return
    jvm = Catalog(spark).jvm
    known = KnownExpressions.of(jvm, spark._jsparkSession, schema_json, expressions) if expressions else None
    schema = StructType.fromJson(json.loads(schema_json))
    # Not a frame of no rows: the optimizer would drop the conditions on it.
    rows = spark.createDataFrame(spark.sparkContext.emptyRDD(), schema)
    for sql in conditions:
        try:
            plan: Any = rows.where(sql)._jdf.queryExecution().optimizedPlan()
        except (PySparkException, Py4JJavaError) as error:
            yield error
            continue
        if str(plan.getClass().getSimpleName()) == "LocalRelation":
            yield Constant(False)
        else:
            yield to_predicate(jvm, list(_conditions(plan)), schema_json, 1, known=known)


def _conditions(plan: Any) -> Iterator[Any]:
    if str(plan.nodeName()) == "Filter":
        yield plan.condition()
    # A subquery is a join, and other tables are on its right.
    if plan.children().size():
        yield from _conditions(plan.children().apply(0))
