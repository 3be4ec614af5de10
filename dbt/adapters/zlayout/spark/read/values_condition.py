"""Writes the values of a query as an SQL condition: a list, or ranges if there are many values.

Spark never passes the values of a join's other side to a file index. As constants in a condition,
they reach it with the filters. Merges write the keys of incoming rows in the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql import types as t

from dbt.adapters.zlayout.curve.value_ranges import covering_ranges
from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.predicate.literals import day_time_literal
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.read.session import prepare
from dbt.adapters.zlayout.spark.schema.types import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# These characters cannot form an escape, a quote or a Spark variable (`${…}`), whatever Spark's settings are.
_PLAIN_TEXT = re.compile(r"[\w .,:;@/+=()-]*")
_VALUE = "zlayout_value"
# The condition where a value has no constant: every row may have it.
EVERY_ROW = "true"
# Each task returns up to this many ranges; the final, smaller number is cut from all of them together.
_RANGES_OF_A_TASK = 1_000
_MOST_RANGES_HELD = 16 * _RANGES_OF_A_TASK


@dataclass(frozen=True)
class Spelling:
    """How values of a type are fetched to Python and written in SQL.

    Attributes:
        fetched: SQL expression of a column, ``{}``, whose values Python can hold without loss.
        literal: Maps such a value to an SQL constant.
        finds: Whether a value is known exactly, and Parquet readers find it by its constant.
    """

    fetched: str
    literal: Callable[[Any], str]
    finds: Callable[[Any], bool] = lambda _: True

    def condition(self, column_sql: str, values: Iterable[Any]) -> str:
        """Returns a condition that is TRUE where a column has one of the fetched values; ``false`` without values.

        It is `EVERY_ROW` if one of the values is not found by its constant.
        """
        known = [value for value in values if value is not None]
        if not all(map(self.finds, known)):
            return EVERY_ROW
        texts = sorted({self.literal(value) for value in known if not (_is_nan(value) or _is_zero(value))})
        parts = [f"{column_sql} in ({', '.join(texts)})"] if texts else []
        # Spark passes only one zero of a list to readers of Parquet, and they distinguish the two.
        zeros = _spellings(0.0, self) if any(map(_is_zero, known)) else []
        parts += [f"{column_sql} = {zero}" for zero in zeros]
        return _any_of([*parts, *([f"isnan({column_sql})"] if any(map(_is_nan, known)) else [])])


def values_predicate(spark: SparkSession, column_sql: str, query: str, most_values: int, most_ranges: int) -> str:
    """Runs a query with one column and writes its values as a condition on another column.

    Args:
        column_sql: The other column, as the statement that takes the condition spells it.
        query: A query with one column. Nulls are left out because they equal nothing.
        most_values: Up to this many distinct values are listed one by one.
        most_ranges: More values become at most this many ranges, which also cover values in between.

    Returns:
        A condition that is TRUE wherever the column has one of the values; ``false`` if there are no values.

    Raises:
        UnsupportedError: The query has several columns, or a column whose type has no constants.
    """
    prepare(spark, query)
    frame = spark.sql(query)
    if len(frame.columns) != 1:
        raise UnsupportedError(
            f"zlayout_prune_by: the query has {len(frame.columns)} columns ({', '.join(frame.columns)}); select the "
            f"one whose values {column_sql} must have"
        )
    condition = values_condition(frame, column_sql, most_values, most_ranges)
    if " in (" not in condition or spark.conf.get("spark.sql.ansi.enabled") == "true":
        return condition
    # Without ANSI mode, Spark compares a text with other values in a list as texts, but as values in a join.
    is_text = isinstance(frame.schema[0].dataType, t.StringType)
    return f"({condition} or typeof({column_sql}) {'not ' if is_text else ''}like 'string%')"


def values_condition(frame: DataFrame, column_sql: str, most_values: int, most_ranges: int) -> str:
    """Writes the values of a column as a condition on another column.

    Args:
        frame: A DataFrame with one column. It is read twice if it has more than ``most_values`` distinct values.
        column_sql: The other column, as the statement that takes the condition spells it.
        most_values: Up to this many distinct values are listed one by one.
        most_ranges: More values become at most this many ranges.

    Returns:
        As `values_predicate`. A Parquet reader that filters by the condition does not lose NaN or negative zero.

    Raises:
        UnsupportedError: The type of the column has no constants.
    """
    spelling = spelling_of(frame.schema[0].dataType, frame.columns[0])
    value = fn.col(_VALUE)
    if isinstance(frame.schema[0].dataType, t.StringType):
        value = value.cast("string").alias(_VALUE)  # without a collation, which would treat different strings as equal
    values = frame.toDF(_VALUE).select(value).where(fn.col(_VALUE).isNotNull())
    listed = values.distinct().selectExpr(spelling.fetched.format(_VALUE)).limit(most_values + 1)
    found = [row[0] for row in listed.collect()]
    if len(found) <= most_values:
        return spelling.condition(column_sql, found)
    ranges = _ranges(values, spelling, most_ranges)
    if not all(spelling.finds(end) for ends in ranges for end in ends):
        return EVERY_ROW
    return _any_of(_range(column_sql, low, high, spelling) for low, high in ranges)


def is_exact(value: Any) -> bool:
    """Returns whether a fetched value is the one in Spark. Java puts U+FFFD in place of bytes that are not UTF-8."""
    return not (isinstance(value, str) and "\ufffd" in value)


def _any_of(conditions: Iterable[str]) -> str:
    listed = list(conditions)
    return f"({' or '.join(listed)})" if len(listed) > 1 else "".join(listed) or "false"


def _range(column_sql: str, low: Any, high: Any, spelling: Spelling) -> str:
    if _is_nan(low):
        return f"isnan({column_sql})"
    least = _spellings(low, spelling)[0]
    if _is_nan(high):
        return f"({column_sql} >= {least} or isnan({column_sql}))"
    return f"{column_sql} between {least} and {_spellings(high, spelling)[-1]}"


def _spellings(value: Any, spelling: Spelling) -> list[str]:
    """Returns the constants that equal a value: both zeros for 0.0, which Parquet distinguishes and Spark does not."""
    return [spelling.literal(each) for each in ((-0.0, 0.0) if _is_zero(value) else (value,))]


def _is_zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0


def _is_nan(value: Any) -> bool:
    # NaN needs `isnan`: bounds in Parquet leave NaN out, so a reader that filters by them would skip it. Readers do
    # not push `isnan` down.
    return isinstance(value, float) and math.isnan(value)


def _ranges(values: DataFrame, spelling: Spelling, most: int) -> list[tuple[Any, Any]]:
    use_driver_python(values.sparkSession)
    value, kind = fn.col(_VALUE), values.schema[0].dataType
    ends = t.StructType([t.StructField("low", kind), t.StructField("high", kind)])
    pairs = values.select(value.alias("low"), value.alias("high"))
    some = pairs.mapInArrow(_Ranges(_RANGES_OF_A_TASK).__call__, ends)
    few = some.repartition(1).mapInArrow(_Ranges(most).__call__, ends)
    rows = few.selectExpr(*map(spelling.fetched.format, ("low", "high"))).collect()
    return [(row[0], row[1]) for row in rows]


@dataclass(frozen=True)
class _Ranges:
    """Merges the ranges of one task until at most ``most`` are left."""

    most: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(self._joined([batch], _RANGES_OF_A_TASK))
            if sum(each.num_rows for each in held) > _MOST_RANGES_HELD:
                held = [self._joined(held, _RANGES_OF_A_TASK)]
        if held:
            yield self._joined(held, self.most)

    def _joined(self, held: Sequence[pa.RecordBatch], most: int) -> pa.RecordBatch:
        low, high = (pa.concat_arrays([each.column(number) for each in held]) for number in range(2))
        return pa.RecordBatch.from_arrays([*covering_ranges(low, high, most)], schema=held[0].schema)


def spelling_of(kind: t.DataType, name: str) -> Spelling:
    """Returns how the values of a column are fetched and written.

    Raises:
        UnsupportedError: The type of the column has no constants.
    """
    if isinstance(kind, t.DecimalType) and kind.scale == kind.precision:
        return Spelling("{}", lambda value: _decimal(value) if value else "0.0BD")
    for types, spelling in _SPELLINGS:
        if isinstance(kind, tuple(types)):
            return spelling
    raise UnsupportedError(
        f"zlayout_prune_by: column {name} has type {kind.simpleString()}, for which SQL has no constants; select a "
        "number, text, binary, boolean, date or timestamp"
    )


def _text(value: str) -> str:
    if _PLAIN_TEXT.fullmatch(value):
        return f"'{value}'"
    return f"cast({_binary(value.encode())} as string)"


def _binary(value: bytes | bytearray) -> str:
    return f"X'{bytes(value).hex().upper()}'"


def _decimal(value: Decimal) -> str:
    # As few digits as possible: a constant with more digits than the column has would make Spark cast the column. `0BD`
    # has one before the point, which a column of decimal(38, 38) has not.
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "BD"


def _floating(value: float, function: str, suffix: str) -> str:
    if math.isnan(value) or math.isinf(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"{function}('{name}')"
    return f"{value!r}{suffix}"


# Spark 3 cannot send intervals to Python, and has no times of the day.
_KINDS_OF_INTERVALS = [t.DayTimeIntervalType] if arrow_type("interval day") is not None else []
# 5 to 14 October 1582, in microseconds, with a day before and after for time zones: the calendar of Java's old classes,
# through which Spark hands constants to Parquet, does not have these days.
_NO_DAYS = range(-12_220_243_200_000_000, -12_219_206_400_000_000)
_KINDS_OF_TIMES = [t.TimeType] if hasattr(t, "TimeType") else []

_SPELLINGS: Sequence[tuple[Sequence[type[t.DataType]], Spelling]] = (
    ((t.BooleanType,), Spelling("{}", lambda value: str(value).lower())),
    ((t.IntegralType,), Spelling("{}", str)),
    ((t.DecimalType,), Spelling("{}", _decimal)),
    ((t.FloatType,), Spelling("{}", lambda value: _floating(value, "float", "F"))),
    ((t.DoubleType,), Spelling("{}", lambda value: _floating(value, "double", "D"))),
    ((t.StringType, t.CharType, t.VarcharType), Spelling("{}", _text, is_exact)),
    ((t.BinaryType,), Spelling("{}", _binary)),
    # Fetched as text or number: Python's dates end in the year 9999, and local time is ambiguous.
    ((t.DateType,), Spelling("cast({} as string)", lambda value: f"date'{value}'")),
    ((t.TimestampNTZType,), Spelling("cast({} as string)", lambda value: f"timestamp_ntz'{value}'")),
    (
        (t.TimestampType,),
        Spelling("unix_micros({})", lambda value: f"timestamp_micros({value})", lambda value: value not in _NO_DAYS),
    ),
    (_KINDS_OF_INTERVALS, Spelling("{}", lambda value: day_time_literal(value // timedelta(microseconds=1)))),
    (_KINDS_OF_TIMES, Spelling("{}", lambda value: f"time'{value.isoformat()}'")),
)
