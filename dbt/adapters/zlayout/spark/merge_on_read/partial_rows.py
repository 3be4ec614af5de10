"""Partial rows: a null in an incoming row keeps the value that the table has."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions

from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.schema_evolution import cast_to
from dbt.adapters.zlayout.spark.read.record_tables import queried, record_view
from dbt.adapters.zlayout.spark.schema.table_schema import DELETED
from dbt.adapters.zlayout.spark.write.change_plan import Target
from dbt.adapters.zlayout.spark.write.incoming_keys import Source
from dbt.adapters.zlayout.spark.write.incoming_rows import LATEST_DELETE, has_deleted_column, with_latest_delete

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_THERE = "__zl_there"


def rows_that_may_match(target: Target, source: Source) -> DataFrame:
    """Returns the table's rows whose key may be among the source's, in the table's future columns."""
    files = source.may_match(target.rows())
    return cast_to(queried(files, record_view(target.opened).merged), target.layout.schema_json)


def whole_rows(target: Target, frame: DataFrame) -> DataFrame:
    """Returns incoming rows with their nulls filled from the table, if the table takes partial rows.

    A row whose ordering value is below the table's fills the nulls of the table's row instead. It is left out if it
    fills none. Deletes stay as they are, and nothing from before a delete comes back.

    Args:
        target: The table.
        frame: Incoming rows, in the table's future columns.
    """
    table_type = target.layout.config.table_type
    if not table_type.keeps_old_values:
        return frame
    source = Source(with_latest_delete(frame, table_type), table_type.unique_key)
    there = rows_that_may_match(target, source).withColumn(_THERE, functions.lit(True))
    keys = [backquoted(key) for key in table_type.unique_key]
    same = reduce(lambda left, right: left & right, (functions.expr(f"r.{key} = t.{key}") for key in keys))
    joined = source.hinted.alias("r").join(there.alias("t"), same, "left")
    alone, newer = f"{_THERE} is null", "true"
    if table_type.ordering is not None:
        name = backquoted(table_type.ordering)
        newer = f"(t.{name} is null or coalesce(r.{name} >= t.{name}, false))"
        if has_deleted_column(frame):
            deleted_since = f"t.{name} is null or coalesce(r.{LATEST_DELETE}.at >= t.{name}, false)"
            alone += f" or r.{LATEST_DELETE} is not null and ({deleted_since})"
    if has_deleted_column(frame):
        alone += f" or r.{DELETED}"
    values = [each for each in map(backquoted, frame.columns) if each not in {*keys, backquoted(DELETED)}]
    fills = " or ".join(f"t.{each} is null and r.{each} is not null" for each in values) or "false"
    filled = {
        each: f"case when {alone} then r.{each} when {newer} then coalesce(r.{each}, t.{each})"
        f" else coalesce(t.{each}, r.{each}) end as {each}"
        for each in values
    }
    rows = joined.where(f"{alone} or {newer} or {fills}")
    return rows.selectExpr(*(filled.get(each, f"r.{each}") for each in map(backquoted, frame.columns)))
