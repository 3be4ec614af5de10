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

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as fn
from pyspark.sql import types as t

from dbt.adapters.zlayout.curve.keys import common_bytes, comparable, is_text, large_binary
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
# Each task returns up to this many ranges; the final, smaller number is cut from all of them together.
_RANGES_OF_A_TASK = 1_000
_MOST_RANGES_HELD = 16 * _RANGES_OF_A_TASK
_WORD_BYTES = 8


@dataclass(frozen=True)
class Spelling:
    """How values of a type are fetched to Python and written in SQL.

    Attributes:
        fetched: SQL expression of a column, ``{}``, whose values Python can hold without loss.
        literal: Maps such a value to an SQL constant.
    """

    fetched: str
    literal: Callable[[Any], str]

    def condition(self, column_sql: str, values: Iterable[Any]) -> str:
        """Returns a condition that is TRUE where a column has one of the fetched values; ``false`` without values."""
        known = [value for value in values if value is not None]
        texts = sorted({text for value in known if not _is_nan(value) for text in _spellings(value, self)})
        parts = [f"{column_sql} in ({', '.join(texts)})"] if texts else []
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
    return values_condition(frame, column_sql, most_values, most_ranges)


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
    return _any_of(_range(column_sql, low, high, spelling) for low, high in _ranges(values, spelling, most_ranges))


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
    """Returns the constants that equal a value: both zeros for 0.0, which Parquet tells apart and Spark does not."""
    zero = isinstance(value, float) and value == 0
    return [spelling.literal(each) for each in ((-0.0, 0.0) if zero else (value,))]


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
    # As few digits as possible: a constant with more digits than the column has would make Spark cast the column.
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "BD"


def _floating(value: float, function: str, suffix: str) -> str:
    if math.isnan(value) or math.isinf(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"{function}('{name}')"
    return f"{value!r}{suffix}"


# Spark 3 cannot send intervals to Python, and has no times of the day.
_KINDS_OF_INTERVALS = [t.DayTimeIntervalType] if arrow_type("interval day") is not None else []
_KINDS_OF_TIMES = [t.TimeType] if hasattr(t, "TimeType") else []

_SPELLINGS: Sequence[tuple[Sequence[type[t.DataType]], Spelling]] = (
    ((t.BooleanType,), Spelling("{}", lambda value: str(value).lower())),
    ((t.IntegralType,), Spelling("{}", str)),
    ((t.DecimalType,), Spelling("{}", _decimal)),
    ((t.FloatType,), Spelling("{}", lambda value: _floating(value, "float", "F"))),
    ((t.DoubleType,), Spelling("{}", lambda value: _floating(value, "double", "D"))),
    ((t.StringType, t.CharType, t.VarcharType), Spelling("{}", _text)),
    ((t.BinaryType,), Spelling("{}", _binary)),
    # Fetched as text or number: Python's dates end in the year 9999, and local time is ambiguous.
    ((t.DateType,), Spelling("cast({} as string)", lambda value: f"date'{value}'")),
    ((t.TimestampNTZType,), Spelling("cast({} as string)", lambda value: f"timestamp_ntz'{value}'")),
    ((t.TimestampType,), Spelling("unix_micros({})", lambda value: f"timestamp_micros({value})")),
    (_KINDS_OF_INTERVALS, Spelling("{}", lambda value: day_time_literal(value // timedelta(microseconds=1)))),
    (_KINDS_OF_TIMES, Spelling("{}", lambda value: f"time'{value.isoformat()}'")),
)


def covering_ranges(low: pa.Array, high: pa.Array, most: int) -> tuple[pa.Array, pa.Array]:
    """Merges ranges until at most ``most`` are left.

    Ranges that overlap become one. If more than ``most`` are left, the narrowest gaps between them are closed. The
    width of a gap only decides which ones are closed; every value of the input lies in a range of the output.

    Args:
        low: The least value of each range, of an orderable type, without nulls.
        high: The greatest value of each range; for single values the same array.
        most: Most ranges to return, at least one.

    Returns:
        The ends of ranges that do not overlap, in ascending order; NaN is the greatest number.

    >>> low, high = covering_ranges(pa.array([7, 1, 3, 100]), pa.array([9, 4, 5, 101]), 2)
    >>> low.to_pylist(), high.to_pylist()
    ([1, 100], [9, 101])
    """
    count = len(low)
    if not count:
        return low, high
    both = pa.concat_arrays([low, high])
    order = pc.sort_indices(both).to_numpy()
    rank = np.empty(len(both), np.int64)
    rank[order] = np.arange(len(both))
    by_low = np.argsort(rank[:count])
    reach = np.maximum.accumulate(rank[count:][by_low])
    begins = np.flatnonzero(np.r_[True, rank[:count][by_low][1:] > reach[:-1]])
    ends = np.r_[begins[1:], count] - 1
    first, last = by_low[begins], order[reach[ends]]
    if len(begins) > most:
        widths = _gaps(both.take(pa.array(last[:-1])), both.take(pa.array(first[1:])))
        closed = len(widths) - (most - 1)
        cuts = np.sort(np.argpartition(widths, closed - 1)[closed:])
        first, last = first[np.r_[0, cuts + 1]], last[np.r_[cuts, len(last) - 1]]
    return both.take(pa.array(first)), both.take(pa.array(last))


def _gaps(before: pa.Array, after: pa.Array) -> npt.NDArray[np.float64]:
    """Returns how far each value is from its counterpart, on any scale that grows with the distance.

    For texts it is the logarithm of the distance, with each text read as a fraction whose digits are its bytes.
    """
    if not is_text(before.type):
        return _distances(comparable(before).values, comparable(after).values)
    left, right = large_binary(before), large_binary(after)
    alike = common_bytes(left, right)
    differences = _words_at(right, alike) - _words_at(left, alike)
    found: npt.NDArray[np.float64] = np.log2(np.maximum(differences.astype(np.float64), 0.5)) - 8.0 * alike
    return found


def _words_at(texts: pa.Array, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Returns eight bytes of each text as a number, from its start position on, padded with zeros after its end."""
    _, offset_buffer, content = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    places = (offsets[:-1] + starts)[:, np.newaxis] + np.arange(_WORD_BYTES)
    some_bytes = np.frombuffer(content, np.uint8) if content is not None and content.size else np.zeros(1, np.uint8)
    found = some_bytes[np.minimum(places, len(some_bytes) - 1)]
    return _words(np.where(places < offsets[1:, np.newaxis], found, 0).astype(np.uint8))


def _distances(before: npt.NDArray[Any], after: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Returns the distances of comparable values; of long decimals by eight bytes from the first difference on."""
    if before.dtype.kind == "S":
        width = before.dtype.itemsize
        matrices = [each.view(np.uint8).reshape(-1, width) for each in (before, after)]
        stacked = np.concatenate(matrices)
        differs = np.flatnonzero((stacked != stacked[0]).any(axis=0))
        start = int(differs[0]) if len(differs) else 0
        before, after = (_words(each[:, start : start + _WORD_BYTES]) for each in matrices)
    # Beyond the range of int64 the difference wraps to its value as an unsigned number.
    found: npt.NDArray[np.float64] = (after.view(np.uint64) - before.view(np.uint64)).astype(np.float64)
    return found


def _words(some_bytes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    padded = np.zeros((len(some_bytes), _WORD_BYTES), np.uint8)
    padded[:, : some_bytes.shape[1]] = some_bytes
    words: npt.NDArray[np.uint64] = padded.view(">u8").reshape(-1).astype(np.uint64)
    return words
