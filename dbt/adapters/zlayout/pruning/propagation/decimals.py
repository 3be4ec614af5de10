"""Decimal arithmetic for bound propagation: exact in 256 bits, then rounded to Spark's result type."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.pruning.propagation.monotone import Bound, within
from dbt.adapters.zlayout.pruning.statistics.validation import flags, valid

_WIDEST = 76


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
