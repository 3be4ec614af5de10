"""Bounds of long strings and binary."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.zlayout.index.statistics.column_stats import (
    binary_ceiling,
    binary_floor,
    cut_bounds,
    stats_type,
    text_ceiling,
    text_floor,
)

EXACT = {"min_exact": True, "max_exact": True, "null_count": 0, "nan_count": 0, "value_count": 9}
UNICODE = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
NEAR_LIMITS = st.text(st.sampled_from("a\x7f\u07ff\ud7ff\ue000\uffff\U0010ffff"), max_size=12)


@given(UNICODE | NEAR_LIMITS, UNICODE | NEAR_LIMITS, st.integers(1, 10))
def test_cut_strings_enclose_every_string_that_starts_alike(value: str, tail: str, limit: int) -> None:
    low, high = text_floor(value, limit), text_ceiling(value, limit)
    assert len(low.encode()) <= limit
    assert low.encode() <= value.encode()
    if high is not None:
        assert len(high.encode()) <= limit
        assert high.encode() > (low + tail).encode()


@given(st.binary(max_size=12), st.binary(max_size=12), st.integers(1, 10))
def test_cut_bytes_enclose_all_bytes_that_start_alike(value: bytes, tail: bytes, limit: int) -> None:
    low, high = binary_floor(value, limit), binary_ceiling(value, limit)
    assert len(low) <= limit
    assert low <= value
    if high is not None:
        assert len(high) <= limit
        assert high > low + tail


@pytest.mark.parametrize(
    ("value", "limit", "ceiling"),
    [
        ("abcd", 2, "ac"),
        ("a\U0010ffff" + "x", 5, "b"),
        ("\U0010ffff" * 3, 8, None),
        ("\ud7ffx", 3, "\ue000"),
        ("\x7fx", 1, None),
        ("a\x7fx", 2, "b"),
        ("aéx", 2, "b"),
    ],
)
def test_the_last_code_point_that_can_grow_grows(value: str, limit: int, ceiling: str | None) -> None:
    assert text_ceiling(value, limit) == ceiling


def test_a_prefix_of_0xff_has_no_ceiling() -> None:
    assert binary_ceiling(b"\xff" * 9, 4) is None
    assert binary_ceiling(b"a\xff\xff\xff\xff", 3) == b"b"


def test_only_bounds_that_were_cut_lose_their_exactness() -> None:
    kind = stats_type(pa.string())
    exact = {"min_exact": True, "max_exact": True, "null_count": 1, "nan_count": 0, "value_count": 9}
    rows = [{"min": "a", "max": "z" * 64, **exact}, {"min": "é" * 40, "max": "\U0010ffff" * 20, **exact}, None]
    cut = cut_bounds(pa.array(rows, kind)).to_pylist()
    assert cut[0] == rows[0]
    assert cut[1] == {**exact, "min": "é" * 32, "max": None, "min_exact": False, "max_exact": False}
    numbers = pa.array([{"min": 1, "max": 2, **exact}], stats_type(pa.int64()))
    assert cut_bounds(numbers) is numbers


def test_bounds_that_begin_alike_are_still_told_apart() -> None:
    beginning, other = "https://example.com/" + "é/" * 60, "http://example.com/" + "x" * 60
    texts = [f"{each}{letter}{'tail' * 50}" for each in (beginning, other) for letter in "abcdef"]
    rows = [
        {"min": low, "max": high, **EXACT} for low, high in zip(sorted(texts)[:-1:2], sorted(texts)[1::2], strict=True)
    ]
    cut = cut_bounds(pa.array([*rows, None], stats_type(pa.string()))).to_pylist()
    assert set(cut[-1].values()) == {None}
    for before, row in zip(rows, cut[:-1], strict=True):
        assert before["min"].startswith(row["min"])
        assert before["max"] < row["max"]
        assert len(row["min"].encode()) <= len(beginning.encode()) + 17
        assert not row["min_exact"]
        assert not row["max_exact"]
    assert all(row["max"] < after["min"] for row, after in itertools.pairwise(cut[:-1]))


def test_no_bound_is_longer_than_the_most_and_lonely_ones_are_short() -> None:
    kind = stats_type(pa.binary())
    alike = pa.array([{"min": b"x" * 3_000 + b"a", "max": b"x" * 3_000 + b"b", **EXACT}], kind)
    assert [len(cut_bounds(alike).field(side)[0].as_py()) for side in ("min", "max")] == [1024, 1024]
    lonely = pa.array([{"min": b"a" * 500, "max": b"b" * 500, **EXACT}], kind)
    assert cut_bounds(lonely).to_pylist() == [
        {**EXACT, "min": b"a" * 64, "max": b"b" * 63 + b"c", "min_exact": False, "max_exact": False}
    ]


def test_a_column_with_one_long_value_has_short_bounds() -> None:
    constant = pa.array([{"min": "v" * 500, "max": "v" * 500, **EXACT}] * 3, stats_type(pa.string()))
    assert cut_bounds(constant).field("min").to_pylist() == ["v" * 64] * 3
