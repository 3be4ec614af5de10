"""Explains what a query would read: Spark plans it, and each scan's filters are pruned as they are at run time."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, ParseException

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.expr import Constant
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName
from dbt.adapters.zlayout.spark.jobs.jobs import why_failed
from dbt.adapters.zlayout.spark.jvm.scala import members
from dbt.adapters.zlayout.spark.read.file_index import ExplainedFilters, ZlayoutFileIndex
from dbt.adapters.zlayout.spark.read.join_sides import JoinSide, join_sides, values_as_filter
from dbt.adapters.zlayout.spark.read.relations import installed
from dbt.adapters.zlayout.spark.read.session import prepare
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
_SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"
_FILTER = "org.apache.spark.sql.execution.FilterExec"


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
    """One scan of a z-table.

    Attributes:
        table: ``schema.table``.
        opened: The table at the version that the scan reads.
        filters: The filters of the scan, the files they keep, and why.
        joins: What the values of small join sides would skip in addition.
    """

    table: str
    opened: TableSnapshot
    filters: ExplainedFilters
    joins: tuple[ExplainedJoin, ...] = ()


def explain_scans(spark: SparkSession, sql: str) -> list[ExplainedScan]:
    """Plans a query without running it, and explains each scan of a z-table in it.

    The small sides of its joins do run, because their values are needed.
    """
    prepare(spark, sql)
    catalog = Catalog(spark)
    found = []
    logical = spark.sql(sql)._jdf.queryExecution().optimizedPlan()
    sides = [side for plan in _plans(logical) for side in join_sides(catalog.jvm, plan)]
    for scan, condition in _scans(catalog, logical):
        name, index = _index_of(catalog, scan)
        if index is None:
            continue
        others = _without(condition, [*members(scan.partitionFilters()), *members(scan.dataFilters())])
        filters = index.explained(_static(catalog, scan.partitionFilters()), scan.dataFilters(), others)
        joins = tuple(_joins(catalog, scan, index, filters, sides))
        found.append(ExplainedScan(str(name), index.opened, filters, joins))
    return found


def explain_predicate(spark: SparkSession, name: TableName, predicate_sql: str) -> list[ExplainedScan]:
    """Explains ``select * from <table> where <predicate>``.

    Returns:
        One scan. For a merge-on-read table two: first the scan of its rows, then the scan of the keys in its log
        files. An empty list when the optimizer proves that no row can match.
    """
    return explain_scans(spark, f"select * from {name.sql} where {predicate_sql}")


def files_that_may_match(spark: SparkSession, name: TableName, where: str) -> pa.Array:
    """Returns the paths of the files that may hold a row for which a condition is true.

    Raises:
        ConfigError: The condition does not fit the table.
    """
    try:
        scans = explain_predicate(spark, name, where)
    except (AnalysisException, ParseException) as error:
        raise ConfigError([f"where: {where!r} does not fit the table: {why_failed(error)}"], str(name)) from error
    if not scans:
        return pa.array([], pa.string())
    rows = scans[0]
    return rows.opened.files.filter(rows.filters.plan.candidates)["path"].combine_chunks()


def nothing_matches(name: TableName, opened: TableSnapshot) -> ExplainedScan:
    """Returns the explanation of a query that the optimizer answers without a scan."""
    never = Constant(False)
    plan = opened.scan(never)
    return ExplainedScan(str(name), opened, ExplainedFilters(never, plan, opened.report(plan, never)))


def _joins(
    catalog: Catalog, scan: Any, index: ZlayoutFileIndex, filters: ExplainedFilters, sides: Sequence[JoinSide]
) -> Iterator[ExplainedJoin]:
    columns = {int(each.exprId().id()): each for each in members(scan.output())}
    dynamic = any(_is_dynamic(each) for each in members(scan.partitionFilters()))
    for side in sides:
        column = columns.get(side.column_id)
        if column is None:
            continue
        try:
            values, condition = values_as_filter(catalog.jvm, catalog.spark._jsparkSession, side, column)
        except Py4JError:  # a side that fails is left out of the explanation
            _LOG.warning("the values of %s could not be had", side.text, exc_info=True)
            continue
        kept = index.opened.scan(index.predicate(catalog.jvm.seq([condition]))).candidates
        name = str(column.name())
        yield ExplainedJoin(
            column=name,
            key=side.text,
            values=values,
            skips=int((filters.plan.candidates & ~kept).sum()),
            by_partition=dynamic and name in index.opened.partition_columns,
        )


def _plans(logical: Any) -> list[Any]:
    """Returns an optimized plan and the plans of its subqueries."""
    return [logical, *members(logical.subqueriesAll())]


def _is_dynamic(condition: Any) -> bool:
    """Whether a join fills in the condition while the query runs."""
    return "DynamicPruning" in str(condition.getClass().getName())


def _scans(catalog: Catalog, logical: Any) -> Iterator[tuple[Any, Any]]:
    """Yields every file scan of an optimized plan, with the condition on its rows or None.

    This includes the scans of subqueries, which Spark plans separately.
    """
    session: Any = catalog.spark._jsparkSession
    state = session.sessionState()
    for plan in _plans(logical):
        physical = state.executePlan(plan, getattr(state, "executePlan$default$2")()).sparkPlan()
        yield from _scans_below(physical, None)


def _scans_below(node: Any, condition: Any) -> Iterator[tuple[Any, Any]]:
    kind = str(node.getClass().getName())
    if kind == _SCAN:
        yield node, condition
    for child in members(node.children()):
        yield from _scans_below(child, node.condition() if kind == _FILTER else None)


def _without(condition: Any, known: Sequence[Any]) -> list[Any]:
    """Returns the conjuncts that are not among the known ones."""
    if condition is None:
        return []
    if str(condition.getClass().getSimpleName()) == "And":
        return [each for side in (condition.left(), condition.right()) for each in _without(side, known)]
    return [] if any(condition.semanticEquals(each) for each in known) else [condition]


def _index_of(catalog: Catalog, scan: Any) -> tuple[TableName | None, ZlayoutFileIndex | None]:
    identifier = scan.tableIdentifier()
    if not identifier.isDefined():
        return None, None
    native = identifier.get()
    database = native.database()
    name = TableName(str(database.get()) if database.isDefined() else "default", str(native.table()))
    return name, installed(catalog, name)


def _static(catalog: Catalog, filters: Any) -> Any:
    """Returns the filters without those that a join fills in while the query runs."""
    return catalog.jvm.seq([each for each in members(filters) if not _is_dynamic(each)])
