from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.curve.keys import Comparable, comparable
from dbt.adapters.zlayout.curve.quantiles import Boundaries


def boundaries_of(values: list[object], buckets: int = 1024) -> Boundaries:
    return Boundaries.of_sample(comparable(pa.array(values)), buckets)


def test_few_distinct_values_are_all_told_apart() -> None:
    values = comparable(pa.array(["c", "a", "b", "a", "c"]))
    assert Boundaries.of_sample(values, 3).ranks(values).tolist() == [3, 1, 2, 1, 3]


def test_null_is_rank_zero() -> None:
    assert boundaries_of([5, None, 7]).ranks_of(pa.array([None, 5])).tolist() == [0, 1]


def test_nan_has_the_last_rank() -> None:
    array = pa.array([float("nan"), 1.0, float("inf")])
    assert Boundaries.of_sample(comparable(array)).ranks_of(array).tolist() == [3, 1, 2]


def test_a_heavy_value_is_alone_in_its_rank() -> None:
    values = np.concatenate([np.arange(2000), np.full(300, 777)])
    boundaries = Boundaries.of_sample(comparable(pa.array(values)), 16)
    ranks = boundaries.ranks_of(pa.array([776, 777, 778]))
    assert ranks[0] < ranks[1] < ranks[2]


def test_buckets_hold_about_as_many_rows_each() -> None:
    values = np.random.default_rng(3).lognormal(size=20_000)
    boundaries = Boundaries.of_sample(comparable(pa.array(values)), 100)
    counts = np.bincount(boundaries.ranks_of(pa.array(values)))[1:]
    assert len(counts) == 100
    assert counts.min() >= 190
    assert counts.max() <= 210


def test_bits_follow_the_number_of_ranks() -> None:
    assert boundaries_of([1, 1, 1]).bits == 0
    assert boundaries_of([1, None]).bits == 1
    assert Boundaries.of_sample(comparable(pa.nulls(2, pa.int32()))).bits == 0
    assert boundaries_of(list(range(4))).bits == 2
    assert boundaries_of([*range(4), None]).bits == 3
    assert boundaries_of(list(range(100_000))).bits == 10


def test_codes_fit_their_bits_even_for_a_null_that_the_sample_had_not() -> None:
    boundaries = boundaries_of([10, 20, 30, 40])
    codes = boundaries.codes(boundaries.ranks_of(pa.array([None, -5, 10, 45, 20])))
    assert codes.tolist() == [0, 0, 0, 3, 1]


def test_a_dictionary_gets_the_ranks_of_its_plain_values() -> None:
    plain = pa.array(["b", None, "a", "zz", "b"] * 3)
    boundaries = boundaries_of(["a", "b", "c"])
    assert boundaries.ranks_of(plain.dictionary_encode()).tolist() == boundaries.ranks_of(plain).tolist()


def test_very_many_boundaries_need_wider_ranks() -> None:
    boundaries = boundaries_of(list(range(70_000)), 1 << 17)
    assert boundaries.ranks_of(pa.array([69_999])).tolist() == [70_000]


@pytest.mark.parametrize("low", [0, -700, np.iinfo(np.int64).max - 999, np.iinfo(np.int64).min])
def test_numbers_close_together_have_the_ranks_that_a_search_finds(low: int) -> None:
    values = (np.random.default_rng(3).integers(0, 1000, 5_000) + low).astype(np.int64)
    boundaries = Boundaries.of_sample(Comparable(values[:400], np.zeros(400, bool)), 50)
    found = boundaries.ranks(Comparable(values, np.zeros(len(values), bool)))
    assert found.tolist() == (np.searchsorted(boundaries.values, values, side="right") + 1).tolist()
