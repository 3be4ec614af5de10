"""Explains what a query would read: Spark plans it, and each scan's filters are pruned as they are at run time.

It also finds joins with a small side and says what the values of that side would skip. Spark uses them for partition
columns only (dynamic partition pruning) and never passes them to a file index. ``zlayout_prune_by`` writes them into
the query.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.expr import Constant
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName, TableRef
from dbt.adapters.zlayout.spark.jobs.jobs import why_failed
from dbt.adapters.zlayout.spark.jvm.scala import Jvm, active_session, members
from dbt.adapters.zlayout.spark.read.file_index import ExplainedFilters
from dbt.adapters.zlayout.spark.read.query_scans import (
    JoinSide,
    PlannedScan,
    join_sides,
    planned_scans,
    with_subqueries,
)
from dbt.adapters.zlayout.spark.read.record_tables import rows_of, view_of
from dbt.adapters.zlayout.spark.read.session import prepare
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ExplainedJoin:
    """A join of one scan with a small side.

    Attributes:
        column: The joined column of the scan.
        key: The key of the small side, as text.
        values: Number of distinct values of the key, without nulls.
        skips: How many of the files that the scan reads can hold none of the values.
        by_partition: Whether Spark skips these files itself, by dynamic partition pruning.
    """

    column: str
    key: str
    values: int
    skips: int
    by_partition: bool


@dataclass(frozen=True)
class ExplainedScan:
    """One scan of a managed or indexed table.

    Attributes:
        table: ``schema.table``; the folder for a table that was opened by it.
        opened: The table at the version that the scan reads.
        filters: The filters of the scan, the files they keep, and why.
        joins: What the values of small join sides would skip in addition.
    """

    table: str
    opened: TableSnapshot
    filters: ExplainedFilters
    joins: tuple[ExplainedJoin, ...] = ()


def explain_scans(spark: SparkSession, sql: str, unnamed: TableSnapshot | None = None) -> list[ExplainedScan]:
    """Plans a query without running it, and explains each scan of a managed or indexed table in it.

    The small sides of its joins do run, because their values are needed.

    Args:
        unnamed: The version whose DataFrame the query reads through a view, in addition to tables by their name.
    """
    prepare(spark, sql)
    with active_session(spark):
        return list(_explained(spark, sql, unnamed))


def _explained(spark: SparkSession, sql: str, unnamed: TableSnapshot | None) -> Iterator[ExplainedScan]:
    catalog = Catalog(spark)
    logical = spark.sql(sql)._jdf.queryExecution().optimizedPlan()
    sides = [side for plan in with_subqueries(logical) for side in join_sides(catalog.jvm, plan)]
    for found in planned_scans(catalog, logical, partial(_execution, spark._jsparkSession), unnamed):
        filters = found.index.explained(found.partition_filters, found.data_filters, found.others)
        joins = tuple(_joins(catalog, found, filters, sides))
        yield ExplainedScan(str(found.table), found.index.opened, filters, joins)


def explain_predicate(
    spark: SparkSession, table: TableRef, opened: TableSnapshot, predicate_sql: str, called: str = "condition "
) -> list[ExplainedScan]:
    """Explains ``select * from <table> where <predicate>``.

    Args:
        table: The table. By its name, it is explained at its newest version.
        opened: The version that is explained of a table by its folder.
        predicate_sql: A condition, as in a WHERE clause.
        called: How errors call it.

    Returns:
        One scan. For a merge-on-read table two: first the scan of its rows, then the scan of the keys in its log
        files. An empty list when the optimizer proves that no row can match.

    Raises:
        ConfigError: The condition does not fit the table.
    """
    try:
        if isinstance(table, TableName):
            return explain_scans(spark, f"select * from {table.sql} where {predicate_sql}")
        with view_of(rows_of(Catalog(spark), opened)) as view:
            return explain_scans(spark, f"select * from {view} where {predicate_sql}", opened)
    except (Py4JJavaError, PySparkException) as error:
        why = why_failed(error)
        raise ConfigError([f"{called}{predicate_sql!r} does not fit the table: {why}"], str(table)) from error


def files_that_may_match(spark: SparkSession, table: TableRef, opened: TableSnapshot, where: str) -> pa.Array:
    """Returns the paths of the files that may hold a row for which a condition is true.

    Args:
        opened: As for `explain_predicate`.

    Raises:
        ConfigError: The condition does not fit the table.
    """
    scans = explain_predicate(spark, table, opened, where, "where: ")
    if not scans:
        return pa.array([], pa.string())
    rows = scans[0]
    return rows.opened.files.filter(rows.filters.plan.candidates)["path"].combine_chunks()


def empty_scan(table: TableRef, opened: TableSnapshot) -> ExplainedScan:
    """Returns the explanation of a query that the optimizer answers without a scan."""
    never = Constant(False)
    plan = opened.scan(never)
    return ExplainedScan(str(table), opened, ExplainedFilters(never, plan, opened.report(plan, never)))


def _joins(
    catalog: Catalog, read: PlannedScan, filters: ExplainedFilters, sides: Sequence[JoinSide]
) -> Iterator[ExplainedJoin]:
    columns = {int(each.exprId().id()): each for each in members(read.scan.output())}
    dynamic = read.is_dynamic
    for side in sides:
        column = columns.get(side.column_id)
        if column is None:
            continue
        try:
            values, condition = _values_as_filter(catalog.jvm, catalog.spark._jsparkSession, side, column)
        except Py4JError:  # a side that fails is left out of the explanation
            _LOG.warning("cannot compute the values of %s", side.text, exc_info=True)
            continue
        kept = read.index.opened.scan(read.index.predicate(catalog.jvm.seq([condition]))).candidates
        name = str(column.name())
        yield ExplainedJoin(
            column=name,
            key=side.text,
            values=values,
            skips=int((filters.plan.candidates & ~kept).sum()),
            by_partition=dynamic and name in read.index.opened.partition_columns,
        )


def _values_as_filter(jvm: Jvm, session: Any, side: JoinSide, column: Any) -> tuple[int, Any]:
    """Runs the small side of a join and turns its keys into a condition.

    Args:
        session: The session (Py4J object).
        side: The join's other side.
        column: The joined column (Catalyst attribute).

    Returns:
        The number of distinct values, and the condition that the column equals one of them (Catalyst expression).
    """
    expressions = jvm.catalyst.expressions
    collected = expressions.aggregate.CollectSet(side.key).toAggregateExpression()
    identity = jvm.companion("org.apache.spark.sql.catalyst.expressions.NamedExpression").newExprId()
    named = expressions.Alias(collected, "key_values", identity, jvm.seq([]), jvm.none(), jvm.seq([]))
    query = jvm.case_class(
        "org.apache.spark.sql.catalyst.plans.logical.Aggregate", [jvm.seq([]), jvm.seq([named]), side.plan]
    )
    array = _execution(session, query).executedPlan().executeCollect()[0].getArray(0)
    found = jvm.root.java.util.Arrays.asList(array.toObjectArray(side.key.dataType()))
    return int(array.numElements()), expressions.InSet(column, jvm.seq_of(found).toSet())


def _execution(session: Any, logical: Any) -> Any:
    """Returns Spark's ``QueryExecution`` of a logical plan."""
    state = session.sessionState()
    return state.executePlan(logical, getattr(state, "executePlan$default$2")())
