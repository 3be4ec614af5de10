"""Statistics validation: statistics that contradict themselves become unknown, file by file."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags
from dbt.adapters.zlayout.pruning.statistics.widening import is_ordered, widened


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
        minimum: Of the column's type; null where unknown.
        maximum: Likewise.
        minimum_exact: The minimum is known and is a value of the file.
        maximum_exact: Likewise.
        may_be_null: Some row may be null; false is a proof that none is, here and below.
        may_be_nan: Some row may be NaN.
        may_be_number: Some row may be neither null nor NaN (for any type, not only numbers).
        informed: Anything is known at all.
    """

    minimum: pa.Array
    maximum: pa.Array
    minimum_exact: Flags
    maximum_exact: Flags
    may_be_null: Flags
    may_be_nan: Flags
    may_be_number: Flags
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
        may_be_number=doubtful | ~no_number,
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
        may_be_number=everywhere(number),
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
