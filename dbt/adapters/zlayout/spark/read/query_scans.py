"""The scans of a query with their conditions, from Spark's optimizer alone: nothing runs, not even a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt.adapters.zlayout.curve.value_ranges import within_ranges
from dbt.adapters.zlayout.predicate.expr import And, Column, Expr
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName, TablePath, TableRef
from dbt.adapters.zlayout.spark.jvm.scala import Jvm, active_session, members
from dbt.adapters.zlayout.spark.read.file_index import ZlayoutFileIndex
from dbt.adapters.zlayout.spark.read.record_tables import table_of_files
from dbt.adapters.zlayout.spark.read.relations import index_of, installed
from dbt.adapters.zlayout.spark.read.session import prepare
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_RANGES = 12
_SKIP_COMMANDS = "org.apache.spark.sql.execution.CommandExecutionMode"
_SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"
_FILTER = "org.apache.spark.sql.execution.FilterExec"
_MOST_BYTES = 10 << 20
"""The default of ``spark.sql.autoBroadcastJoinThreshold``. Sides that Spark estimates to be larger are ignored."""
# For each join type, the sides whose rows survive only if the other side has their key.
_FILTERED = {"inner": ("left", "right"), "leftsemi": ("left",), "leftouter": ("right",), "rightouter": ("left",)}
_PASSED_THROUGH = ("Project", "Filter", "SubqueryAlias")


@dataclass(frozen=True)
class JoinedColumn:
    """A column of a scan that a join compares with the key of a small side.

    Attributes:
        column: The column.
        values: Where the side's values lie, by the statistics of its files, as a condition on the column; None if
            nothing is known.
        by_partition: Whether Spark skips partitions by these values while the query runs. Otherwise nothing does.
    """

    column: str
    values: Expr | None
    by_partition: bool


@dataclass(frozen=True)
class QueryScan:
    """One scan of a table in a query.

    Attributes:
        table: ``schema.table``.
        opened: The table at its newest version.
        predicate: All conditions on the scan's rows, as one predicate.
        joins: Its columns that are joined with a small side.
    """

    table: str
    opened: TableSnapshot
    predicate: Expr
    joins: tuple[JoinedColumn, ...] = ()

    @property
    def pruning(self) -> Expr:
        """The conditions, and what Spark skips partitions by while the query runs."""
        known = [each.values for each in self.joins if each.by_partition and each.values is not None]
        return And((self.predicate, *known)) if known else self.predicate


def scans_of_query(spark: SparkSession, sql: str) -> list[QueryScan]:
    """Returns the scans of managed and indexed tables in a query.

    Args:
        spark: The session.
        sql: The query. A command is analysed, but not executed.

    Raises:
        AnalysisException, ParseException: Spark does not understand the query, or a table is missing.
    """
    prepare(spark, sql)
    with active_session(spark):
        return _scans_of(spark, sql)


def _scans_of(spark: SparkSession, sql: str) -> list[QueryScan]:
    catalog = Catalog(spark)
    state: Any = spark._jsparkSession.sessionState()
    mode = catalog.jvm.companion(_SKIP_COMMANDS).SKIP()
    logical = state.executePlan(state.sqlParser().parsePlan(sql), mode).optimizedPlan()
    found: list[tuple[QueryScan, PlannedScan]] = []
    for planned in planned_scans(catalog, logical, lambda plan: state.executePlan(plan, mode)):
        predicate = planned.index.predicate(planned.partition_filters, planned.data_filters, others=planned.others)
        merged = table_of_files(planned.table) if isinstance(planned.table, TableName) else None
        found.append((QueryScan(str(merged or planned.table), planned.index.opened, predicate), planned))
    sides = [side for plan in with_subqueries(logical) for side in join_sides(catalog.jvm, plan)]
    if not sides:
        return [each for each, _ in found]
    read = {
        int(column.exprId().id()): (each, str(column.name()))
        for each, planned in found
        for column in members(planned.scan.output())
    }
    return [replace(each, joins=tuple(_joins(each, planned, sides, read))) for each, planned in found]


def _joins(
    read: QueryScan, planned: PlannedScan, sides: Sequence[JoinSide], columns: Mapping[int, tuple[QueryScan, str]]
) -> Iterator[JoinedColumn]:
    own = {int(each.exprId().id()): str(each.name()) for each in members(planned.scan.output())}
    dynamic = planned.is_dynamic
    for side in sides:
        name = own.get(side.column_id)
        if name is not None:
            by_partition = dynamic and name in read.opened.partition_columns
            yield JoinedColumn(name, _values(name, side.key, columns), by_partition)


def _values(name: str, key: Any, columns: Mapping[int, tuple[QueryScan, str]]) -> Expr | None:
    """Returns where the values of a join's small side lie, if they are a column of a table."""
    if str(key.nodeName()) != "AttributeReference" or int(key.exprId().id()) not in columns:
        return None
    other, column = columns[int(key.exprId().id())]
    opened, path = other.opened, (column,)
    bounds = opened.statistics.statistics(opened.files, [path]).column(path)
    if bounds is None:
        return None
    kept = pa.array(opened.scan(other.predicate).candidates)
    low, high = bounds.minimum.filter(kept), bounds.maximum.filter(kept)
    if not len(low) or low.null_count or high.null_count:  # a file without bounds may hold anything
        return None
    return within_ranges(Column((name,), bounds.type), low, high, _MOST_RANGES)


