"""Values as a few ranges that hold them all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.curve.value_ranges import covering_ranges

KINDS = {
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats()),
    "text": (pa.string(), st.text(max_size=3) | st.text(max_size=3).map(("same beginning of all " * 4).__add__)),
    "binary": (pa.binary(), st.binary(max_size=12)),
    "decimal": (pa.decimal128(38, 2), st.decimals(-(10**35), 10**35, places=2)),
    "date": (pa.date32(), st.dates()),
}


def order(values: pa.Array) -> dict[str, int]:
    """Spark's order of values, as Arrow has it too: the number of each, the same for equal ones."""
    sorted_texts = dict.fromkeys(spelled(values.take(pc.sort_indices(values))))
    return {text: rank for rank, text in enumerate(sorted_texts)}


def spelled(values: pa.Array) -> list[str]:
    """Values as text, the same for equal ones: the two zeros, and every NaN."""
    return [repr(each + 0.0 if isinstance(each, float) else each) for each in values.to_pylist()]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(st.data())
def test_every_value_lies_in_one_of_few_rising_ranges(kind: str, data: st.DataObject) -> None:
    arrow_type, values = KINDS[kind]
    array = pa.array(data.draw(st.lists(values, min_size=1, max_size=40)), arrow_type)
    most = data.draw(st.integers(1, 10))
    low, high = covering_ranges(array, array, most)
    ranks = order(array)

    def ranked(some: pa.Array) -> list[int]:
        return [ranks[text] for text in spelled(some)]

    lows, highs = ranked(low), ranked(high)
    assert len(lows) == len(highs) <= most
    assert all(start <= end for start, end in zip(lows, highs, strict=True))
    assert all(end < start for end, start in zip(highs[:-1], lows[1:], strict=True))
    assert all(any(start <= each <= end for start, end in zip(lows, highs, strict=True)) for each in ranked(array))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), min_size=1, max_size=30), st.integers(1, 5))
def test_ranges_are_joined_where_the_least_lies_between_them(ranges: list[tuple[int, int]], most: int) -> None:
    low = pa.array([start for start, _ in ranges])
    high = pa.array([start + width for start, width in ranges])
    found = covering_ranges(low, high, most)
    covered = sum(end - start for start, end in zip(*(each.to_pylist() for each in found), strict=True))
    alone = covering_ranges(low, high, len(ranges))
    starts, ends = (each.to_numpy() for each in alone)
    gaps = np.sort(starts[1:] - ends[:-1])
    assert covered == (ends - starts).sum() + gaps[: max(0, len(gaps) - most + 1)].sum()


@pytest.mark.parametrize(
    ("values", "ranges"),
    [
        (["user_1", "user_2", "user_9", "user_900"], [("user_1", "user_2"), ("user_9", "user_900")]),
        ([1.0, 2.0, float("inf"), 1e9], [(1.0, 1e9), (float("inf"), float("inf"))]),
        ([-(2**63), 2**63 - 1, 2**63 - 2], [(-(2**63), -(2**63)), (2**63 - 2, 2**63 - 1)]),
        ([5, 5, 5], [(5, 5)]),
    ],
)
def test_the_widest_gap_stays_open(values: list[Any], ranges: list[tuple[Any, Any]]) -> None:
    array = pa.array(values)
    assert list(zip(*(each.to_pylist() for each in covering_ranges(array, array, 2)), strict=True)) == ranges


def test_no_values_have_no_ranges() -> None:
    nothing = pa.array([], pa.string())
    assert [len(each) for each in covering_ranges(nothing, nothing, 3)] == [0, 0]
