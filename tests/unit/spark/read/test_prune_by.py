"""Values as constants of Spark's SQL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.spark.read.prune_by import covering_ranges, spelling_of

KINDS = {
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats()),
    "text": (pa.string(), st.text(max_size=3) | st.text(max_size=3).map(("same beginning of all " * 4).__add__)),
    "binary": (pa.binary(), st.binary(max_size=12)),
    "decimal": (pa.decimal128(38, 2), st.decimals(-(10**35), 10**35, places=2)),
    "date": (pa.date32(), st.dates()),
}


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (t.IntegerType(), -5, "-5"),
        (t.LongType(), 2**63 - 1, "9223372036854775807"),
        (t.BooleanType(), True, "true"),
        (t.DecimalType(20, 3), Decimal("1.500"), "1.5BD"),
        (t.DecimalType(20, 0), Decimal("1E+2"), "100BD"),
        (t.DecimalType(10, 9), Decimal("0E-9"), "0BD"),
        (t.DecimalType(10, 9), Decimal("1E-9"), "0.000000001BD"),
        (t.DoubleType(), float("nan"), "double('NaN')"),
        (t.DoubleType(), float("-inf"), "double('-Infinity')"),
        (t.DoubleType(), 1e300, "1e+300D"),
        (t.FloatType(), 0.5, "0.5F"),
        (t.StringType(), "Zürich (ZH)", "'Zürich (ZH)'"),
        (t.StringType(), "it's", "cast(X'69742773' as string)"),
        (t.StringType(), "a\\b", "cast(X'615C62' as string)"),
        (t.StringType(), "${x}", "cast(X'247B787D' as string)"),
        (t.StringType(), "", "''"),
        (t.BinaryType(), bytearray(b"\x00'"), "X'0027'"),
        (t.DateType(), "+10000-01-01", "date'+10000-01-01'"),
        (t.TimestampType(), -1, "timestamp_micros(-1)"),
        (t.TimestampNTZType(), "2024-03-31 02:30:00", "timestamp_ntz'2024-03-31 02:30:00'"),
    ],
)
def test_a_value_is_a_constant_of_its_type(kind: t.DataType, value: Any, text: str) -> None:
    assert spelling_of(kind, "v").literal(value) == text


def test_a_type_without_constants_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(UnsupportedError, match=r"column v has type array<int>.*select a number, text"):
        spelling_of(t.ArrayType(t.IntegerType()), "v")


@pytest.mark.parametrize(
    ("kind", "values", "text"),
    [
        (t.LongType(), [3, 1, None, 3], "c in (1, 3)"),
        (t.LongType(), [None], "false"),
        (t.DoubleType(), [-0.0, 2.5], "c in (-0.0D, 0.0D, 2.5D)"),
        (t.DoubleType(), [float("nan"), 2.5], "(c in (2.5D) or isnan(c))"),
        (t.FloatType(), [float("nan")], "isnan(c)"),
        (t.BinaryType(), [bytearray(b"a"), b"a"], "c in (X'61')"),
    ],
)
def test_values_are_a_condition_that_readers_of_parquet_get_right(
    kind: t.DataType, values: list[Any], text: str
) -> None:
    assert spelling_of(kind, "v").condition("c", values) == text


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
