"""Bound propagation for casts between types and for rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.functions import Convert, Rounded, Rounding
from dbt.adapters.zlayout.pruning.propagation.monotone import (
    DAY_US,
    Bound,
    arrow,
    bound,
    fitted,
    integer_limits,
    kept,
    loosened,
    monotone,
    near,
    numbers,
    within,
    without_nan,
)
from dbt.adapters.zlayout.pruning.statistics.validation import Facts, flags

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31: dates with four-digit years, whose strings sort as the dates do."""

_MODES = {
    Rounding.FLOOR: "down",
    Rounding.CEILING: "up",
    Rounding.HALF_UP: "half_towards_infinity",
    Rounding.HALF_EVEN: "half_to_even",
}


def convert(function: Convert, facts: Facts) -> Facts | None:  # noqa: PLR0911, C901 - one return per pair of types
    """``CAST(x AS type)`` where it keeps the order.

    If a value does not fit, ANSI mode raises an error and legacy mode wraps around or gives null. Nothing is claimed
    about such files, so the mode does not matter. Strings are not cast to numbers or dates, because '10' sorts before
    '9'; numbers are not cast to strings for the same reason. Nothing is cast to boolean: every number but 0 is true.
    """
    source, target = facts.minimum.type, function.type
    kinds = pa.types
    if source == target:
        return facts
    if kinds.is_boolean(source) and (kinds.is_integer(target) or kinds.is_floating(target)):
        return monotone(facts, lambda side: kept(side.cast(pa.int8()).cast(target)), total=True)
    if kinds.is_integer(source) and kinds.is_integer(target):
        lowest, highest = integer_limits(target)
        widening = target.bit_width >= source.bit_width
        return monotone(facts, lambda side: _integer(side, target, lowest, highest), total=widening)
    if kinds.is_integer(source) and kinds.is_floating(target):
        # Rounds to the nearest float, which keeps the order, and never overflows.
        return monotone(
            facts,
            lambda side: kept(arrow(numbers(side).astype(target.to_pandas_dtype()), target, side)),
            total=True,
        )
    if kinds.is_integer(source) and kinds.is_decimal128(target):
        wide = pa.decimal256(19, 0)
        return monotone(facts, lambda side: fitted(side.cast(pa.int64()).cast(wide), target), total=False)
    if kinds.is_floating(source) and kinds.is_integer(target):
        return without_nan(monotone(facts, lambda side: _cut(side, target), total=False), facts)
    if kinds.is_floating(source) and kinds.is_floating(target):
        return monotone(facts, lambda side: _float(side, target), total=True)
    if kinds.is_decimal128(source):
        return _of_decimal(facts, target)
    if kinds.is_date32(source) and kinds.is_timestamp(target) and target.tz is None:
        return monotone(
            facts,
            lambda side: bound(numbers(side).astype(np.int64) * DAY_US, target, side, near(side)),
            total=False,
        )
    if kinds.is_timestamp(source) and source.tz is None and kinds.is_date32(target):
        return monotone(facts, lambda side: kept(arrow(numbers(side) // DAY_US, target, side)), total=True)
    if kinds.is_date32(source) and kinds.is_string(target):
        return monotone(facts, _date_text, total=False)
    if kinds.is_string(source) and kinds.is_binary(target):
        return monotone(facts, lambda side: kept(side.cast(target)), total=True)
    return None


def rounded(function: Rounded, facts: Facts) -> Facts | None:
    """Rounding keeps the order in every mode."""
    source, target = facts.minimum.type, function.type
    kinds = pa.types
    if kinds.is_decimal128(source) and kinds.is_decimal128(target):
        mode = _MODES[function.rounding]
        return monotone(facts, lambda side: _decimal(side, target, function.digits, mode), total=False)
    if kinds.is_integer(source) and source == target and function.digits >= 0:
        return facts
    if kinds.is_floating(source) and kinds.is_integer(target) and function.digits == 0:
        step = np.floor if function.rounding is Rounding.FLOOR else np.ceil
        if function.rounding not in (Rounding.FLOOR, Rounding.CEILING):
            return None
        return without_nan(monotone(facts, lambda side: _cut(side, target, step), total=False), facts)
    if source == target and (kinds.is_floating(source) or kinds.is_integer(source)):
        return _near_itself(function, facts)
    return None


def _near_itself(function: Rounded, facts: Facts) -> Facts | None:
    """A rounded number differs from x by at most half a step.

    How ties are rounded depends on the digits that Java prints for the number, so only this fact is used: the bounds
    are moved by a little more than half a step, plus one float.
    """
    kind = facts.minimum.type
    if not -18 <= function.digits <= 18 or function.rounding not in (Rounding.HALF_UP, Rounding.HALF_EVEN):
        return None
    if pa.types.is_integer(kind):
        half = 10 ** (-function.digits) // 2
        lowest, highest = integer_limits(kind)

        def moved(side: pa.Array, by: int) -> Bound:
            found = numbers(side).astype(np.int64)
            return bound(found + by, kind, side, (found >= lowest + half) & (found <= highest - half))

        down = monotone(facts, lambda side: moved(side, -half), total=False)
        up = monotone(facts, lambda side: moved(side, half), total=False)
    else:
        step = 0.5000001 * 10.0**-function.digits

        def shifted(side: pa.Array, by: float) -> Bound:
            found = numbers(side)
            with np.errstate(all="ignore"):
                values = np.nextafter(found + found.dtype.type(by), found.dtype.type(np.copysign(np.inf, by)))
            return kept(arrow(values, kind, side))

        down = monotone(facts, lambda side: shifted(side, -step), total=True)
        up = monotone(facts, lambda side: shifted(side, step), total=True)
    return loosened(replace(down, maximum=up.maximum))


def _integer(side: pa.Array, target: pa.DataType, lowest: int, highest: int) -> Bound:
    found = numbers(side).astype(np.int64)
    return bound(found, target, side, (found >= lowest) & (found <= highest))


def _cut(side: pa.Array, target: pa.DataType, step: np.ufunc = np.trunc) -> Bound:
    """Converts floats to integers; the limits are powers of two, which floats represent exactly."""
    limit = 2.0 ** (target.bit_width - 1)
    with np.errstate(all="ignore"):
        found = step(numbers(side).astype(np.float64))
    known = (found >= -limit) & (found < limit)
    return bound(np.where(known, found, 0).astype(np.int64), target, side, known)


def _float(side: pa.Array, target: pa.DataType) -> Bound:
    with np.errstate(all="ignore"):
        return kept(arrow(numbers(side).astype(target.to_pandas_dtype()), target, side))


def _of_decimal(facts: Facts, target: pa.DataType) -> Facts | None:
    if pa.types.is_decimal128(target):
        return monotone(facts, lambda side: fitted(_wide(side), target), total=False)
    if pa.types.is_integer(target):
        whole = pa.decimal128(38, 0)
        lowest, highest = (pa.scalar(each, pa.int64()).cast(pa.decimal128(19, 0)) for each in integer_limits(target))

        def cut(side: pa.Array) -> Bound:
            digits = fitted(_wide(side), whole, "towards_zero").value
            fits = pc.and_(pc.greater_equal(digits, lowest), pc.less_equal(digits, highest))
            known = flags(fits, when_unknown=True)
            return Bound(within(digits, known).value.cast(target), known)

        return monotone(facts, cut, total=False)
    if pa.types.is_float64(target):
        # Arrow's conversion may be off in the last bits: the bounds are moved outward by more than that.
        low, high = (numbers(side.cast(target)) for side in (facts.minimum, facts.maximum))
        room = 2.0**-48
        minimum = arrow(low - np.abs(low) * room, target, facts.minimum)
        maximum = arrow(high + np.abs(high) * room, target, facts.maximum)
        return loosened(replace(facts, minimum=minimum, maximum=maximum))
    return None


def _decimal(side: pa.Array, target: pa.DataType, digits: int, mode: str) -> Bound:
    return fitted(pc.round(_wide(side), ndigits=digits, round_mode=mode), target)


def _wide(side: pa.Array) -> pa.Array:
    # Two spare digits: rounding up may need one more.
    return side.cast(pa.decimal256(side.type.precision + 2, side.type.scale))


def _date_text(side: pa.Array) -> Bound:
    days = numbers(side)
    known = (days >= _FIRST_DAY) & (days <= _LAST_DAY)
    return within(within(side, known).value.cast(pa.string()), known)
