"""Plans on the timeline: what older and newer releases read of them, and the forecast of packed files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dbt.adapters.zlayout.config.clustering import ClusterStrategy
from dbt.adapters.zlayout.curve.keys import Comparable
from dbt.adapters.zlayout.errors import NewerFormatError
from dbt.adapters.zlayout.layout.cluster_plan import PlannedGroup, forecast_packs, scheduled_groups
from dbt.adapters.zlayout.layout.key_space import KeyBounds

# What releases without strategies write and read, no more.
EARLIER = {
    "partition": "",
    "paths": ["a"],
    "rows": 1,
    "size_bytes": 9,
    "reason": "all",
    "files_after": 1,
    "saves": None,
}
STRATEGIES = [
    ClusterStrategy(),
    ClusterStrategy("binpack"),
    ClusterStrategy("sort", (("a",), ("s", "zip.code"))),
]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_groups_come_back_from_the_timeline_as_they_went_there(strategy: ClusterStrategy) -> None:
    group = PlannedGroup("p=1", ("b", "a"), 10, 99, "small", 1, None, strategy)
    assert scheduled_groups(json.loads(json.dumps([group.to_dict()]))) == (group,)


def test_a_plan_of_an_earlier_release_is_one_along_the_curve() -> None:
    (group,) = scheduled_groups([EARLIER])
    assert (group.strategy, group.to_dict()) == (ClusterStrategy(), EARLIER)


@pytest.mark.parametrize("strategy", STRATEGIES[1:], ids=str)
def test_an_earlier_release_cannot_take_another_strategy_for_its_own(strategy: ClusterStrategy) -> None:
    # Its groups had the fields of EARLIER: any other makes the plan one that it cannot read.
    assert set(PlannedGroup("", ("a",), 1, 9, "all", 1, None, strategy).to_dict()) > set(EARLIER)


def test_the_strategy_of_a_newer_release_is_refused() -> None:
    with pytest.raises(NewerFormatError, match=r"strategy 'zip'.*upgrade"):
        scheduled_groups([EARLIER, {**EARLIER, "strategy": "zip", "dust": 1}])


@pytest.mark.parametrize(
    "more",
    [
        {"strategy": ["sort"]},
        {"strategy": "sort"},
        {"strategy": "sort", "sort_by": []},
        {"strategy": "sort", "sort_by": 7},
        {"strategy": "sort", "sort_by": ["a", "a"]},
        {"strategy": "binpack", "sort_by": ["a"]},
        {"sort_by": ["a"]},
    ],
)
def test_a_strategy_that_makes_no_sense_is_a_damaged_plan(more: dict[str, object]) -> None:
    assert scheduled_groups([{**EARLIER, **more}]) == ()


def bounds(low: list[int | None], high: list[int | None], empty: list[bool]) -> KeyBounds:
    sides = (
        Comparable(np.array([each or 0 for each in side]), np.array([each is None for each in side]))
        for side in (low, high)
    )
    return KeyBounds(*sides, np.array(empty))


def test_a_packed_file_spans_its_files_and_is_unknown_if_one_is() -> None:
    key = bounds([5, 1, None, 3, None, None], [9, 2, None, 4, None, None], [False, False, True, False, False, True])
    packs = [np.array([1, 0]), np.array([2, 3]), np.array([4, 1]), np.array([5])]
    rows, sizes = np.arange(1, 7), np.arange(10, 70, 10)
    found = forecast_packs([key], packs, rows, sizes)
    (packed,) = found.bounds
    assert (packed.low.values[:2].tolist(), packed.high.values[:2].tolist()) == ([1, 3], [9, 4])
    assert packed.unknown.tolist() == [False, False, True, False]
    assert packed.empty.tolist() == [False, False, False, True]
    assert (found.rows.tolist(), found.size_bytes.tolist()) == ([3, 7, 7, 6], [30, 70, 70, 60])
