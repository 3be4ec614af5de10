"""Bound propagation for arithmetic with constants: sums, products, quotients, signs and remainders."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.functions import Absolute, Negate, Over, Plus, Remainder, Times
from dbt.adapters.zlayout.pruning.propagation.monotone import (
    Bound,
    arrow,
    bound,
    decimal_product,
    decimal_sum,
    forgotten,
    integer_limits,
    kept,
    monotone,
    numbers,
    periodic,
)
from dbt.adapters.zlayout.pruning.statistics.validation import Facts, valid
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags


def plus(function: Plus, facts: Facts) -> Facts | None:
    """``x + k`` is increasing: for integers unless it overflows, for floats always, since rounding keeps order."""
    kind = facts.minimum.type
    if kind != function.type and not pa.types.is_decimal128(kind):
        return None
    if pa.types.is_floating(kind):
        # A finite k turns only NaN into NaN, and overflow gives an infinity, which is in its place in the order.
        return monotone(facts, lambda side: _float(side, np.add, function.amount), total=True)
    if pa.types.is_decimal128(kind):
        return monotone(facts, lambda side: decimal_sum(side, Decimal(function.amount), function.type), total=False)
    amount = int(function.amount)
    # Adds in two steps: ``x - k`` for the least integer k adds more than a 64-bit integer can hold.
    half, rest = amount // 2, amount - amount // 2
    lowest, highest = integer_limits(kind)

    def shifted(side: pa.Array) -> Bound:
        found = numbers(side).astype(np.int64)
        inside = _between(found, lowest - amount, highest - amount)
        return bound(found + half + rest, kind, side, inside)

    return monotone(facts, shifted, total=False)


def times(function: Times, facts: Facts) -> Facts | None:
    """``x * k`` is increasing for k > 0 and decreasing for k < 0; overflow is handled as in `plus`."""
    kind, factor = facts.minimum.type, function.factor
    falling = factor < 0
    if pa.types.is_decimal128(kind):
        return monotone(
            facts, lambda side: decimal_product(side, Decimal(factor), function.type), total=False, falling=falling
        )
    if kind != function.type or factor == 0:
        return None
    if pa.types.is_floating(kind):
        # Infinity times a finite nonzero k is not NaN.
        return monotone(facts, lambda side: _float(side, np.multiply, factor), total=True, falling=falling)
    lowest, highest = integer_limits(kind)
    ends = sorted((_towards_zero(lowest, int(factor)), _towards_zero(highest, int(factor))))

    def scaled(side: pa.Array) -> Bound:
        found = numbers(side).astype(np.int64)
        inside = _between(found, *ends)
        return bound(found * int(factor), kind, side, inside)

    return monotone(facts, scaled, total=False, falling=falling)


def over(function: Over, facts: Facts) -> Facts | None:
    """``x / k`` is increasing for k > 0 and decreasing for k < 0; so is ``x div k``, since truncation keeps order."""
    kind, divisor = facts.minimum.type, function.divisor
    falling = divisor < 0
    if divisor == 0:
        return None
    if pa.types.is_floating(kind) and kind == function.type:
        return monotone(facts, lambda side: _float(side, np.divide, divisor), total=True, falling=falling)
    if not pa.types.is_integer(kind) or kind != function.type:
        return None
    lowest, _ = integer_limits(kind)
    whole = int(divisor)

    def quotient(side: pa.Array) -> Bound:
        found = numbers(side).astype(np.int64)
        # The only overflow of a quotient; numpy also has no absolute value of the least integer.
        inside = found != lowest
        magnitude = np.abs(np.where(inside, found, 0)) // abs(whole) if abs(whole) < 2**63 else np.zeros_like(found)
        return bound(np.where((found < 0) != (whole < 0), -magnitude, magnitude), kind, side, inside)

    return monotone(facts, quotient, total=False, falling=falling)


def negate(function: Negate, facts: Facts) -> Facts | None:
    """``-x`` is decreasing; the least integer has no negation, every decimal has one; NaN stays NaN, above all."""
    kind = facts.minimum.type
    if kind != function.type:
        return None
    if pa.types.is_integer(kind):
        return times(Times(kind, -1), facts)
    if pa.types.is_floating(kind):
        return monotone(facts, lambda side: _float(side, np.multiply, -1), total=True, falling=True)
    if pa.types.is_decimal128(kind):
        return monotone(facts, lambda side: decimal_product(side, Decimal(-1), kind), total=True, falling=True)
    return None


def absolute(function: Absolute, facts: Facts) -> Facts | None:
    """``abs(x)`` is x if no value is below 0, ``-x`` if none is above 0, and starts at 0 if the file spans 0.

    Each side needs both bounds of x.
    """
    opposite = negate(Negate(function.type), facts)
    if opposite is None:
        return None
    zero = pa.scalar(Decimal(0) if pa.types.is_decimal128(function.type) else 0, function.type)
    rising = pc.fill_null(pc.greater_equal(facts.minimum, zero), False)
    falling = pc.fill_null(pc.less_equal(facts.maximum, zero), False)
    larger = pc.max_element_wise(opposite.maximum, facts.maximum, skip_nulls=False)
    # A file that is on neither side of 0 spans it, provided that both of its bounds are known.
    both = pc.and_(pc.is_valid(facts.minimum), pc.is_valid(facts.maximum))
    minimum = pc.case_when(
        pc.make_struct(rising, falling, both),
        facts.minimum,
        opposite.minimum,
        zero,
        pa.scalar(None, function.type),
    )
    maximum = pc.case_when(pc.make_struct(rising, falling), facts.maximum, opposite.maximum, larger)
    up, down = (each.to_numpy(zero_copy_only=False) for each in (rising, falling))
    # If the file spans 0, the bound farther from 0 is exact only if it was exact before.
    from_below = pc.fill_null(pc.equal(larger, opposite.maximum), False).to_numpy(zero_copy_only=False)
    farther = np.where(from_below, opposite.maximum_exact, facts.maximum_exact)
    found = replace(
        facts,
        minimum=minimum,
        maximum=maximum,
        minimum_exact=_chosen(up, facts.minimum_exact, down & opposite.minimum_exact) & valid(minimum),
        maximum_exact=_chosen(up, facts.maximum_exact, np.where(down, opposite.maximum_exact, farther))
        & valid(maximum),
    )
    if not pa.types.is_integer(function.type):
        return found
    # The least integer, which may be in a file whose values below 0 have no known negation, stays negative or raises.
    return forgotten(found, facts.may_have_value & ~up & ~valid(opposite.minimum))


def remainder(function: Remainder, facts: Facts) -> Facts | None:
    """``x % k`` is periodic: increasing between two multiples of k; over a wider range it may be any remainder.

    For a negative x the result is 0 or negative, or with ``pmod`` counted from the multiple below. The cycle of x is
    x div k rounded down; if both bounds are in one cycle, they map to the bounds of the result.
    """
    kind = facts.minimum.type
    if not pa.types.is_integer(kind) or kind != function.type:
        return None
    divisor = function.divisor
    if not 0 < divisor <= integer_limits(kind)[1]:
        return None
    low, high = numbers(facts.minimum).astype(np.int64), numbers(facts.maximum).astype(np.int64)
    both = valid(facts.minimum) & valid(facts.maximum)
    # Below 0 ``%`` is -(-x % k), which increases within cycles that end at multiples of k; only x >= 0 maps directly.
    plain = both if function.never_negative else both & (low >= 0)
    same = plain & (low // divisor == high // divisor)
    negative = (
        np.zeros_like(low) if function.never_negative else np.where(valid(facts.minimum) & (low >= 0), 0, 1 - divisor)
    )
    least = np.where(same, low % divisor, negative)
    most = np.where(same, high % divisor, divisor - 1)
    return periodic(facts, kind, least, most, same)


def _float(side: pa.Array, operation: Any, constant: float | Decimal) -> Bound:
    found = numbers(side)
    with np.errstate(all="ignore"):
        values = operation(found, found.dtype.type(constant))
    return kept(arrow(values, side.type, side))


def _chosen(condition: Flags, then: Flags, otherwise: Flags) -> Flags:
    result: Flags = np.where(condition, then, otherwise)
    return result


def _between(found: Any, lowest: int, highest: int) -> Flags:
    """Returns where a value is between limits that may lie outside its type."""
    limits = np.iinfo(np.int64)
    result: Flags = (found >= max(lowest, limits.min)) & (found <= min(highest, limits.max))
    return result


def _towards_zero(limit: int, factor: int) -> int:
    quotient = abs(limit) // abs(factor)
    return quotient if (limit < 0) == (factor < 0) else -quotient
