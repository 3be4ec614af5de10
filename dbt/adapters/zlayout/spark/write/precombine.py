"""Precombining: keeps one of several incoming rows that share a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions

from dbt.adapters.zlayout.config.table_type import TableTypeConfig
from dbt.adapters.zlayout.predicate.literals import backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RANK, _ARRIVAL = "_zl_rank", "__zl_arrival"


def precombined(frame: DataFrame, table_type: TableTypeConfig) -> DataFrame:
    """Returns one row per key: the one with the greatest value of the ordering column, and the last one of equals.

    Args:
        frame: Incoming rows. Without an ordering column they are returned unchanged.
        table_type: Gives the key and the ordering column.
    """
    if table_type.ordering is None:
        return frame
    arrived = frame.withColumn(_ARRIVAL, functions.monotonically_increasing_id())
    keys = [backquoted(each) for each in table_type.unique_key]
    return first_of(arrived, keys, f"{backquoted(table_type.ordering)} desc nulls last, {_ARRIVAL} desc").drop(_ARRIVAL)


def first_of(frame: DataFrame, keys: Sequence[str], order: str) -> DataFrame:
    """Returns the first row of each key.

    Args:
        frame: The rows to choose from.
        keys: Key columns, as SQL.
        order: SQL, as after ORDER BY.
    """
    rank = functions.expr(f"row_number() over (partition by {', '.join(keys)} order by {order})")
    return frame.withColumn(_RANK, rank).where(f"{_RANK} = 1").drop(_RANK)
