"""The scans of a query with their conditions, from Spark's optimizer alone: nothing runs, not even a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.predicate.expr import Expr
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName
from dbt.adapters.zlayout.spark.jvm.scala import members
from dbt.adapters.zlayout.spark.read.explain import scans_below, static_filters, unpassed
from dbt.adapters.zlayout.spark.read.record_tables import table_of_files
from dbt.adapters.zlayout.spark.read.relations import installed
from dbt.adapters.zlayout.spark.read.session import prepare
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SKIP_COMMANDS = "org.apache.spark.sql.execution.CommandExecutionMode"


@dataclass(frozen=True)
class QueryScan:
    """One scan of a table in a query.

    Attributes:
        table: ``schema.table``.
        opened: The table at its newest version.
        predicate: All conditions on the scan's rows, as one predicate.
    """

    table: str
    opened: TableSnapshot
    predicate: Expr


def scans_of_query(spark: SparkSession, sql: str) -> list[QueryScan]:
    """Returns the scans of managed and indexed tables in a query.

    Args:
        spark: The session.
        sql: The query. A command is analysed, but not executed.

    Raises:
        AnalysisException, ParseException: Spark does not understand the query, or a table is missing.
    """
    prepare(spark, sql)
    catalog = Catalog(spark)
    state: Any = spark._jsparkSession.sessionState()
    mode = catalog.jvm.companion(_SKIP_COMMANDS).SKIP()
    logical = state.executePlan(state.sqlParser().parsePlan(sql), mode).optimizedPlan()
    found = []
    for plan in (logical, *members(logical.subqueriesAll())):
        for scan, condition in scans_below(state.executePlan(plan, mode).sparkPlan(), None):
            identifier = scan.tableIdentifier()
            if not identifier.isDefined():
                continue
            native = identifier.get()
            database = native.database()
            name = TableName(str(database.get()) if database.isDefined() else "default", str(native.table()))
            index = installed(catalog, name)
            if index is None:
                continue
            others = unpassed(condition, [*members(scan.partitionFilters()), *members(scan.dataFilters())])
            filters = static_filters(catalog, scan.partitionFilters())
            predicate = index.predicate(filters, scan.dataFilters(), others=others)
            found.append(QueryScan(str(table_of_files(name) or name), index.opened, predicate))
    return found
