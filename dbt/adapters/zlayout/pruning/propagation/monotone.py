"""Bound propagation through monotone and periodic functions: from facts about x to facts about f(x).

Bounds pass between Arrow and numpy with their nulls. Decimals are computed exactly in 256 bits, then rounded to Spark's
result type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.pruning.statistics.validation import Facts, flags, valid
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags

DAY_US = 86_400_000_000
FARTHEST_US = 2**62
"""Instants and wall-clock times farther from 1970 than this are not evaluated: sums with them may overflow."""
_WIDEST = 76


@dataclass(frozen=True)
class Bound:
    """f applied to one bound of each file.

    Attributes:
        value: A value of the type of f's result; null where the bound is unknown, and where ``known`` is false.
        known: False where f of the bound is unknown, or may differ from Spark's result (overflow).
    """

    value: pa.Array
    known: Flags


Kernel = Callable[[pa.Array], Bound]
"""Applies f to one bound of each file; nulls stay null and count as known."""


def monotone(facts: Facts, kernel: Kernel, *, total: bool, falling: bool = False) -> Facts:
    """Maps facts through a monotone function.

    Proof: for a <= x <= b an increasing f has f(a) <= f(x) <= f(b), a decreasing one f(b) <= f(x) <= f(a). A bound that
    is a value of the file maps to a value of f in the file, so exactness is kept, whether f is injective or not.
    Bounds do not cover NaN; `monotone` is for functions that map NaN to NaN, or whose input has none.

    Args:
        facts: About x.
        kernel: f.
        total: f is defined and monotone over its whole type, so that each bound maps on its own. Otherwise (f overflows
            somewhere) both bounds must be known and within f's domain, because then all values between them are; if
            they are not, the file's values may wrap around, be null or raise an error, and nothing is known.
        falling: f is decreasing.
    """
    low, high = kernel(facts.minimum), kernel(facts.maximum)
    minimum, maximum = (high.value, low.value) if falling else (low.value, high.value)
    exact = facts.minimum_exact & low.known, facts.maximum_exact & high.known
    minimum_exact, maximum_exact = exact[::-1] if falling else exact
    mapped = replace(facts, minimum=minimum, maximum=maximum, minimum_exact=minimum_exact, maximum_exact=maximum_exact)
    if total:
        return mapped
    inside = low.known & high.known & valid(facts.minimum) & valid(facts.maximum)
    return forgotten(mapped, facts.may_have_value & ~inside)


def periodic(
    facts: Facts, kind: pa.DataType, least: npt.NDArray[Any], most: npt.NDArray[Any], one_cycle: Flags
) -> Facts:
    """Maps facts through a function that increases within each of its cycles.

    Args:
        facts: About x.
        kind: The type of f's result.
        least: f of the minimum where x stays in one cycle, elsewhere the least value of f; needs no bounds of x.
        most: f of the maximum, or the greatest value of f, in the same way.
        one_cycle: Both bounds of x are known and lie in one cycle.
    """
    nothing, numbers_possible = pa.scalar(None, kind), pa.array(facts.may_have_value)
    minimum, maximum = (pc.if_else(numbers_possible, pa.array(side).cast(kind), nothing) for side in (least, most))
    return replace(
        facts,
        minimum=minimum,
        maximum=maximum,
        minimum_exact=facts.minimum_exact & one_cycle,
        maximum_exact=facts.maximum_exact & one_cycle,
    )


def forgotten(facts: Facts, where: Flags) -> Facts:
    """Returns facts in which nothing is known about some files: they may hold any value, NaN or null."""
    if not where.any():
        return facts
    nothing, unknown = pa.scalar(None, facts.minimum.type), pa.array(where)
    return Facts(
        minimum=pc.if_else(unknown, nothing, facts.minimum),
        maximum=pc.if_else(unknown, nothing, facts.maximum),
        minimum_exact=facts.minimum_exact & ~where,
        maximum_exact=facts.maximum_exact & ~where,
        may_be_null=facts.may_be_null | where,
        may_be_nan=facts.may_be_nan | (where & pa.types.is_floating(facts.minimum.type)),
        may_have_value=facts.may_have_value | where,
        informed=facts.informed & ~where,
    )


def without_nan(mapped: Facts, facts: Facts) -> Facts:
    """Forgets the files that may hold NaN, for functions that do not map NaN to NaN."""
    may_be_nan: Flags = facts.may_be_nan & pa.types.is_floating(mapped.minimum.type)
    return replace(forgotten(mapped, facts.may_be_nan), may_be_nan=may_be_nan)


def loosened(facts: Facts) -> Facts:
    """Returns facts with the same bounds, none of them exact."""
    never = np.zeros(len(facts.minimum), dtype=np.bool_)
    return replace(facts, minimum_exact=never, maximum_exact=never)


def kept(value: pa.Array) -> Bound:
    """Returns a bound that is known wherever it is not null."""
    return Bound(value, np.ones(len(value), dtype=np.bool_))


def within(value: pa.Array, known: Flags) -> Bound:
    """Returns a bound that is null where it is not known."""
    return Bound(pc.if_else(pa.array(known), value, pa.scalar(None, value.type)), known)


def numbers(values: pa.Array) -> npt.NDArray[Any]:
    """Returns numbers, or the integers underlying dates and timestamps; 0 for null."""
    kind = values.type
    if pa.types.is_date32(kind):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.view(pa.int64())
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    result: npt.NDArray[Any] = pc.fill_null(values, pa.scalar(0, values.type)).to_numpy(zero_copy_only=False)
    return result


def arrow(values: npt.NDArray[Any], kind: pa.DataType, like: pa.Array) -> pa.Array:
    """Returns numpy values as an Arrow array, null where ``like`` is null; temporal types are given as integers."""
    if pa.types.is_date32(kind):
        made = pa.array(values.astype(np.int32)).view(kind)
    elif pa.types.is_timestamp(kind):
        made = pa.array(values.astype(np.int64)).view(kind)
    else:
        made = pa.array(values).cast(kind)
    return pc.if_else(pc.is_valid(like), made, pa.scalar(None, kind))


def bound(values: npt.NDArray[Any], kind: pa.DataType, like: pa.Array, known: Flags) -> Bound:
    """Returns f of a bound; where ``like`` is null there is nothing to map, which counts as known."""
    known = known | ~valid(like)
    if not known.all():
        values = np.where(known, values, np.zeros(1, values.dtype))
    return within(arrow(values, kind, like), known)


def integer_limits(kind: pa.DataType) -> tuple[int, int]:
    """Returns the least and greatest value of a signed integer, date or timestamp type."""
    bits = kind.bit_width
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def near(values: pa.Array) -> Flags:
    """Returns which dates or timestamps are so near to 1970 that microseconds plus an offset do not overflow."""
    found = numbers(values)
    limit = FARTHEST_US // DAY_US if pa.types.is_date32(values.type) else FARTHEST_US
    result: Flags = (found >= -limit) & (found <= limit)
    return result


def decimal_sum(side: pa.Array, amount: Decimal, kind: pa.DataType) -> Bound:
    """Returns ``x + amount`` in the result type, rounded half up if that has fewer digits."""
    constant = _scalar(amount)
    return fitted(pc.add(_wide(side), constant), kind)


def decimal_product(side: pa.Array, factor: Decimal, kind: pa.DataType) -> Bound:
    """Returns ``x * factor`` in the result type, rounded half up if that has fewer digits."""
    constant = _scalar(factor)
    if side.type.precision + constant.type.precision + 1 > _WIDEST:
        return within(pa.nulls(len(side), kind), ~valid(side))
    return fitted(pc.multiply(_wide(side), constant), kind)


def fitted(values: pa.Array, kind: pa.DataType, mode: str = "half_towards_infinity") -> Bound:
    """Rounds to the scale of a decimal type; unknown where the type has too few digits.

    Every rounding mode keeps the order.
    """
    rounded = pc.round(values, ndigits=kind.scale, round_mode=mode) if values.type.scale > kind.scale else values
    limit = _scalar(Decimal(10) ** (kind.precision - kind.scale))
    fits = pc.and_(pc.less(rounded, limit), pc.greater(rounded, pc.negate(limit)))
    known = flags(fits, when_unknown=True)
    inside = within(rounded, known)
    return Bound(inside.value.cast(kind), known)


def _wide(side: pa.Array) -> pa.Array:
    return side.cast(pa.decimal256(side.type.precision, side.type.scale))


def _scalar(value: Decimal) -> pa.Scalar:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    return pa.scalar(value, pa.decimal256(precision, scale))
