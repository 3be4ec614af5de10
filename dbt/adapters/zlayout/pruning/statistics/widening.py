"""Type widening: converts bounds of an older column type to the present type if no value can change."""

from __future__ import annotations

import pyarrow as pa

# Decimal digits that hold every value of a signed integer with this many bits.
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
# Bits of the integers that a float with this many bits can represent exactly.
_FLOAT_HOLDS = {32: 16, 64: 32}


def is_ordered(kind: pa.DataType) -> bool:
    """Whether Arrow compares values of the type in Spark's order."""
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
        or _is_text(kind)
        or _is_bytes(kind)
    )


def widens(source: pa.DataType, target: pa.DataType) -> bool:  # noqa: PLR0911 - one return per family of types
    """Whether every value of ``source`` is a value of ``target``, in the same order and with the same meaning."""
    if source == target:
        return True
    if pa.types.is_signed_integer(source):
        bits = source.bit_width
        if pa.types.is_decimal128(target):
            return bool(target.precision - target.scale >= _INTEGER_DIGITS[bits])
        if pa.types.is_float32(target) or pa.types.is_float64(target):
            return bool(bits <= _FLOAT_HOLDS[target.bit_width])
        return bool(pa.types.is_signed_integer(target) and bits <= target.bit_width)
    if pa.types.is_decimal128(source) and pa.types.is_decimal128(target):
        return bool(target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale)
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        # Instants and wall-clock times are different things; the zone's name does not change an instant.
        return (source.tz is None) == (target.tz is None)
    return bool(
        (pa.types.is_float32(source) and pa.types.is_float64(target))
        or (pa.types.is_date32(source) and pa.types.is_timestamp(target) and target.tz is None)
        or (_is_text(source) and _is_text(target))
        or (_is_bytes(source) and _is_bytes(target))
    )


def widened(values: pa.Array | pa.Scalar, target: pa.DataType) -> pa.Array | pa.Scalar | None:
    """Returns values as the target type, or None if a value might change."""
    if values.type == target:
        return values
    if not widens(values.type, target):
        return None
    try:
        return values.cast(target)
    except pa.ArrowException:
        # A date outside the timestamp range, or nanoseconds that microseconds cannot represent.
        return None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
