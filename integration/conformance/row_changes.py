"""Statements of the tests that change rows, where plain Spark cannot or would do it past a table's versions.

Spark has neither UPDATE nor DELETE for Parquet, casts no text for INSERT, and knows nothing of versions: such a statement goes
through ``ZTable``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr, lit

from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName
from dbt.adapters.zlayout.spark.commit.catalog_entries import drop_table
from dbt.adapters.zlayout.table.ztable import ZTable

_INSERT = re.compile(
    r"\s*insert\s+into\s+(?P<table>[\w.`]+)\s*(?:\((?P<columns>[^()]*)\))?\s*(?P<rows>.*)", re.IGNORECASE | re.DOTALL
)


def row_change(spark: SparkSession, statement: str) -> Callable[[], object] | None:
    """What a statement does to rows and columns of a table; None for a statement that is Spark's own."""
    plan: Any = spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)
    changes: dict[str, Callable[[], object]] = {
        "UpdateTable": lambda: _update(spark, _parts(plan.table()), plan.assignments(), plan.condition()),
        "DeleteFromTable": lambda: _managed(spark, _parts(plan.table())).delete(plan.condition().sql()),
        "InsertIntoStatement": lambda: _insert(spark, statement),
        "AddColumns": lambda: _add_columns(spark, _parts(plan.table()), plan.columnsToAdd()),
        "DropTable": lambda: drop_table(spark, *_parts(plan.child())),
        "DropNamespace": lambda: _drop_schema(spark, _parts(plan.namespace())[0]),
    }
    return changes.get(plan.getClass().getSimpleName())


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(at) for at in range(sequence.size())]


def _parts(named: Any) -> list[str]:
    kind = named.getClass().getSimpleName()
    return [
        str(name)
        for name in _listed(named.nameParts() if kind == "UnresolvedIdentifier" else named.multipartIdentifier())
    ]


def _managed(spark: SparkSession, parts: list[str]) -> ZTable:
    """The table with its versions; one that plain Spark made is taken over first."""
    entry = Catalog(spark).find(TableName(*parts))
    name = ".".join(parts)
    if entry is not None and entry.table_id is not None:
        return ZTable.for_name(spark, name)
    return ZTable.adopt(spark, name, managed=True)


def _update(spark: SparkSession, parts: list[str], assignments: Any, condition: Any) -> None:
    said = condition.get().sql() if condition.isDefined() else "true"
    table = _managed(spark, parts)
    new = {each.key().sql().strip("`").lower(): expr(each.value().sql()) for each in _listed(assignments)}
    rows = spark.table(table.name)
    changed = [
        new.get(field.name.lower(), col(f"`{field.name}`")).cast(field.dataType).alias(field.name)
        for field in rows.schema
    ]
    table.replace_where(rows.where(said).select(changed), said)


def _insert(spark: SparkSession, statement: str) -> None:
    said = _INSERT.fullmatch(statement)
    assert said is not None, statement
    rows = spark.sql(said["rows"])
    table = spark.table(said["table"])
    named = [name.strip(" `\n").lower() for name in said["columns"].split(",")] if said["columns"] else []
    rows = rows.toDF(*(named or [name.lower() for name in table.columns]))
    have = set(rows.columns)
    columns = [
        (col(f"`{field.name.lower()}`") if field.name.lower() in have else lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in table.schema
    ]
    parts = said["table"].replace("`", "").split(".")
    entry = Catalog(spark).find(TableName(*parts))
    if entry is not None and entry.table_id is not None:
        ZTable.for_name(spark, said["table"]).append(rows.select(columns))
    else:
        rows.select(columns).write.insertInto(said["table"])


def _drop_schema(spark: SparkSession, schema: str) -> None:
    for table in spark.catalog.listTables(schema) if spark.catalog.databaseExists(schema) else ():
        drop_table(spark, schema, table.name)
    spark.sql(f"drop schema if exists `{schema}` cascade")


def _add_columns(spark: SparkSession, parts: list[str], added: Any) -> None:
    table = _managed(spark, parts)
    rows = spark.table(table.name).limit(0)
    for column in _listed(added):
        rows = rows.withColumn(column.colName(), lit(None).cast(column.dataType().simpleString()))
    table.append(rows, on_schema_change="append_new_columns")
