"""Footer values: converts raw Parquet bounds to values of the table's column, or rejects those that prove nothing."""

from __future__ import annotations

import decimal
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_WIDE = decimal.Context(prec=76)
_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_WRITER = re.compile(r"(parquet-cpp(?:-arrow)?|parquet-mr) version (\d+)\.(\d+)(?:\.(\d+))?")
# Releases of parquet-java whose bounds reveal NaN; 1.18.0 excludes NaN from bounds, and later releases may, too.
_FIRST_WITH_NAN, _LAST_WITH_NAN = (1, 10, 0), (1, 17, 0)
# Before this day Spark may shift dates and times of files that do not state the calendar and zone of their writer.
FIRST_SAFE_DAY = -25567
DAY_US = 86_400_000_000
_SPARK_TIME = {"Type": "Time", "isAdjustedToUTC": False, "timeUnit": "microseconds"}
_FLOATS = {pa.float32(): ("FLOAT",), pa.float64(): ("FLOAT", "DOUBLE")}
_UNIT_NS = {"milliseconds": 1_000_000, "microseconds": 1_000, "nanoseconds": 1}


@dataclass(frozen=True)
class Bounds:
    """Smallest and largest value of a chunk or a file, without nulls and NaN.

    Attributes:
        minimum: As ``pyarrow.array`` takes it for the column's type: days, microseconds, Decimal, str …
        maximum: Likewise.
        minimum_exact: Whether a row has the minimum; otherwise it is only a lower bound.
        maximum_exact: Likewise.
    """

    minimum: Any
    maximum: Any
    minimum_exact: bool = True
    maximum_exact: bool = True


Decoder = Callable[[Any, Any], Bounds | None]


@dataclass(frozen=True)
class WriterRules:
    """Which statistics of a file are reliable, depending on its writer.

    Attributes:
        text_bounds: Whether bounds of strings and binary follow the order of unsigned bytes, or are wider.
        text_exact: Whether this writer never truncates them.
        old_dates: Whether dates and times before 1900 are read as they are stored.
        old_int96: Whether the same holds for the older 96-bit timestamps.
        nan_drops_bounds: Whether a chunk of floats has bounds only if it has no NaN.
    """

    text_bounds: bool
    text_exact: bool
    old_dates: bool
    old_int96: bool
    nan_drops_bounds: bool


def writer_rules(created_by: str, key_values: Mapping[bytes, bytes]) -> WriterRules:
    """Returns the rules for a file with this ``created_by`` and key-value metadata in its footer."""
    match = _WRITER.search(created_by)
    writer, version = (match[1], tuple(int(part or 0) for part in match.groups()[1:])) if match else ("", (0, 0, 0))
    spark_version = _spark_version(key_values)
    spark3 = spark_version >= (3, 0)
    todays_calendar = not any(key in key_values for key in _LEGACY_CALENDAR)
    recent_java = writer == "parquet-mr" and version >= (1, 10)
    return WriterRules(
        text_bounds=writer.startswith("parquet-cpp") or recent_java or spark3,
        text_exact=writer.startswith("parquet-cpp"),
        old_dates=spark3 and todays_calendar,
        # Source: org.apache.spark.sql.execution.datasources.DataSourceUtils.int96RebaseSpec.
        old_int96=spark_version >= (3, 1) and todays_calendar,
        # These releases compare with Double.compare, so NaN becomes the maximum, and the bounds are then dropped.
        nan_drops_bounds=writer == "parquet-mr" and _FIRST_WITH_NAN <= version <= _LAST_WITH_NAN,
    )


def is_of_old_calendar(key_values: Mapping[bytes, bytes]) -> bool:
    """Returns whether a file says that Spark wrote its dates and times before 1900 in the calendar of that time."""
    return (0, 0) < _spark_version(key_values) < (3, 0) or any(key in key_values for key in _LEGACY_CALENDAR)


def is_of_todays_calendar(key_values: Mapping[bytes, bytes]) -> bool:
    """Returns whether a file says that Spark wrote its dates and times in today's calendar, whatever their age."""
    return _spark_version(key_values) >= (3, 0) and not is_of_old_calendar(key_values)


def _spark_version(key_values: Mapping[bytes, bytes]) -> tuple[int, int]:
    match = re.match(rb"(\d+)\.(\d+)", key_values.get(_SPARK_VERSION, b""))
    return (int(match[1]), int(match[2])) if match else (0, 0)


def bounds_decoder(leaf: pq.ColumnSchema, column_type: pa.DataType, rules: WriterRules) -> Decoder | None:
    """Returns a decoder of a chunk's raw minimum and maximum.

    Args:
        leaf: The file's column.
        column_type: The canonical type of the column in the table.
        rules: The rules for the file.

    Returns:
        A function of raw minimum and maximum, or None if the file's type proves nothing about the table's type.
    """
    logical = json.loads(leaf.logical_type.to_json())
    kinds = pa.types
    if kinds.is_string(column_type) or kinds.is_binary(column_type):
        return _text_decoder(leaf.physical_type, logical["Type"], column_type, rules)
    if kinds.is_time64(column_type):
        return _clock_times if leaf.physical_type == "INT64" and logical == _SPARK_TIME else None
    if kinds.is_date32(column_type) or kinds.is_timestamp(column_type):
        return _time_decoder(leaf.physical_type, logical, column_type, rules)
    return _number_decoder(leaf, logical, column_type)


