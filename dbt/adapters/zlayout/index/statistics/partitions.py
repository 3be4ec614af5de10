"""Partition folders: names as Spark writes them, and values as Spark reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.statistics.tracked import decimal_type

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"

# Source: org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.charToEscape (not on Windows).
_ESCAPED = re.compile("[\x01-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_ESCAPE = re.compile("%([0-9a-fA-F]{2})")


def escape_partition_value(text: str) -> str:
    """Escapes a column name or value for a folder name."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def unescape_partition_value(text: str) -> str:
    """Unescapes a part of a folder name; a ``%`` without two hex digits is kept as it is."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def partition_folder(values: Sequence[tuple[str, str | None]]) -> str:
    """Returns the folder of a partition.

    Args:
        values: Column and raw value, outermost first. Null and the empty string share a folder, as in Spark.

    >>> partition_folder([("day", "2024-01-01"), ("city", "a/b")])
    'day=2024-01-01/city=a%2Fb'
    """
    return "/".join(
        f"{escape_partition_value(column)}={escape_partition_value(value) if value else NULL_FOLDER}"
        for column, value in values
    )


def one_spelling(value: str | None, spark_type: object) -> str | None:
    """Returns a partition value in the one of its spellings that Spark writes. Other tools write ``month=01``.

    Args:
        value: The raw value. One that is not of the type is returned as it is.
        spark_type: Spark's JSON of the column's type.

    >>> one_spelling("01", "integer"), one_spelling("True", "boolean"), one_spelling("1.50", "decimal(10,2)")
    ('1', 'true', '1.5')
    >>> one_spelling("2024-1-5", "date"), one_spelling("2024-01-05 10:00:00.500", "timestamp")
    ('2024-01-05', '2024-01-05 10:00:00.5')
    """
    if value is None or not isinstance(spark_type, str):
        return value
    spell = _SPELLINGS.get(spark_type.partition("(")[0])
    try:
        # Spark writes an empty text as null.
        return spell(value) if spell is not None else value or None
    except (ValueError, ArithmeticError):
        return value


def is_read_alike(value: str | None, spark_type: object) -> bool:
    """Returns whether Spark reads a partition value alike from the catalog and from a manifest.

    The first casts the text, the second parses it. It takes ``1.5`` in a decimal(10,2) for 0.15, and fails for ``+4``.

    Args:
        value: The raw value.
        spark_type: Spark's JSON of the column's type.

    >>> is_read_alike("1.50", "decimal(10,2)"), is_read_alike("1.5", "decimal(10,2)"), is_read_alike("+4", "integer")
    (True, False, False)
    """
    if value is None or value == NULL_FOLDER or not isinstance(spark_type, str):
        return True
    if decimal := decimal_type(spark_type):
        return _NUMBER.fullmatch(value) is not None and Decimal(value).as_tuple().exponent == -decimal.scale
    pattern = _READ_ALIKE.get(spark_type)
    return pattern is None or pattern.fullmatch(value) is not None


_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|NaN|-?Infinity", re.ASCII)
_READ_ALIKE: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), re.compile(r"-?\d+", re.ASCII)),
    **dict.fromkeys(("float", "double"), _NUMBER),
    "boolean": re.compile("true|false", re.IGNORECASE),
}


def _spelled_date(value: str) -> str:
    year, month, day = map(int, value.split("-"))
    return f"{year:04d}-{month:02d}-{day:02d}"


def _spelled_timestamp(value: str) -> str:
    seconds, _, fraction = value.partition(".")
    return f"{seconds}.{fraction.rstrip('0')}".rstrip(".")


_SPELLINGS: Mapping[str, Callable[[str], str]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), lambda value: str(int(value))),
    **dict.fromkeys(("float", "double"), lambda value: repr(float(value))),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), _spelled_timestamp),
    "boolean": lambda value: value.strip().lower(),
    "decimal": lambda value: format(Decimal(value).normalize(), "f"),
    "date": _spelled_date,
}


def parse_partition_folder(folder: str) -> tuple[tuple[str, str | None], ...]:
    """Reads columns and raw values from a folder.

    Raises:
        ValueError: A level is not of the form ``column=value``.
    """
    values: list[tuple[str, str | None]] = []
    for level in folder.split("/") if folder else []:
        column, equals, value = level.partition("=")
        if not equals or not column:
            raise ValueError(f"'{level}' is not a partition folder (expected column=value)")
        name = unescape_partition_value(column)
        values.append((name, None if value == NULL_FOLDER else unescape_partition_value(value)))
    return tuple(values)


@dataclass(frozen=True)
class PartitionValues:
    """Values of one partition column.

    Attributes:
        values: Typed; null if the partition is null or the text is not understood.
        known: False if the text is not understood: then nothing may be concluded from the value.
    """

    values: pa.Array
    known: pa.BooleanArray


def typed_partition_values(texts: pa.Array, column_type: pa.DataType, timezone: str | None = None) -> PartitionValues:
    """Casts the text of folder names to a column's type, as Spark does when it reads them.

    Only the formats that Spark itself writes are understood; others that it may read (``1e3``, ``2024-1-1``) are
    unknown.

    Args:
        texts: Raw values, unescaped; null or the null folder's name for null.
        column_type: Arrow type of the column.
        timezone: The session's time zone, in which timestamps with zone are written; without it they are unknown.
    """
    nulls = pc.or_kleene(pc.is_null(texts), pc.fill_null(pc.equal(texts, NULL_FOLDER), True))
    texts = pc.if_else(nulls, pa.scalar(None, pa.string()), texts)
    values = _parser(column_type, timezone)(texts)
    return PartitionValues(values, pc.or_(nulls, pc.is_valid(values)))


def _parser(column_type: pa.DataType, timezone: str | None) -> Callable[[pa.Array], pa.Array]:
    kinds = pa.types
    parsers: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]]] = [
        (kinds.is_string, lambda texts: texts),
        (kinds.is_signed_integer, lambda texts: _integers(texts, column_type)),
        (kinds.is_decimal128, lambda texts: _decimals(texts, column_type)),
        (kinds.is_floating, lambda texts: _floats(texts, column_type)),
        (kinds.is_boolean, lambda texts: _matching(pc.utf8_lower(texts), "^(true|false)$").cast(pa.bool_())),
        (kinds.is_date32, _dates),
        (kinds.is_timestamp, lambda texts: _timestamps(texts, column_type, timezone)),
    ]
    for fits, parse in parsers:
        if fits(column_type):
            return parse
    return lambda texts: pa.nulls(len(texts), column_type)


def _matching(texts: pa.Array, pattern: str) -> pa.Array:
    """Returns the texts that match; null in place of others."""
    return only_where(texts, pc.match_substring_regex(texts, pattern))


def only_where(values: pa.Array, condition: pa.Array) -> pa.Array:
    """Returns the values with null wherever a condition is not true."""
    return pc.if_else(pc.fill_null(condition, False), values, pa.scalar(None, values.type))


def _integers(texts: pa.Array, column_type: pa.DataType) -> pa.Array:
    wide = _matching(texts, r"^-?\d{1,19}$").cast(pa.decimal128(38, 0))
    limit = 1 << (column_type.bit_width - 1)
    low, high = (pa.scalar(each, pa.int64()).cast(pa.decimal128(38, 0)) for each in (-limit, limit - 1))
    fits = pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high))
    return only_where(wide, fits).cast(column_type)


def _decimals(texts: pa.Array, column_type: pa.DataType) -> pa.Array:
    whole = column_type.precision - column_type.scale
    fraction = rf"(\.\d{{1,{column_type.scale}}})?" if column_type.scale > 0 else ""
    pattern = rf"^-?0*\d{{1,{whole}}}{fraction}$" if whole else rf"^-?0+{fraction}$"
    return _matching(texts, pattern).cast(column_type)


def _floats(texts: pa.Array, column_type: pa.DataType) -> pa.Array:
    spelled = pc.replace_substring(texts, "Infinity", "inf")
    parsed = _matching(spelled, r"^(-?\d+(\.\d+)?(E-?\d+)?|-?inf|NaN)$").cast(pa.float64())
    return parsed.cast(column_type, safe=False)


def _dates(texts: pa.Array) -> pa.Array:
    days = pc.strptime(_matching(texts, r"^\d{4}-\d\d-\d\d$"), "%Y-%m-%d", unit="s", error_is_null=True)
    # strptime accepts 30 February and returns a day in March.
    return only_where(days.cast(pa.date32()), pc.equal(pc.strftime(days, "%Y-%m-%d"), texts))


def _timestamps(texts: pa.Array, column_type: pa.DataType, timezone: str | None) -> pa.Array:
    spelled = _matching(texts, r"^\d{4}-\d\d-\d\d ([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?$")
    spelled = only_where(spelled, pc.is_valid(_dates(pc.utf8_slice_codeunits(spelled, 0, 10))))
    local = spelled.cast(pa.timestamp("us"))
    if column_type.tz is None:
        return local
    if timezone is None:
        return pa.nulls(len(texts), column_type)
    try:
        early, late = (
            pc.assume_timezone(local, timezone, ambiguous=side, nonexistent=side) for side in ("earliest", "latest")
        )
    except pa.ArrowInvalid:  # Arrow does not know the zone, such as an offset
        return pa.nulls(len(texts), column_type)
    # A local time that occurs twice or not at all is ambiguous.
    return only_where(early, pc.equal(early, late)).cast(column_type)
