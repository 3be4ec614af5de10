"""The values of a query as a condition in SQL: a list, or ranges where there are many.

A file index never hears of the values of a join's other side; written as constants they reach it with the filters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn
from pyspark.sql import types as t

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.spark.session import prepare

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# Neither an escape nor a quote nor a variable (`${…}`) of Spark's can be spelled with these, whatever its settings.
_PLAIN_TEXT = re.compile(r"[\w .,:;@/+=()-]*")
_VALUE = "zlayout_value"


@dataclass(frozen=True)
class _Spelling:
    """How values of a type come to Python, and what they are in SQL."""

    fetched: Callable[[Column], Column]
    literal: Callable[[Any], str]


def values_predicate(spark: SparkSession, column_sql: str, query: str, most_values: int, most_ranges: int) -> str:
    """Runs a query of one column and writes its values as a condition on another.

    Args:
        spark: The session.
        column_sql: The column, as it stands in the statement that the condition is for.
        query: One column; null is left out, as it equals nothing.
        most_values: Up to so many distinct values are listed.
        most_ranges: More of them become at most so many ranges, which also hold values between them.

    Returns:
        A condition that is TRUE wherever the column has one of the values; ``false`` where there are none.

    Raises:
        UnsupportedError: The query has several columns, or one whose type has no constants.
    """
    prepare(spark, query)
    frame = spark.sql(query)
    if len(frame.columns) != 1:
        raise UnsupportedError(
            f"zlayout_prune_by: the query has {len(frame.columns)} columns ({', '.join(frame.columns)}); select the "
            f"one whose values {column_sql} shall have"
        )
    spelling = _spelling(frame.schema[0].dataType, frame.columns[0])
    value = fn.col(_VALUE)
    if isinstance(frame.schema[0].dataType, t.StringType):
        value = value.cast("string").alias(_VALUE)  # without a collation, which would take different texts for one
    values = frame.toDF(_VALUE).select(value).where(fn.col(_VALUE).isNotNull()).distinct()
    found = [row[0] for row in values.select(spelling.fetched(fn.col(_VALUE))).limit(most_values + 1).collect()]
    if not found:
        return "false"
    if len(found) <= most_values:
        return f"{column_sql} in ({', '.join(sorted(map(spelling.literal, found)))})"
    return _ranges(column_sql, values, spelling, most_ranges)


def _ranges(column_sql: str, values: DataFrame, spelling: _Spelling, most_ranges: int) -> str:
    # Spark's own range partitioning: about as many values each, in Spark's order of the type, not on the driver.
    value, part = fn.col(_VALUE), fn.spark_partition_id().alias("part")
    parted = values.repartitionByRange(most_ranges, value).select(value, part).groupBy("part")
    ends = parted.agg(fn.min(value).alias("low"), fn.max(value).alias("high")).orderBy("low")
    rows = ends.select(spelling.fetched(fn.col("low")), spelling.fetched(fn.col("high"))).collect()
    between = [f"{column_sql} between {spelling.literal(low)} and {spelling.literal(high)}" for low, high in rows]
    return f"({' or '.join(between)})"


def _spelling(kind: t.DataType, name: str) -> _Spelling:
    for types, spelling in _SPELLINGS:
        if isinstance(kind, tuple(types)):
            return spelling
    raise UnsupportedError(
        f"zlayout_prune_by: column {name} has type {kind.simpleString()}, of which there are no constants; select a "
        "number, text, binary, boolean, date or timestamp"
    )


def _as_is(column: Column) -> Column:
    return column


def _text(value: str) -> str:
    if _PLAIN_TEXT.fullmatch(value):
        return f"'{value}'"
    return f"cast({_binary(value.encode())} as string)"


def _binary(value: bytes | bytearray) -> str:
    return f"X'{bytes(value).hex().upper()}'"


def _decimal(value: Decimal) -> str:
    # The fewest digits that hold it: a constant with more than the column's would have the column cast.
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "BD"


def _floating(value: float, function: str, suffix: str) -> str:
    if math.isnan(value) or math.isinf(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"{function}('{name}')"
    return f"{value!r}{suffix}"


_SPELLINGS: Sequence[tuple[Sequence[type[t.DataType]], _Spelling]] = (
    ((t.BooleanType,), _Spelling(_as_is, lambda value: str(value).lower())),
    ((t.IntegralType,), _Spelling(_as_is, str)),
    ((t.DecimalType,), _Spelling(_as_is, _decimal)),
    ((t.FloatType,), _Spelling(_as_is, lambda value: _floating(value, "float", "F"))),
    ((t.DoubleType,), _Spelling(_as_is, lambda value: _floating(value, "double", "D"))),
    ((t.StringType, t.CharType, t.VarcharType), _Spelling(_as_is, _text)),
    ((t.BinaryType,), _Spelling(_as_is, _binary)),
    # As text and as a number: Python's dates end at the year 9999, and local time is not exact.
    ((t.DateType,), _Spelling(lambda column: column.cast("string"), lambda value: f"date'{value}'")),
    ((t.TimestampNTZType,), _Spelling(lambda column: column.cast("string"), lambda value: f"timestamp_ntz'{value}'")),
    ((t.TimestampType,), _Spelling(fn.unix_micros, lambda value: f"timestamp_micros({value})")),
)
