from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.curve.keys import Comparable
from dbt.adapters.zlayout.curve.quantiles import Boundaries


def boundaries_of(values: list[object], buckets: int = 1024) -> Boundaries:
    return Boundaries.of_column(pa.array(values), buckets)


def test_few_distinct_values_are_all_told_apart() -> None:
    values = pa.array(["c", "a", "b", "a", "c"])
    assert Boundaries.of_column(values, 3).ranks_of(values).tolist() == [3, 1, 2, 1, 3]


def test_null_is_rank_zero() -> None:
    assert boundaries_of([5, None, 7]).ranks_of(pa.array([None, 5])).tolist() == [0, 1]


def test_nan_has_the_last_rank() -> None:
    array = pa.array([float("nan"), 1.0, float("inf")])
    assert Boundaries.of_column(array).ranks_of(array).tolist() == [3, 1, 2]


def test_a_heavy_value_is_alone_in_its_rank() -> None:
    values = np.concatenate([np.arange(2000), np.full(300, 777)])
    boundaries = Boundaries.of_column(pa.array(values), 16)
    ranks = boundaries.ranks_of(pa.array([776, 777, 778]))
    assert ranks[0] < ranks[1] < ranks[2]


def test_buckets_hold_about_as_many_rows_each() -> None:
    values = np.random.default_rng(3).lognormal(size=20_000)
    boundaries = Boundaries.of_column(pa.array(values), 100)
    counts = np.bincount(boundaries.ranks_of(pa.array(values)))[1:]
    assert len(counts) == 100
    assert counts.min() >= 190
    assert counts.max() <= 210


def test_bits_follow_the_number_of_ranks() -> None:
    assert boundaries_of([1, 1, 1]).bits == 0
    assert boundaries_of([1, None]).bits == 1
    assert Boundaries.of_column(pa.nulls(2, pa.int32())).bits == 0
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


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_texts_that_begin_alike_for_long_are_told_apart(kind: pa.DataType) -> None:
    beginnings = ("http://example.com/", "https://example.com/", "https://example.com/" + "é/" * 200)
    texts = [f"{each}{'path/' * 20}{number:03}" for each in beginnings for number in range(100)]
    values = [text.encode() for text in texts] if kind == pa.binary() else texts
    boundaries = Boundaries.of_column(pa.array(values).cast(kind))
    assert boundaries.ranks_of(pa.array(values).cast(kind)).tolist() == list(range(1, 301))
    # Values outside of the known beginnings have their places before, between and after them.
    others = pa.array(["", "ftp://", "http://exbmple.com/", "https://example.com/x", "i"])
    ranks = boundaries.ranks_of(others.cast(pa.binary() if kind == pa.binary() else pa.string()))
    assert ranks.tolist() == [1, 1, 100, 200, 300]


def test_boundaries_of_texts_have_no_more_bytes_than_are_needed() -> None:
    texts = pa.array([f"{number:05}{'and so on' * 30}" for number in range(5_000)])
    boundaries = Boundaries.of_column(texts, 100)
    assert boundaries.most_bytes <= 5
    assert np.bincount(boundaries.ranks_of(texts))[1:].tolist() == [50] * 100


def test_texts_are_told_apart_by_a_bounded_number_of_bytes() -> None:
    beginning = "x" * 1020
    same, told_apart = (
        pa.array([f"{beginning}{each}" for each in ends]) for ends in (("abcdx", "abcdy"), ("abcx", "abcy"))
    )
    assert len(Boundaries.of_column(same).values) == 0
    assert Boundaries.of_column(told_apart).ranks_of(told_apart).tolist() == [1, 2]


def test_few_thresholds_need_few_bytes() -> None:
    texts = pa.array([*(f"{'p' * 90}{number}" for number in range(9)), "q"])
    boundaries = Boundaries.of_column(texts)
    assert boundaries.most_bytes == 91
    few, _ = boundaries.merged(np.array([10]))
    assert few.values.tolist() == [b"q"]
    assert few.most_bytes == 1
