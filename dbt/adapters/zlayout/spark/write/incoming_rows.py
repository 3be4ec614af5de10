"""Incoming rows: a change feed marks some as deletes, and precombining keeps one of several that share a key."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions

from dbt.adapters.zlayout.config.table_type import TableTypeConfig
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.history.changes import NET_CHANGE
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, why_failed
from dbt.adapters.zlayout.spark.jvm.scala import members
from dbt.adapters.zlayout.spark.schema.table_schema import DELETED
from dbt.adapters.zlayout.spark.schema.types import raw_fields, schema_json_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The number of a row among those with the same key, from 1.
RANK = "_zl_rank"
# The ordering value of the latest delete before an incoming row, in a struct; null where none comes before it.
LATEST_DELETE = "__zl_latest_delete"
_ARRIVAL, _DELETES = "__zl_arrival", "__zl_deletes"


@dataclass(frozen=True)
class ChangeFeed:
    """Describes which incoming rows are deletes, for a table that does not exist yet.

    Attributes:
        deleted_when: SQL condition over the incoming columns. A row that meets it is a delete.
        unique_key: Columns that identify the row to delete.
        stored_columns: Columns that are stored even if only the condition reads them.
    """

    deleted_when: str
    unique_key: tuple[str, ...]
    stored_columns: tuple[str, ...] = ()


def with_deletes(
    frame: DataFrame, condition: str, stored: Collection[str], subject: str, progress: Progress | None
) -> DataFrame:
    """Adds the column `DELETED` to the rows and drops columns that only the condition reads.

    Args:
        frame: Incoming rows. Their query has not run yet.
        condition: SQL over their columns. A row is a delete only if the condition is TRUE for it.
        stored: Columns that the table has or will have. They are always kept.
        progress: Called with a line that names the columns left out.

    Raises:
        ConfigError: The condition does not fit the rows.
    """
    try:
        # Checked as a filter first, because a filter accepts nothing but a condition.
        frame.where(condition)
        selected: Any = frame.select(functions.expr(condition))
    except (AnalysisException, ParseException) as error:
        why = why_failed(error)
        columns = f"the columns {', '.join(frame.columns)}"
        raise ConfigError(
            [f"deleted_when: {condition!r} is not a condition over {columns}: {why}; write SQL as after WHERE"],
            subject,
        ) from error
    read = selected._jdf.queryExecution().analyzed().references().toSeq()
    known = {name.lower() for name in stored}
    only_read = {each.name() for each in members(read)} - {name for name in frame.columns if name.lower() in known}
    left_out = [name for name in frame.columns if name in only_read]
    # Nobody wants to store what `net_changes` says of a row.
    told_of = [name for name in left_out if name != NET_CHANGE]
    if told_of and progress is not None:
        progress(f"deleted_when reads {', '.join(told_of)}, which the table does not have; it is not stored")
    deleted = functions.coalesce(functions.expr(condition), functions.lit(False))
    kept = [functions.col(backquoted(name)) for name in frame.columns if name not in only_read]
    return frame.select(*kept, deleted.alias(DELETED))


def with_deleted_column(schema_json: str) -> str:
    """Returns the table's columns as Spark's JSON, with `DELETED` appended."""
    return schema_json_of(
        [*raw_fields(schema_json), {"name": DELETED, "type": "boolean", "nullable": True, "metadata": {}}]
    )


def has_deleted_column(frame: DataFrame) -> bool:
    """Returns whether the rows carry the column `DELETED`, so that some may be deletes."""
    return DELETED in frame.columns


def upserts_of(frame: DataFrame) -> DataFrame:
    """Returns the rows that are not deletes, without the column `DELETED`."""
    return frame.where(f"not {DELETED}").drop(DELETED) if has_deleted_column(frame) else frame


def precombined(frame: DataFrame, table_type: TableTypeConfig) -> DataFrame:
    """Returns one row per key: the one with the greatest value of the ordering column, and the last one of equals.

    With partial rows, a column that is null in that row has the newest value of the rows before it.

    Args:
        frame: Incoming rows. Without an ordering column they are returned unchanged.
        table_type: Gives the key and the ordering column.
    """
    rows = with_latest_delete(frame, table_type)
    return rows.drop(LATEST_DELETE) if table_type.keeps_old_values else rows


def with_latest_delete(frame: DataFrame, table_type: TableTypeConfig) -> DataFrame:
    """Returns the rows of `precombined`; those of partial rows in a feed have `LATEST_DELETE` as a further column."""
    if table_type.ordering is None:
        return frame
    arrived = frame.withColumn(_ARRIVAL, functions.monotonically_increasing_id())
    keys = [backquoted(each) for each in table_type.unique_key]
    ordering = backquoted(table_type.ordering)
    if table_type.keeps_old_values:
        arrived = _with_nulls_filled(arrived, keys, ordering)
    return first_of(arrived, keys, f"{ordering} desc nulls last, {_ARRIVAL} desc").drop(_ARRIVAL, RANK)


def _with_nulls_filled(arrived: DataFrame, keys: Sequence[str], ordering: str) -> DataFrame:
    """Returns the rows with each null replaced by the newest earlier value for the key, back to its last delete."""
    within, value = ", ".join(keys), "{}"
    so_far = f"order by {ordering} asc nulls first, {_ARRIVAL} rows between unbounded preceding and current row"
    if has_deleted_column(arrived):
        latest = f"struct(max(if({DELETED}, {ordering}, null)) over (partition by {within}) as at)"
        deletes = f"count_if({DELETED}) over (partition by {within} {so_far})"
        arrived = arrived.selectExpr("*", f"{latest} as {LATEST_DELETE}", f"{deletes} as {_DELETES}")
        within, value = f"{within}, {_DELETES}", f"if({DELETED}, null, {{}})"
    fixed = {*keys, ordering, *map(backquoted, (DELETED, LATEST_DELETE, _DELETES, _ARRIVAL))}
    filled = {
        name: f"coalesce({name}, last({value.format(name)}, true) over (partition by {within} {so_far})) as {name}"
        for name in map(backquoted, arrived.columns)
        if name not in fixed
    }
    rows = arrived.selectExpr(*(filled.get(name, name) for name in map(backquoted, arrived.columns)))
    if has_deleted_column(rows):
        rows = rows.withColumn(LATEST_DELETE, functions.expr(f"if({_DELETES} > 0, {LATEST_DELETE}, null)"))
    return rows.drop(_DELETES)


def first_of(frame: DataFrame, keys: Sequence[str], order: str) -> DataFrame:
    """Returns the first row of each key, with `RANK` as a further column.

    Args:
        frame: The rows to choose from.
        keys: Key columns, as SQL.
        order: SQL, as after ORDER BY.
    """
    rank = functions.expr(f"row_number() over (partition by {', '.join(keys)} order by {order})")
    return frame.withColumn(RANK, rank).where(f"{RANK} = 1")
