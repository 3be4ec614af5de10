"""Precombining: of several rows of a key that come together, the one that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions

from dbt.adapters.zlayout.config.table_type import TableTypeConfig
from dbt.adapters.zlayout.spark.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RANK = "_zl_rank"
_ARRIVAL = "__zl_arrival"


def precombined(frame: DataFrame, table_type: TableTypeConfig) -> DataFrame:
    """One row a key: that with the greatest value of the ordering column, of equal ones the last.

    Args:
        frame: Rows; without an ordering column they are given back as they are.
        table_type: Key and ordering.
    """
    if table_type.ordering is None:
        return frame
    arrived = frame.withColumn(_ARRIVAL, functions.monotonically_increasing_id())
    keys = ", ".join(quoted(each) for each in table_type.unique_key)
    order = f"{quoted(table_type.ordering)} desc nulls last, {_ARRIVAL} desc"
    rank = functions.expr(f"row_number() over (partition by {keys} order by {order})")
    return arrived.withColumn(RANK, rank).where(f"{RANK} = 1").drop(RANK, _ARRIVAL)
