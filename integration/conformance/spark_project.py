"""The project of a test class: where it runs, and how its own statements do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dbt.adapters.spark.impl import SparkAdapter
from dbt.tests.fixtures.project import TestProjInfo
from dbt.tests.util import generate_update_clause, get_connection, relation_from_name
from pyspark.sql import SparkSession
from row_changes import row_change
from spark_words import spark_statements

from dbt.adapters.zlayout.impl import ZlayoutAdapter


def profile_target(lake: Path) -> dict[str, Any]:
    """The target of every class: one local session for the process."""
    return {
        "type": "zlayout",
        "threads": 2,
        "server_side_parameters": {
            "spark.master": "local[2]",
            "spark.driver.memory": "2g",
            "spark.ui.enabled": False,
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.warehouse.dir": str(lake / "warehouse"),
            "spark.sql.session.timeZone": "UTC",
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:memory:c{os.getpid()};create=true",
        },
    }


class SparkProject(TestProjInfo):
    """The project of a test class."""

    __test__ = False

    def get_tables_in_schema(self) -> dict[str, str]:
        # Spark has no information_schema.
        spark = SparkSession.builder.getOrCreate()
        kinds = {"VIEW": "view"}
        return {
            table.name: kinds.get(table.tableType, "table")
            for table in spark.catalog.listTables(self.test_schema)
            if not table.isTemporary
        }


def run_for_tests(adapter: ZlayoutAdapter, sql: str, fetch: str | None, connection: Any) -> Any:
    """What the tests themselves send to the warehouse: ``run_sql_for_tests`` of dbt-spark, one Spark statement after the other."""
    spark = connection.handle.session
    found = None
    for statement in spark_statements(sql):
        change = row_change(spark, statement)
        found = SparkAdapter.run_sql_for_tests(adapter, statement, fetch, connection) if change is None else change()
    return found


def update_rows_for_tests(adapter: ZlayoutAdapter, wanted: dict[str, Any]) -> None:
    """The same for ``dbt.tests.util.update_rows``."""
    relation = relation_from_name(adapter, wanted["name"])
    with get_connection(adapter) as connection:
        statement = adapter.update_column_sql(
            dst_name=str(relation),
            dst_column=wanted["dst_col"],
            clause=generate_update_clause(adapter, wanted["clause"]),
            where_clause=wanted.get("where"),
        )
        run_for_tests(adapter, statement, None, connection)
