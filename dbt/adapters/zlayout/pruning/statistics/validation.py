"""Statistics validation: statistics that contradict themselves become unknown, file by file.

Bounds of an older column type are widened to the present type, if no value can change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags

# Decimal digits that hold every value of a signed integer with this many bits.
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
# Bits of the integers that a float with this many bits can represent exactly.
_FLOAT_HOLDS = {32: 16, 64: 32}


def is_ordered(kind: pa.DataType) -> bool:
    """Returns whether Arrow compares values of the type in Spark's order."""
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_decimal128(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_time64(kind)
        or pa.types.is_duration(kind)
        or _is_text(kind)
        or _is_bytes(kind)
    )


def widens(source: pa.DataType, target: pa.DataType) -> bool:  # noqa: PLR0911 - one return per family of types
    """Returns whether every value of ``source`` is a value of ``target``, in the same order with the same meaning."""
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


@dataclass(frozen=True)
class Counts:
    """Counts, one per file.

    Attributes:
        values: int64; 0 where unknown.
        known: False where there is no count.
    """

    values: npt.NDArray[np.int64]
    known: Flags

    @classmethod
    def of(cls, array: pa.Array) -> Counts:
        """Reads an int64 array; null means unknown."""
        whole = contiguous(array).cast(pa.int64())
        return cls(pc.fill_null(whole, 0).to_numpy(zero_copy_only=False), valid(whole))

    def without(self, doubtful: Flags) -> Counts:
        """Returns the counts with the doubtful ones marked as unknown."""
        return replace(self, known=self.known & ~doubtful)


@dataclass(frozen=True)
class Facts:
    """The validated statistics of one column or term.

    Attributes:
        minimum: A value of the column's type; null where unknown.
        maximum: Likewise.
        minimum_exact: The minimum is known and is a value of the file.
        maximum_exact: Likewise.
        may_be_null: Some row may be null; false is a proof that none is, here and below.
        may_be_nan: Some row may be NaN.
        may_have_value: Some row may be neither null nor NaN (for any type, not only numbers).
        informed: Anything is known at all.
    """

    minimum: pa.Array
    maximum: pa.Array
    minimum_exact: Flags
    maximum_exact: Flags
    may_be_null: Flags
    may_be_nan: Flags
    may_have_value: Flags
    informed: Flags


def flags(condition: pa.Array, *, when_unknown: bool) -> Flags:
    """Returns an Arrow bool array as numpy, with nulls replaced by ``when_unknown``."""
    filled = pc.fill_null(condition, when_unknown) if condition.null_count else condition
    result: Flags = filled.to_numpy(zero_copy_only=False)
    return result


def valid(values: pa.Array) -> Flags:
    """Returns which values are not null."""
    result: Flags = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return result


def contiguous(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns a column, chunked or not, as one array."""
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def row_counts(row_count: pa.Array) -> Counts:
    """Returns the row counts; negative ones become unknown."""
    rows = Counts.of(row_count)
    return rows.without(rows.values < 0)


def counts_contradict(bounds: ColumnBounds, rows: Counts) -> Flags:
    """Returns where a column has more nulls and NaNs than the file has rows, or a negative count."""
    nulls, nans = Counts.of(bounds.null_count), _nan_counts(bounds)
    negative = (nulls.values < 0) | (nans.values < 0)
    # Unknown counts are 0, their least possible value. Subtracts, since adding absurd counts could overflow.
    too_many = rows.known & ((nulls.values > rows.values) | (nans.values > rows.values - nulls.values))
    result: Flags = negative | too_many
    return result


def facts_of(bounds: ColumnBounds, column_type: pa.DataType, rows: Counts, contradicted: Flags) -> Facts | None:
    """Validates the statistics of one column.

    Args:
        bounds: The stored statistics.
        column_type: The type that predicates see.
        rows: Row counts that no column of the predicate contradicts.
        contradicted: The result of `counts_contradict` for this column.

    Returns:
        The facts; None if the bounds cannot safely be converted to the column's type.
    """
    minimum, maximum = (widened(contiguous(side), column_type) for side in (bounds.minimum, bounds.maximum))
    if minimum is None or maximum is None:
        return None
    nulls, nans = Counts.of(bounds.null_count), _nan_counts(bounds)
    has_minimum, has_maximum = valid(minimum), valid(maximum)
    believed_empty = rows.known & (rows.values == 0)
    all_null = rows.known & nulls.known & (nulls.values == rows.values)
    all_nan_or_null = rows.known & nulls.known & nans.known & (nulls.values + nans.values == rows.values)
    no_number = all_null | all_nan_or_null | believed_empty
    doubtful = contradicted | (no_number & (has_minimum | has_maximum))
    if is_ordered(column_type):
        doubtful |= flags(pc.greater(minimum, maximum), when_unknown=False)
    if pa.types.is_floating(column_type):
        doubtful |= flags(pc.is_nan(minimum), when_unknown=False) | flags(pc.is_nan(maximum), when_unknown=False)
    if doubtful.any():
        nothing = pa.scalar(None, column_type)
        minimum, maximum = (pc.if_else(pa.array(doubtful), nothing, side) for side in (minimum, maximum))
    return Facts(
        minimum,
        maximum,
        minimum_exact=_is_true(bounds.minimum_exact) & has_minimum & ~doubtful,
        maximum_exact=_is_true(bounds.maximum_exact) & has_maximum & ~doubtful,
        may_be_null=doubtful | ~(believed_empty | _is_zero(nulls)),
        may_be_nan=(doubtful | ~(believed_empty | all_null | _is_zero(nans))) & pa.types.is_floating(bounds.type),
        may_have_value=doubtful | ~no_number,
        informed=~doubtful & (has_minimum | has_maximum | nulls.known),
    )


def facts_of_value(value: pa.Scalar, count: int) -> Facts:
    """Returns the facts of a constant for a number of files."""
    nan = pa.types.is_floating(value.type) and value.is_valid and bool(np.isnan(value.as_py()))
    number = value.is_valid and not nan
    side = pa.repeat(value if number else pa.scalar(None, value.type), count)

    def everywhere(flag: bool) -> Flags:
        return np.full(count, flag, dtype=np.bool_)

    return Facts(
        side,
        side,
        minimum_exact=everywhere(number),
        maximum_exact=everywhere(number),
        may_be_null=everywhere(not value.is_valid),
        may_be_nan=everywhere(nan),
        may_have_value=everywhere(number),
        informed=everywhere(True),
    )


def _is_true(exactness: pa.Array) -> Flags:
    return flags(contiguous(exactness).cast(pa.bool_()), when_unknown=False)


def _is_zero(counts: Counts) -> Flags:
    zero: Flags = counts.known & (counts.values == 0)
    return zero


def _nan_counts(bounds: ColumnBounds) -> Counts:
    counts = Counts.of(bounds.nan_count)
    if pa.types.is_floating(bounds.type):
        return counts
    # Only floats have NaN, whatever was counted; integers that are read as floats have none.
    return Counts(np.zeros_like(counts.values), np.ones_like(counts.known))
