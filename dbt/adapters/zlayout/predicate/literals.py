"""Column names, types and constants as readable Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_LISTED = 12
# What Spark's parser would interpret in a string.
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"})
_FLOAT_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
UNKNOWN_TYPE = pa.list_(pa.null())
"""Stands for a type of Spark that Arrow lacks. A list of nulls cannot be a key either."""
_TYPE_NAMES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "tinyint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_date32, "date"),
    (pa.types.is_time64, "time"),
    (pa.types.is_duration, "interval day to second"),
    (pa.types.is_null, "void"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
)


def column_name(path: Sequence[str]) -> str:
    """Returns a column path as SQL, with backquotes only where they are needed.

    >>> column_name(("a", "b c"))
    'a.`b c`'
    """
    return ".".join(part if _PLAIN_NAME.fullmatch(part) else backquoted(part) for part in path)


def backquoted(name: str) -> str:
    """Returns a name in backquotes, as Spark SQL reads it whatever its characters.

    >>> backquoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def plain_name(name: str) -> str:
    """Returns the name of a table without backquotes."""
    return name.replace("`", "")


def folded_name(name: str) -> str:
    """Returns the name of a table for comparisons: without backquotes, in lower case.

    >>> folded_name("`Shop`.Orders")
    'shop.orders'
    """
    return plain_name(name).lower()


def type_name(kind: pa.DataType) -> str:
    """Returns the Spark SQL name of an Arrow type.

    >>> type_name(pa.list_(pa.int64()))
    'array<bigint>'
    """
    if pa.types.is_struct(kind):
        fields = [f"{field.name}:{type_name(field.type)}" for field in kind]
        return f"struct<{','.join(fields)}>"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if pa.types.is_list(kind):
        return "unknown to Arrow" if kind == UNKNOWN_TYPE else f"array<{type_name(kind.value_type)}>"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return next((word for fits, word in _TYPE_NAMES if fits(kind)), str(kind))


def literal(value: pa.Scalar) -> str:  # noqa: PLR0911, C901 - one return per type
    r"""Returns a constant as SQL.

    Args:
        value: A value of a type that a column can have, or null. A timestamp with a zone is written in UTC, with ``Z``.

    >>> print(literal(pa.scalar("it's")), literal(pa.scalar(b"\x01")), literal(pa.scalar(float("nan"))))
    'it\'s' X'01' CAST('NaN' AS DOUBLE)
    """
    if not value.is_valid:
        return "NULL"
    kind = value.type
    if pa.types.is_boolean(kind):
        return "TRUE" if value.as_py() else "FALSE"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return f"'{value.as_py().translate(_ESCAPES)}'"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return f"X'{value.as_py().hex().upper()}'"
    if pa.types.is_decimal(kind):
        return format(value.as_py(), "f")
    if pa.types.is_floating(kind):
        text = str(value.cast(pa.string()).as_py())
        name = "FLOAT" if pa.types.is_float32(kind) else "DOUBLE"
        return f"CAST('{_FLOAT_NAMES[text]}' AS {name})" if text in _FLOAT_NAMES else text
    if pa.types.is_date32(kind):
        return f"DATE '{value.cast(pa.string()).as_py()}'"
    if pa.types.is_timestamp(kind):
        return _timestamp(value)
    if pa.types.is_time64(kind):
        return f"TIME '{_without_zeros(value.cast(pa.string()).as_py())}'"
    if pa.types.is_duration(kind):
        return day_time_literal(value.value)
    return str(value.as_py())


def literals(values: pa.Array, has_null: bool) -> str:
    """Returns the members of a list, separated by commas; a long list shows the first ones and how many follow."""
    shown = [literal(value) for value in values[:_MOST_LISTED]]
    if len(values) > _MOST_LISTED:
        shown.append(f"… {len(values) - _MOST_LISTED:,} more")
    if has_null:
        shown.append("NULL")
    return ", ".join(shown)


def _timestamp(value: pa.Scalar) -> str:
    # Converts through integers and Arrow's formatter: Python's datetimes end at year 9999 and need a zone database.
    naive = pa.scalar(value.value, pa.int64()).cast(pa.timestamp(value.type.unit))
    text = _without_zeros(str(naive.cast(pa.string()).as_py()))
    return f"TIMESTAMP_NTZ '{text}'" if value.type.tz is None else f"TIMESTAMP '{text}Z'"


def day_time_literal(micros: int) -> str:
    """Returns a day-time interval as SQL.

    >>> day_time_literal(-93_784_500_000)
    "INTERVAL '-1 02:03:04.500000' DAY TO SECOND"
    """
    seconds, rest = divmod(abs(micros), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    sign = "-" if micros < 0 else ""
    return f"INTERVAL '{sign}{days} {hour:02}:{minute:02}:{second:02}.{rest:06}' DAY TO SECOND"


def _without_zeros(text: str) -> str:
    return re.sub(r"\.0+$", "", text)