def _number_decoder(leaf: pq.ColumnSchema, logical: dict[str, Any], column_type: pa.DataType) -> Decoder | None:
    kinds, kind, physical = pa.types, logical["Type"], leaf.physical_type
    decoder: Decoder | None = None
    if kinds.is_boolean(column_type) and physical == "BOOLEAN":
        decoder = _as_is
    elif kinds.is_duration(column_type) and physical == "INT64" and kind == "None":
        decoder = _as_is  # Spark stores day-time intervals as plain microseconds
    elif kinds.is_signed_integer(column_type) and physical in ("INT32", "INT64") and kind in ("None", "Int"):
        decoder = _integers(column_type, 0 if logical.get("isSigned", True) else logical["bitWidth"])
    elif kinds.is_floating(column_type) and physical in _FLOATS.get(column_type, ()):
        decoder = _floats
    elif kinds.is_decimal128(column_type) and kind == "Decimal" and leaf.scale == column_type.scale:
        decoder = _decimals(column_type.precision, column_type.scale)
    return decoder


def _time_decoder(
    physical: str, logical: dict[str, Any], column_type: pa.DataType, rules: WriterRules
) -> Decoder | None:
    kind = logical["Type"]
    if pa.types.is_date32(column_type):
        return _days(rules) if kind == "Date" else None
    if kind != "Timestamp" or physical != "INT64" or logical["isAdjustedToUTC"] != (column_type.tz is not None):
        return None
    return _times(_UNIT_NS[logical["timeUnit"]], rules)


def _text_decoder(physical: str, kind: str, column_type: pa.DataType, rules: WriterRules) -> Decoder | None:
    if not rules.text_bounds or physical != "BYTE_ARRAY":
        return None
    if pa.types.is_string(column_type):
        return _strings(rules.text_exact) if kind == "String" else None
    return _binary(rules.text_exact) if kind == "None" else None


def _as_is(low: Any, high: Any) -> Bounds | None:
    return Bounds(low, high)


def _floats(low: float, high: float) -> Bounds | None:
    return None if math.isnan(low) or math.isnan(high) else Bounds(low, high)


def _integers(column_type: pa.DataType, unsigned_bits: int) -> Decoder:
    limit = 1 << (column_type.bit_width - 1)

    def decode(low: int, high: int) -> Bounds | None:
        if unsigned_bits:
            low, high = low % (1 << unsigned_bits), high % (1 << unsigned_bits)
        return Bounds(low, high) if -limit <= low and high < limit else None

    return decode


def _decimals(precision: int, scale: int) -> Decoder:
    limit = 10**precision

    def decode(low: int | bytes, high: int | bytes) -> Bounds | None:
        least, most = _unscaled(low), _unscaled(high)
        if not -limit < least <= most < limit:
            return None
        return Bounds(decimal.Decimal(least).scaleb(-scale, _WIDE), decimal.Decimal(most).scaleb(-scale, _WIDE))

    return decode


def _unscaled(raw: int | bytes) -> int:
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw


def _days(rules: WriterRules) -> Decoder:
    def decode(low: int, high: int) -> Bounds | None:
        return Bounds(low, high) if rules.old_dates or low >= FIRST_SAFE_DAY else None

    return decode


def _times(unit_ns: int, rules: WriterRules) -> Decoder:
    def decode(low: int, high: int) -> Bounds | None:
        low_ns, high_ns = low * unit_ns, high * unit_ns
        low_us, high_us = low_ns // 1000, -(-high_ns // 1000)
        if not (rules.old_dates or low_us >= FIRST_SAFE_DAY * DAY_US) or not _fits_int64(low_us, high_us):
            return None
        return Bounds(low_us, high_us, low_ns % 1000 == 0, high_ns % 1000 == 0)

    return decode


def _clock_times(low: int, high: int) -> Bounds | None:
    return Bounds(low, high) if low >= 0 and high < DAY_US else None


def _fits_int64(low: int, high: int) -> bool:
    return low >= -(1 << 63) and high < 1 << 63


def _strings(exact: bool) -> Decoder:
    def decode(low: bytes, high: bytes) -> Bounds | None:
        try:
            return Bounds(low.decode(), high.decode(), exact, exact)
        except UnicodeDecodeError:
            return None

    return decode


def _binary(exact: bool) -> Decoder:
    def decode(low: bytes, high: bytes) -> Bounds | None:
        return Bounds(low, high, exact, exact)

    return decode
