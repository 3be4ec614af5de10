"""Spark SQL names of Arrow types, for messages: users write types in these words."""

from __future__ import annotations

import pyarrow as pa

_WORDS = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "tinyint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_date32, "date"),
    (pa.types.is_duration, "interval"),
    (pa.types.is_null, "void"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
)


def spark_word(kind: pa.DataType) -> str:
    """Returns the Spark type that a column of this Arrow type is read as.

    >>> spark_word(pa.list_(pa.int64()))
    'array<bigint>'
    """
    if pa.types.is_struct(kind):
        fields = [f"{field.name}:{spark_word(field.type)}" for field in kind]
        return f"struct<{','.join(fields)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_word(kind.key_type)},{spark_word(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{spark_word(kind.value_type)}>"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return next((word for fits, word in _WORDS if fits(kind)), str(kind))
