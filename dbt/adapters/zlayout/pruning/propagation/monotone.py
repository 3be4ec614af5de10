"""From facts about x to facts about f(x), for functions that keep or reverse the order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.pruning.statistics.validation import Facts, valid
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags


@dataclass(frozen=True)
class Bound:
    """f at one bound of each file.

    Attributes:
        value: Typed as f's result; null where the bound is unknown, and where known is false.
        known: False where f of the bound is not known, or not known to be what Spark makes of it (overflow).
    """

    value: pa.Array
    known: Flags


Kernel = Callable[[pa.Array], Bound]
"""Applies f to a bound of each file; nulls stay null and count as known."""


def monotone(facts: Facts, kernel: Kernel, *, total: bool, falling: bool = False) -> Facts:
    """Maps facts through a function that keeps the order, or reverses it.

    Proof: for a <= x <= b a rising f has f(a) <= f(x) <= f(b), a falling one f(b) <= f(x) <= f(a). A bound that is a
    value of the file maps to a value of f over the file: exactness stays what it was, whether f is injective or not.
    NaN has no place between bounds; `monotone` is for functions that map NaN to NaN, or that see none.

    Args:
        facts: Of x.
        kernel: f.
        total: f is defined and of one direction over its whole type, so that one bound alone maps. Otherwise (f
            overflows somewhere) both bounds must be known and within f's domain, for then all between them are; if
            they are not, the file's values wrap around, are null or raise an error, and nothing is known of them.
        falling: f reverses the order.
    """
    low, high = kernel(facts.minimum), kernel(facts.maximum)
    minimum, maximum = (high.value, low.value) if falling else (low.value, high.value)
    exact = facts.minimum_exact & low.known, facts.maximum_exact & high.known
    minimum_exact, maximum_exact = exact[::-1] if falling else exact
    mapped = replace(facts, minimum=minimum, maximum=maximum, minimum_exact=minimum_exact, maximum_exact=maximum_exact)
    if total:
        return mapped
    inside = low.known & high.known & valid(facts.minimum) & valid(facts.maximum)
    return forgotten(mapped, facts.may_be_number & ~inside)


def forgotten(facts: Facts, where: Flags) -> Facts:
    """Returns facts that know nothing of some files: any value, NaN or null."""
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
        may_be_number=facts.may_be_number | where,
        informed=facts.informed & ~where,
    )


def without_nan(mapped: Facts, facts: Facts) -> Facts:
    """Forgets the files that may hold a NaN, for functions that make something else of it."""
    return replace(forgotten(mapped, facts.may_be_nan), may_be_nan=_nan_of_result(mapped, facts))


def _nan_of_result(mapped: Facts, facts: Facts) -> Flags:
    result: Flags = facts.may_be_nan & pa.types.is_floating(mapped.minimum.type)
    return result


def loosened(facts: Facts) -> Facts:
    """Returns facts whose bounds bound, but are not known to be values of the file."""
    never = np.zeros(len(facts.minimum), dtype=np.bool_)
    return replace(facts, minimum_exact=never, maximum_exact=never)


def kept(value: pa.Array) -> Bound:
    """A bound that is known wherever it is given."""
    return Bound(value, np.ones(len(value), dtype=np.bool_))


def within(value: pa.Array, known: Flags) -> Bound:
    """A bound with null where it is not known."""
    return Bound(pc.if_else(pa.array(known), value, pa.scalar(None, value.type)), known)
