"""Bound propagation through monotone functions: from facts about x to facts about f(x)."""

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
    """f applied to one bound of each file.

    Attributes:
        value: Of the type of f's result; null where the bound is unknown, and where ``known`` is false.
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
    return forgotten(mapped, facts.may_be_number & ~inside)


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
        may_be_number=facts.may_be_number | where,
        informed=facts.informed & ~where,
    )


def without_nan(mapped: Facts, facts: Facts) -> Facts:
    """Forgets the files that may hold NaN, for functions that do not map NaN to NaN."""
    return replace(forgotten(mapped, facts.may_be_nan), may_be_nan=_nan_of_result(mapped, facts))


def _nan_of_result(mapped: Facts, facts: Facts) -> Flags:
    result: Flags = facts.may_be_nan & pa.types.is_floating(mapped.minimum.type)
    return result


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