@dataclass(frozen=True)
class PlannedScan:
    """A scan of a managed or indexed table, as Spark plans it. Conditions are Catalyst expressions.

    Attributes:
        table: The table; its folder if it was opened by that.
        index: Its file index.
        scan: The node of the physical plan (Py4J object).
        partition_filters: A ``Seq`` of its conditions on partition columns that are known before the query runs.
        data_filters: A ``Seq`` of its other conditions.
        others: Conditions on its rows that Spark does not pass to it.
    """

    table: TableRef
    index: ZlayoutFileIndex
    scan: Any
    partition_filters: Any
    data_filters: Any
    others: Sequence[Any]

    @property
    def is_dynamic(self) -> bool:
        """Whether a join fills in conditions on partition columns while the query runs."""
        return any(map(_is_dynamic, members(self.scan.partitionFilters())))


def planned_scans(
    catalog: Catalog, logical: Any, execution_of: Callable[[Any], Any], unnamed: TableSnapshot | None = None
) -> Iterator[PlannedScan]:
    """Yields the scans of managed and indexed tables in an optimized plan and its subqueries, which Spark plans apart.

    Args:
        execution_of: Returns Spark's ``QueryExecution`` of a logical plan.
        unnamed: The version whose DataFrame the query reads through a view, in addition to tables by their name.
    """
    for plan in with_subqueries(logical):
        for scan, condition in _scans_below(execution_of(plan).sparkPlan(), None):
            table, index = _index_of_scan(catalog, scan, unnamed)
            if table is not None and index is not None:
                others = _unpassed(condition, [*members(scan.partitionFilters()), *members(scan.dataFilters())])
                filters = _static_filters(catalog, scan.partitionFilters())
                yield PlannedScan(table, index, scan, filters, scan.dataFilters(), others)


def with_subqueries(logical: Any) -> list[Any]:
    """Returns a logical plan and the plans of its subqueries."""
    return [logical, *members(logical.subqueriesAll())]


def _scans_below(node: Any, condition: Any) -> Iterator[tuple[Any, Any]]:
    """Yields every file scan of a physical plan, with the condition on its rows or None."""
    kind = str(node.getClass().getName())
    if kind == _SCAN:
        yield node, condition
    for child in members(node.children()):
        yield from _scans_below(child, node.condition() if kind == _FILTER else None)


def _unpassed(condition: Any, known: Sequence[Any]) -> list[Any]:
    """Returns the conjuncts that are not among the known ones."""
    if condition is None:
        return []
    if str(condition.getClass().getSimpleName()) == "And":
        return [each for side in (condition.left(), condition.right()) for each in _unpassed(side, known)]
    return [] if any(condition.semanticEquals(each) for each in known) else [condition]


def _index_of_scan(
    catalog: Catalog, scan: Any, unnamed: TableSnapshot | None = None
) -> tuple[TableRef | None, ZlayoutFileIndex | None]:
    """Returns the table that a scan reads, and its file index; None for a scan of anything else.

    Args:
        unnamed: As for `planned_scans`.
    """
    identifier = scan.tableIdentifier()
    if not identifier.isDefined():
        if unnamed is None:
            return None, None
        index = index_of(catalog, unnamed)
        same = str(scan.relation().location().toString()) == index.toString()
        return (TablePath(unnamed.location), index) if same else (None, None)
    native = identifier.get()
    database = native.database()
    name = TableName(str(database.get()) if database.isDefined() else "default", str(native.table()))
    return name, installed(catalog, name)


def _static_filters(catalog: Catalog, filters: Any) -> Any:
    """Returns the filters without those that a join fills in while the query runs."""
    return catalog.jvm.seq([each for each in members(filters) if not _is_dynamic(each)])


def _is_dynamic(condition: Any) -> bool:
    """Returns whether a join fills in the condition while the query runs."""
    return "DynamicPruning" in str(condition.getClass().getName())


@dataclass(frozen=True)
class JoinSide:
    """One key of a join.

    Attributes:
        column_id: Spark's id of the joined column.
        text: The key of the other side as SQL, for display.
        key: The same key as a Catalyst expression.
        plan: The other side (logical plan).
    """

    column_id: int
    text: str
    key: Any
    plan: Any


def join_sides(jvm: Jvm, logical: Any) -> Iterator[JoinSide]:
    """Yields the keys of all joins of an optimized plan that have a small other side.

    Only columns that reach the join from a relation through projections, filters and inner joins count: no other node
    in between may depend on the rows that the join drops.
    """
    extract = jvm.companion("org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys")
    for join in _nodes(logical, "Join"):
        found = extract.unapply(join)
        # Not as SQL, which an existence join has none of.
        filtered = _FILTERED.get(str(join.joinType().toString()).lower(), ())
        if not found.isDefined() or not filtered:
            continue
        keys = {"left": found.get()._2(), "right": found.get()._3()}
        for side in filtered:
            other = "right" if side == "left" else "left"
            plan = getattr(join, other)()
            if int(plan.stats().sizeInBytes()) > _MOST_BYTES:
                continue
            reached = _reached(getattr(join, side)())
            for column, key in zip(members(keys[side]), members(keys[other]), strict=True):
                if str(column.nodeName()) == "AttributeReference" and int(column.exprId().id()) in reached:
                    yield JoinSide(int(column.exprId().id()), str(key.sql()), key, plan)


def _nodes(plan: Any, name: str) -> Iterator[Any]:
    if str(plan.nodeName()) == name:
        yield plan
    for child in members(plan.children()):
        yield from _nodes(child, name)


def _reached(plan: Any) -> set[int]:
    """Returns the ids of the relation columns that reach a plan through projections, filters and inner joins only."""
    name = str(plan.nodeName())
    if str(plan.getClass().getSimpleName()) == "LogicalRelation":
        return {int(each.exprId().id()) for each in members(plan.output())}
    inner = name == "Join" and str(plan.joinType().toString()) == "Inner"
    if name not in _PASSED_THROUGH and not inner:
        return set()
    return {each for child in members(plan.children()) for each in _reached(child)}
