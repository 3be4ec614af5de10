"""Conditions in SQL: as predicates, as filters of rows, and strictly evaluated.

Strict evaluation finds the files of which every row meets a condition, so that they need not be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.expr import Constant, Expr, Unknown, columns_of
from dbt.adapters.zlayout.pruning.evaluation import verdicts
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.catalyst.expressions import KnownExpressions
from dbt.adapters.zlayout.spark.catalyst.predicates import to_predicate
from dbt.adapters.zlayout.spark.jobs.jobs import why_failed
from dbt.adapters.zlayout.spark.jvm.scala import Jvm, active_session
from dbt.adapters.zlayout.spark.read.record_tables import rows_of
from dbt.adapters.zlayout.spark.read.relations import frame_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

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
        f"condition {sql!r} does not fit the table: {why_failed(found)}"
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


def verdict_of_files(opened: TableSnapshot, matching: DataFrame) -> npt.NDArray[np.int8]:
    """Evaluates a condition on every file of a version, from the index alone.

    Args:
        opened: The table at the version.
        matching: ``frame_of(catalog, opened)``, filtered by the condition and nothing else. It is planned, not run.

    Returns:
        One `Verdict` per file of ``opened.files``: SKIP if no row can meet the condition, ALL_ROWS if every row does.
    """
    with active_session(matching.sparkSession):
        expr = _predicate(opened, matching)
        return verdicts(expr, opened.statistics.statistics(opened.files, columns_of(expr)))


def filtered(rows: DataFrame, condition: str, subject: str) -> DataFrame:
    """Returns the rows of a table that meet a condition.

    Raises:
        ConfigError: The condition does not fit the table, or it is random: writes evaluate it more than once.
    """
    try:
        found = rows.where(condition)
    except (AnalysisException, ParseException) as error:
        raise ConfigError([f"condition {condition!r} does not fit the table: {why_failed(error)}"], subject) from error
    native: Any = found._jdf
    if not native.queryExecution().optimizedPlan().deterministic():
        raise ConfigError(
            [f"condition {condition!r} is not deterministic; use one that always gives the same result for a row"],
            subject,
        )
    return found


def count_rows(catalog: Catalog, opened: TableSnapshot, condition: str, subject: str) -> int:
    """Counts the rows of a version that meet a condition. Only files that may meet it in part are read.

    Args:
        opened: The table at the version. Its files are those that the log lists.
        condition: SQL, as in a WHERE clause.

    Raises:
        ConfigError: The condition does not fit the table.
    """
    if opened.merges_on_read:
        return filtered(rows_of(catalog, opened), condition, subject).count()
    found = verdict_of_files(opened, filtered(frame_of(catalog, opened), condition, subject))
    known = int(opened.files["row_count"].to_numpy()[found == Verdict.ALL_ROWS].sum())
    open_files = found == Verdict.READ
    return known + (frame_of(catalog, opened, open_files).where(condition).count() if open_files.any() else 0)


def _predicate(opened: TableSnapshot, matching: DataFrame) -> Expr:
    """Returns the condition as Spark optimizes it, or `Unknown` if the optimized plan is more than a filter."""
    plan: Any = matching._jdf.queryExecution().optimizedPlan()
    kind = str(plan.getClass().getSimpleName())
    if kind == "Filter" and plan.child().children().isEmpty():
        jvm = Jvm.of(matching.sparkSession)
        return to_predicate(jvm, [plan.condition()], opened.schema_json, len(opened.files))
    if kind in ("LogicalRelation", "LocalRelation"):
        return Constant(kind == "LogicalRelation")
    return Unknown("the condition", f"Spark plans a {kind} for it")
