"""The spans of files: bounds of every type as ranks, and what is unknown, null or NaN."""

from datetime import date, datetime, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from measured_files import bounds, statistics

from dbt.adapters.zlayout.layout.spans import spans_of, validated

X = ("x",)
NAN = float("nan")
UTC = timezone.utc


def spans(kind, given, **counts):
    found = statistics({X: bounds(kind, given, **counts)}, len(given))
    return spans_of(validated(found, {X: kind})[X], kind, len(given))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), (-(2**63), -1, 5, 2**63 - 1)),
        (pa.int8(), (-128, 0, 1, 127)),
        (pa.float64(), (-float("inf"), -1.5, 0.25, float("inf"))),
        (pa.decimal128(9, 2), (Decimal("-1.50"), Decimal("0.00"), Decimal("0.01"), Decimal("10.00"))),
        (pa.decimal128(38, 4), tuple(map(Decimal, ("-" + "9" * 34, "-0.0001", "0.0000", "9" * 34)))),
        (pa.date32(), (date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31))),
        (pa.timestamp("us", "UTC"), tuple(datetime(year, 1, 1, tzinfo=UTC) for year in (1, 1969, 2020, 9999))),
        (pa.string(), ("", "Z", "a", "é")),
        (pa.binary(), (b"", b"\x01", b"a", b"\xff")),
    ],
)
def test_bounds_of_every_type_are_ranked_in_sparks_order(kind, values):
    a, b, c, d = values
    found = spans(kind, [(c, d), (a, b), (b, c), (a, d)])
    assert found.low.tolist() == [3, 1, 2, 1]
    assert found.high.tolist() == [4, 2, 3, 4]
    assert found.bound_count == 4
    assert not found.constant.any()
    assert not found.unknown.any()
    assert (np.diff(found.low[np.argsort(found.low)]) >= 0).all()


def test_booleans_are_two_values():
    found = spans(pa.bool_(), [(False, False), (False, True), (True, True)])
    assert (found.low.tolist(), found.high.tolist()) == ([1, 1, 2], [1, 2, 2])
    assert found.constant.tolist() == [True, False, True]
    assert found.steps.tolist() == [1.0]


def test_zeros_of_both_signs_are_one_value():
    assert spans(pa.float64(), [(-0.0, 0.0)]).constant.tolist() == [True]


def test_steps_are_counted_where_they_can_be():
    assert spans(pa.date32(), [(date(2020, 1, 1), date(2020, 1, 2)), (date(2020, 1, 5),) * 2]).steps.tolist() == [1, 3]
    assert spans(pa.int64(), [(-(2**63), 2**63 - 1)]).steps.tolist() == [2.0**64 - 1]
    assert spans(pa.int64(), [(0, 1)]).countable
    assert spans(
        pa.timestamp("us", "UTC"), [(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC))]
    ).steps.tolist() == [86_400_000_000]


def test_steps_of_what_cannot_be_counted_follow_the_values():
    found = spans(pa.float64(), [(-1.5, 0.0), (0.5, float("inf"))])
    assert not found.countable
    assert found.steps[:2].tolist() == [1.5, 0.5]
    assert np.isfinite(found.steps).all()
    texts = spans(pa.string(), [("key a", "key b"), ("key d", "key da")]).steps
    assert texts[1] == 2 * texts[0]
    assert 0 < texts[2] < texts[0]
    assert spans(pa.string(), [("same", "same")]).steps.tolist() == []
    long = spans(pa.decimal128(38, 0), [(Decimal(-5), Decimal(5)), (Decimal(15), Decimal(25))]).steps
    assert long[1] == long[2]


def test_a_file_of_nulls_lies_before_all_values_and_one_of_nan_after():
    found = spans(pa.float64(), ["null", (1.0, 2.0), "nan"])
    assert found.low.tolist() == [0, 1, 3]
    assert found.high.tolist() == [0, 2, 3]
    assert found.constant.tolist() == [True, False, True]
    assert found.has_values.tolist() == [False, True, False]
    assert not found.unknown.any()


def test_an_unknown_bound_lies_beyond_all_values():
    found = spans(pa.int64(), [(None, None), (3, None), (None, 5), (3, 5)])
    assert found.low.tolist() == [0, 1, 0, 1]
    assert found.high.tolist() == [3, 3, 2, 2]
    assert found.unknown.tolist() == [True, True, True, False]
    assert found.has_values.all()


def test_bounds_that_contradict_themselves_are_unknown():
    assert spans(pa.int64(), [(5, 3), (1, 2)]).unknown.tolist() == [True, False]
    assert spans(pa.int64(), [(5, 5)], nulls=1000).unknown.tolist() == [True]


@pytest.mark.parametrize("counts", [{"nulls": 1}, {"nulls": None}, {"exact": False}])
def test_a_file_with_nulls_or_with_bounds_that_were_cut_is_not_constant(counts):
    assert spans(pa.string(), [("a", "a")], **counts).constant.tolist() == [False]


def test_without_statistics_all_is_unknown():
    found = spans_of(None, pa.int64(), 3)
    assert found.unknown.all()
    assert found.has_values.all()
    assert (found.low <= found.high).all()
