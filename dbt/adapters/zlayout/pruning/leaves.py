"""Leaf rules: what bounds prove about comparisons, lists, prefixes and null tests.

No rule asks whether a bound is a value of the file. Every number lies between the bounds, so what holds for all that do
holds for the file; and if both bounds are one value, every number is that value.

A row is null, NaN or a number (here any value that is neither). Each rule gives its result for the numbers between the
bounds, for NaN and for null; `match` combines these with the kinds of rows that the file may have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.expr import (
    ColumnLeaf,
    Compare,
    Expr,
    In,
    IsNotNull,
    IsNull,
    NotIn,
    NotStartsWith,
    Op,
    StartsWith,
)
from dbt.adapters.zlayout.pruning.statistics.validation import Facts, flags, valid, widened
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags, Match


@dataclass(frozen=True)
class Truth:
    """The result of a leaf for each kind of row.

    Attributes:
        possible: Some number between the bounds may make it TRUE.
        certain: Every number of the file makes it TRUE.
        nan: It is TRUE for NaN.
        null: It is TRUE for null.
    """

    possible: Flags | bool
    certain: Flags | bool
    nan: bool = False
    null: bool = False


_NEVER = Truth(possible=False, certain=False)


def match(leaf: ColumnLeaf, facts: Facts) -> Match | None:
    """Evaluates a leaf over all files.

    Args:
        leaf: In normal form: the values of comparisons are not null.
        facts: The validated statistics of its operand.

    Returns:
        The match; None if the constant cannot be converted to the operand's type.
    """
    truth = _truth(leaf, facts)
    if truth is None:
        return None
    possible = facts.may_have_value & truth.possible
    certain = ~facts.may_have_value | truth.certain
    if truth.nan:
        possible = possible | facts.may_be_nan
    else:
        certain = certain & ~facts.may_be_nan
    if truth.null:
        possible = possible | facts.may_be_null
    else:
        certain = certain & ~facts.may_be_null
    return Match(possible, certain)


def _truth(leaf: Expr, facts: Facts) -> Truth | None:
    kind = facts.minimum.type
    match leaf:
        case IsNull():
            return Truth(possible=False, certain=False, null=True)
        case IsNotNull():
            return Truth(possible=True, certain=True, nan=True)
        case Compare(op, _, value):
            typed = widened(value, kind)
            return None if typed is None else _compare(op, typed, facts)
        case In(_, values) | NotIn(_, values):
            members = widened(values, kind)
            return None if members is None else _membership(leaf, members, facts)
        case StartsWith(_, prefix) | NotStartsWith(_, prefix):
            typed = widened(prefix, kind)
            return None if typed is None else _prefix(leaf, typed, facts)
    return None


def _compare(op: Op, value: pa.Scalar, facts: Facts) -> Truth:  # noqa: PLR0911 - one return per operator
    low, high = facts.minimum, facts.maximum
    if _is_nan(value):
        return _compare_nan(op)
    match op:
        case Op.LT:
            return Truth(~_known(pc.greater_equal, low, value), _known(pc.less, high, value))
        case Op.LE:
            return Truth(~_known(pc.greater, low, value), _known(pc.less_equal, high, value))
        case Op.GT:
            return Truth(~_known(pc.less_equal, high, value), _known(pc.greater, low, value), nan=True)
        case Op.GE:
            return Truth(~_known(pc.less, high, value), _known(pc.greater_equal, low, value), nan=True)
    outside = _known(pc.greater, low, value) | _known(pc.less, high, value)
    only = _known(pc.equal, low, value) & _known(pc.equal, high, value)
    if op in (Op.EQ, Op.EQ_NULL_SAFE):
        return Truth(possible=~outside, certain=only)
    return Truth(possible=~only, certain=outside, nan=True, null=op is Op.NE_NULL_SAFE)


def _compare_nan(op: Op) -> Truth:
    """Compares with NaN, which is above every number and equals itself."""
    numbers = op in (Op.LT, Op.LE, Op.NE, Op.NE_NULL_SAFE)
    nan = op in (Op.LE, Op.GE, Op.EQ, Op.EQ_NULL_SAFE)
    return Truth(possible=numbers, certain=numbers, nan=nan, null=op is Op.NE_NULL_SAFE)


def _membership(leaf: In | NotIn, members: pa.Array, facts: Facts) -> Truth:
    nan = False
    if pa.types.is_floating(members.type):
        numbers = members.filter(pc.invert(pc.is_nan(members)))
        nan, members = len(numbers) < len(members), numbers
    inside = _holds_member(facts.minimum, facts.maximum, members)
    only_members = flags(pc.equal(facts.minimum, facts.maximum), when_unknown=False) & inside
    if isinstance(leaf, In):
        return Truth(possible=inside, certain=only_members, nan=nan)
    if leaf.has_null:
        return _NEVER
    return Truth(possible=~only_members, certain=~inside, nan=not nan)


def _prefix(leaf: StartsWith | NotStartsWith, prefix: pa.Scalar, facts: Facts) -> Truth:
    # Compares with the prefix itself, not with its successor: the greatest code point or byte has none.
    above = _known(pc.greater, facts.minimum, prefix) & ~_starts_with(facts.minimum, prefix)
    below = _known(pc.less, facts.maximum, prefix)
    # Every string between two strings with the prefix has it too.
    all_within = _starts_with(facts.minimum, prefix) & _starts_with(facts.maximum, prefix)
    if isinstance(leaf, StartsWith):
        return Truth(possible=~(above | below), certain=all_within)
    return Truth(possible=~all_within, certain=above | below)


def _starts_with(bound: pa.Array, prefix: pa.Scalar) -> Flags:
    return flags(pc.starts_with(bound, pattern=prefix.as_py()), when_unknown=False)


def _known(comparison: Any, bound: pa.Array, value: pa.Scalar) -> Flags:
    """Returns where the comparison holds for the bound; false where the bound is unknown."""
    return flags(comparison(bound, value), when_unknown=False)


def _is_nan(value: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(value.type) and np.isnan(value.as_py()))


def _holds_member(minimum: pa.Array, maximum: pa.Array, members: pa.Array) -> Flags:
    """Returns for each file whether some member lies in [minimum, maximum].

    Each member is tested on its own: a list whose ends enclose a file but which has no value inside it skips the file.

    Args:
        minimum: Lower bounds, one per file; null is unbounded.
        maximum: Upper bounds; null is unbounded.
        members: Values of the bounds' type, without nulls and NaN.
    """
    lowest, highest, ordered = _comparable(minimum, maximum, members)
    ordered = np.sort(ordered)
    first_inside = np.where(valid(minimum), np.searchsorted(ordered, lowest, side="left"), 0)
    first_above = np.where(valid(maximum), np.searchsorted(ordered, highest, side="right"), len(ordered))
    result: Flags = first_above > first_inside
    return result


def _comparable(
    minimum: pa.Array, maximum: pa.Array, members: pa.Array
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    """Returns numbers that compare as the values do; entries for nulls are arbitrary."""
    kind = minimum.type
    if pa.types.is_boolean(kind):
        kind = pa.uint8()
        minimum, maximum, members = (each.cast(kind) for each in (minimum, maximum, members))
    elif pa.types.is_temporal(kind):
        kind = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        minimum, maximum, members = (each.view(kind) for each in (minimum, maximum, members))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        zero = pa.scalar(0, kind)
        lowest, highest, ordered = (
            pc.fill_null(each, zero).to_numpy(zero_copy_only=False) for each in (minimum, maximum, members)
        )
        return lowest, highest, ordered
    # Strings, bytes and decimals have no numpy order: uses their ranks among all given values instead.
    together = pa.concat_arrays([minimum, maximum, members])
    rank = pc.rank(together, tiebreaker="dense").to_numpy(zero_copy_only=False)
    count = len(minimum)
    return rank[:count], rank[count : 2 * count], rank[2 * count :]
