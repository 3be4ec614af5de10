"""What a query would read: Spark plans it, each scan's filters go through the same pruning as when it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.predicate.expr import And, Constant, Expr
from dbt.adapters.zlayout.pruning.scan import ScanPlan
from dbt.adapters.zlayout.spark.catalog import Catalog, TableName
from dbt.adapters.zlayout.spark.file_index import ZlayoutFileIndex
from dbt.adapters.zlayout.spark.opened import OpenTable
from dbt.adapters.zlayout.spark.relations import installed
from dbt.adapters.zlayout.spark.session import prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"


@dataclass(frozen=True)
class ExplainedScan:
    """One scan of one of our tables.

    Attributes:
        table: ``schema.table``.
        opened: The table at the version that the scan reads.
        predicate: Its filters.
        plan: What they keep, with reasons.
    """

    table: str
    opened: OpenTable
    predicate: Expr
    plan: ScanPlan


def explain_scans(spark: SparkSession, sql: str) -> list[ExplainedScan]:
    """Plans a query, without running it, and explains each scan of a z-table in it."""
    prepare(spark, sql)
    catalog = Catalog(spark)
    found = []
    for scan in _scans(catalog, spark.sql(sql)._jdf.queryExecution().optimizedPlan()):
        name, index = _index_of(catalog, scan)
        if index is None:
            continue
        predicate = index.predicate(_static(catalog, scan.partitionFilters()), scan.dataFilters())
        found.append(ExplainedScan(str(name), index.opened, predicate, index.opened.scan(predicate, reasons=True)))
    return found


def explain_predicate(spark: SparkSession, name: TableName, predicate_sql: str) -> ExplainedScan | None:
    """Explains ``select * from <table> where <predicate>``.

    Returns:
        None when the optimizer proves that no row can match and plans no scan.
    """
    scans = explain_scans(spark, f"select * from {name.sql} where {predicate_sql}")
    return scans[0] if scans else None


def nothing_matches(name: TableName, opened: OpenTable) -> ExplainedScan:
    """The explanation of a query that the optimizer answers without a scan."""
    never = Constant(False)
    return ExplainedScan(str(name), opened, And((never,)), opened.scan(never, reasons=True))


def _scans(catalog: Catalog, logical: Any) -> Iterator[Any]:
    """Every file scan that an optimized plan leads to, those of its subqueries too (Spark plans these on their own)."""
    session: Any = catalog.spark._jsparkSession
    state = session.sessionState()
    subqueries = logical.subqueriesAll()
    for plan in [logical, *(subqueries.apply(position) for position in range(subqueries.size()))]:
        leaves = state.executePlan(plan, getattr(state, "executePlan$default$2")()).sparkPlan().collectLeaves()
        for position in range(leaves.size()):
            leaf = leaves.apply(position)
            if str(leaf.getClass().getName()) == _SCAN:
                yield leaf


def _index_of(catalog: Catalog, scan: Any) -> tuple[TableName | None, ZlayoutFileIndex | None]:
    identifier = scan.tableIdentifier()
    if not identifier.isDefined():
        return None, None
    native = identifier.get()
    database = native.database()
    name = TableName(str(database.get()) if database.isDefined() else "default", str(native.table()))
    return name, installed(catalog, name)


def _static(catalog: Catalog, filters: Any) -> Any:
    """The filters without those that a join fills in while the query runs."""
    kept = [filters.apply(position) for position in range(filters.size())]
    return catalog.jvm.seq([each for each in kept if "DynamicPruning" not in str(each.getClass().getName())])
