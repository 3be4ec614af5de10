"""The scans of a query with their conditions, from Spark's optimizer alone: nothing runs, not even a command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt.adapters.zlayout.curve.value_ranges import covering_ranges
from dbt.adapters.zlayout.predicate.expr import And, Column, Compare, Expr, Op, Or
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName
from dbt.adapters.zlayout.spark.jvm.scala import active_session, members
from dbt.adapters.zlayout.spark.read.explain import (
    JoinSide,
    index_of_scan,
    is_dynamic,
    join_sides,
    scans_below,
    static_filters,
    unpassed,
)
from dbt.adapters.zlayout.spark.read.record_tables import table_of_files
from dbt.adapters.zlayout.spark.read.session import prepare
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_RANGES = 12
_SKIP_COMMANDS = "org.apache.spark.sql.execution.CommandExecutionMode"


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
    found: list[tuple[QueryScan, Any]] = []
    plans = (logical, *members(logical.subqueriesAll()))
    for plan in plans:
        for scan, condition in scans_below(state.executePlan(plan, mode).sparkPlan(), None):
            name, index = index_of_scan(catalog, scan)
            if index is None or not isinstance(name, TableName):
                continue
            others = unpassed(condition, [*members(scan.partitionFilters()), *members(scan.dataFilters())])
            filters = static_filters(catalog, scan.partitionFilters())
            predicate = index.predicate(filters, scan.dataFilters(), others=others)
            found.append((QueryScan(str(table_of_files(name) or name), index.opened, predicate), scan))
    sides = [side for plan in plans for side in join_sides(catalog.jvm, plan)]
    if not sides:
        return [each for each, _ in found]
    read = {
        int(column.exprId().id()): (each, str(column.name()))
        for each, scan in found
        for column in members(scan.output())
    }
    return [replace(each, joins=tuple(_joins(each, scan, sides, read))) for each, scan in found]


def _joins(
    read: QueryScan, scan: Any, sides: Sequence[JoinSide], columns: Mapping[int, tuple[QueryScan, str]]
) -> Iterator[JoinedColumn]:
    own = {int(each.exprId().id()): str(each.name()) for each in members(scan.output())}
    dynamic = any(is_dynamic(each) for each in members(scan.partitionFilters()))
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
    ends = zip(*covering_ranges(low, high, _MOST_RANGES), strict=True)
    operand = Column((name,), bounds.type)
    return Or(tuple(And((Compare(Op.GE, operand, least), Compare(Op.LE, operand, most))) for least, most in ends))
