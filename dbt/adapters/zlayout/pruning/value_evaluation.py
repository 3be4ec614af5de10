"""Conditions evaluated on the values that a file may have, where these are few: one value, or a short range of them.

No function has to keep an order for that. The engine evaluates the condition, so the result is that of the query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.expr import Evaluator
from dbt.adapters.zlayout.pruning.propagation.monotone import numbers
from dbt.adapters.zlayout.pruning.statistics.validation import Facts, flags, is_ordered, valid
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags

MOST_IN_FILE = 62
"""The most values between the bounds of a file: the days of two months."""
_MOST_VALUES = 5_000


@dataclass(frozen=True)
class ByValue:
    """What the values of each file prove about a condition.

    Attributes:
        possible: Some row may make it TRUE.
        certain: Every row makes it TRUE.
        decided: The condition was evaluated on all values that the file may have.
    """

    possible: Flags
    certain: Flags
    decided: Flags


def by_value(facts: Facts, evaluate: Evaluator, *, wanted: bool) -> ByValue | None:
    """Evaluates a condition on the values of files.

    Args:
        facts: What is known about the term that alone decides about the condition.
        evaluate: The evaluation of the condition.
        wanted: The truth value for which a row matches.

    Returns:
        None if no file has few values, or all files together have too many.
    """
    few, low, high, distinct = _values(facts)
    decided = few | ~facts.may_be_number
    if not decided.any() or len(distinct) > _MOST_VALUES:
        return None
    kind, nan = facts.minimum.type, pa.types.is_floating(facts.minimum.type)
    others = pa.array([None, float("nan")] if nan else [None], kind)
    truth = evaluate(pa.concat_arrays([distinct, others]))
    hit, sure = (truth == wanted) | (truth < 0), truth == wanted
    ends = np.zeros((2, len(distinct) + 1), dtype=np.int64)
    np.cumsum([hit[: len(distinct)], sure[: len(distinct)]], axis=1, out=ends[:, 1:])
    hits, sures = ends[:, high] - ends[:, low]
    possible = facts.may_be_number & (hits > 0)
    certain = ~facts.may_be_number | (sures == high - low)
    kinds = [(facts.may_be_null, len(distinct)), (facts.may_be_nan, len(distinct) + 1)]
    for may_be, position in kinds[: len(others)]:
        possible, certain = possible | (may_be & hit[position]), certain & (~may_be | sure[position])
    return ByValue(possible | ~decided, certain & decided, decided)


def _values(facts: Facts) -> tuple[Flags, npt.NDArray[np.int64], npt.NDArray[np.int64], pa.Array]:
    """Returns which files have few values, where these begin and end among all of them, and all of them, ascending."""
    kind, both = facts.minimum.type, valid(facts.minimum) & valid(facts.maximum)
    if not is_ordered(kind):
        return np.zeros_like(both), *_nowhere(len(both)), pa.nulls(0, kind)
    countable = pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_boolean(kind)
    if not countable:
        few = both & flags(pc.equal(facts.minimum, facts.maximum), when_unknown=False)
        if pa.types.is_floating(kind):
            # 0.0 and -0.0 are equal, so bounds do not tell which of them a file has.
            few &= ~flags(pc.equal(facts.minimum, pa.scalar(0, kind)), when_unknown=False)
        encoded = facts.minimum.filter(pa.array(few)).dictionary_encode()
        low, high = _nowhere(len(few))
        low[few] = encoded.indices.to_numpy()
        high[few] = low[few] + 1
        return few, low, high, encoded.dictionary
    least, most = (numbers(side).astype(np.int64) for side in (facts.minimum, facts.maximum))
    few = both & (most.astype(np.uint64) - least.astype(np.uint64) < MOST_IN_FILE)
    pairs = np.unique(np.stack([least[few], most[few]], axis=1), axis=0)
    # Counted from the first value of each: the end of the last range may be beyond the type.
    ranges = [first + np.arange(last - first + 1) for first, last in pairs[:_MOST_VALUES].tolist()]
    distinct = np.unique(np.concatenate([np.zeros(0, np.int64), *ranges]))
    if len(pairs) > _MOST_VALUES:
        return np.zeros_like(few), *_nowhere(len(few)), pa.nulls(0, kind)
    low, high = np.searchsorted(distinct, least, "left"), np.searchsorted(distinct, most, "right")
    low, high = (np.where(few, side, 0) for side in (low, high))
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    return few, low, high, pa.array(distinct, pa.int64()).cast(width).cast(kind)


def _nowhere(count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
