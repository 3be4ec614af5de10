"""Explains what a query would read: Spark plans it, and each scan's filters are pruned as they are at run time.

It also finds joins with a small side and says what the values of that side would skip. Spark uses them for partition
columns only (dynamic partition pruning) and never passes them to a file index. ``zlayout_prune_by`` writes them into
the query.
"""

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
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName, TablePath, TableRef
from dbt.adapters.zlayout.spark.jobs.jobs import why_failed
from dbt.adapters.zlayout.spark.jvm.scala import Jvm, active_session, members
from dbt.adapters.zlayout.spark.read.file_index import ExplainedFilters, ZlayoutFileIndex
from dbt.adapters.zlayout.spark.read.record_tables import rows_of, view_of
from dbt.adapters.zlayout.spark.read.relations import index_of, installed
from dbt.adapters.zlayout.spark.read.session import prepare
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
_SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"
_FILTER = "org.apache.spark.sql.execution.FilterExec"
_MOST_BYTES = 10 << 20
"""The default of ``spark.sql.autoBroadcastJoinThreshold``. Sides that Spark estimates to be larger are ignored."""
# For each join type, the sides whose rows survive only if the other side has their key.
_FILTERED = {"inner": ("left", "right"), "leftsemi": ("left",), "leftouter": ("right",), "rightouter": ("left",)}
_PASSED_THROUGH = ("Project", "Filter", "SubqueryAlias")


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
    sides = [side for plan in _plans(logical) for side in join_sides(catalog.jvm, plan)]
    for scan, condition in _scans(catalog, logical):
        name, index = index_of_scan(catalog, scan, unnamed)
        if index is None:
            continue
        others = unpassed(condition, [*members(scan.partitionFilters()), *members(scan.dataFilters())])
        filters = index.explained(static_filters(catalog, scan.partitionFilters()), scan.dataFilters(), others)
        joins = tuple(_joins(catalog, scan, index, filters, sides))
        yield ExplainedScan(str(name), index.opened, filters, joins)


def explain_predicate(
    spark: SparkSession, table: TableRef, opened: TableSnapshot, predicate_sql: str
) -> list[ExplainedScan]:
    """Explains ``select * from <table> where <predicate>``.

    Args:
        table: The table. By its name, it is explained at its newest version.
        opened: The version that is explained of a table by its folder.
        predicate_sql: A condition, as in a WHERE clause.

    Returns:
        One scan. For a merge-on-read table two: first the scan of its rows, then the scan of the keys in its log
        files. An empty list when the optimizer proves that no row can match.
    """
    if isinstance(table, TableName):
        return explain_scans(spark, f"select * from {table.sql} where {predicate_sql}")
    with view_of(rows_of(Catalog(spark), opened)) as view:
        return explain_scans(spark, f"select * from {view} where {predicate_sql}", opened)


def files_that_may_match(spark: SparkSession, table: TableRef, opened: TableSnapshot, where: str) -> pa.Array:
    """Returns the paths of the files that may hold a row for which a condition is true.

    Args:
        opened: As for `explain_predicate`.

    Raises:
        ConfigError: The condition does not fit the table.
    """
    try:
        scans = explain_predicate(spark, table, opened, where)
    except (AnalysisException, ParseException) as error:
        raise ConfigError([f"where: {where!r} does not fit the table: {why_failed(error)}"], str(table)) from error
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
    catalog: Catalog, scan: Any, index: ZlayoutFileIndex, filters: ExplainedFilters, sides: Sequence[JoinSide]
) -> Iterator[ExplainedJoin]:
    columns = {int(each.exprId().id()): each for each in members(scan.output())}
    dynamic = any(is_dynamic(each) for each in members(scan.partitionFilters()))
    for side in sides:
        column = columns.get(side.column_id)
        if column is None:
            continue
        try:
            values, condition = _values_as_filter(catalog.jvm, catalog.spark._jsparkSession, side, column)
        except Py4JError:  # a side that fails is left out of the explanation
            _LOG.warning("cannot compute the values of %s", side.text, exc_info=True)
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
        filtered = _FILTERED.get(str(join.joinType().sql()).replace(" ", "").lower(), ())
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
    inner = name == "Join" and str(plan.joinType().sql()) == "INNER"
    if name not in _PASSED_THROUGH and not inner:
        return set()
    return {each for child in members(plan.children()) for each in _reached(child)}


def _plans(logical: Any) -> list[Any]:
    """Returns an optimized plan and the plans of its subqueries."""
    return [logical, *members(logical.subqueriesAll())]


def is_dynamic(condition: Any) -> bool:
    """Returns whether a join fills in the condition while the query runs."""
    return "DynamicPruning" in str(condition.getClass().getName())


def _scans(catalog: Catalog, logical: Any) -> Iterator[tuple[Any, Any]]:
    """Yields every file scan of an optimized plan, with the condition on its rows or None.

    This includes the scans of subqueries, which Spark plans separately.
    """
    session: Any = catalog.spark._jsparkSession
    for plan in _plans(logical):
        yield from scans_below(_execution(session, plan).sparkPlan(), None)


def _execution(session: Any, logical: Any) -> Any:
    """Returns Spark's ``QueryExecution`` of a logical plan."""
    state = session.sessionState()
    return state.executePlan(logical, getattr(state, "executePlan$default$2")())


def scans_below(node: Any, condition: Any) -> Iterator[tuple[Any, Any]]:
    """Yields every file scan of a physical plan, with the condition on its rows or None."""
    kind = str(node.getClass().getName())
    if kind == _SCAN:
        yield node, condition
    for child in members(node.children()):
        yield from scans_below(child, node.condition() if kind == _FILTER else None)


def unpassed(condition: Any, known: Sequence[Any]) -> list[Any]:
    """Returns the conjuncts that are not among the known ones."""
    if condition is None:
        return []
    if str(condition.getClass().getSimpleName()) == "And":
        return [each for side in (condition.left(), condition.right()) for each in unpassed(side, known)]
    return [] if any(condition.semanticEquals(each) for each in known) else [condition]


def index_of_scan(
    catalog: Catalog, scan: Any, unnamed: TableSnapshot | None = None
) -> tuple[TableRef | None, ZlayoutFileIndex | None]:
    """Returns the table that a scan reads, and its file index; None for a scan of anything else.

    Args:
        unnamed: As for `explain_scans`.
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


def static_filters(catalog: Catalog, filters: Any) -> Any:
    """Returns the filters without those that a join fills in while the query runs."""
    return catalog.jvm.seq([each for each in members(filters) if not is_dynamic(each)])
