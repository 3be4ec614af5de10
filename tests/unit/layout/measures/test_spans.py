"""The spans of files: bounds of every type as ranks, what is unknown, null or NaN, and their intervals on the curve."""

import math
from datetime import date, datetime, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_files import bounds, statistics

from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.index.statistics.column_stats import AlignedStatistics
from dbt.adapters.zlayout.layout.measures.spans import curve_intervals, spans_of, validated
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds

X = ("x",)
NAN = float("nan")
UTC = timezone.utc
TYPES = {("a",): pa.int64(), ("b",): pa.float64()}
ROWS = st.tuples(
    st.one_of(st.none(), st.integers(0, 40)), st.one_of(st.none(), st.just(math.nan), st.floats(-5, 5, width=16))
)
FILES = st.lists(st.lists(ROWS, min_size=1, max_size=8), min_size=1, max_size=8)


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


def model_of(rows, curve):
    sample = pa.table({"a": pa.array([a for a, _ in rows], pa.int64()), "b": pa.array([b for _, b in rows])})
    return CurveModel.build(
        sample.cast(pa.schema([("a", pa.int64()), ("b", pa.float64())])),
        list(TYPES),
        curve,
        total_rows=len(rows),
        bytes_per_row=10.0,
        target_file_bytes=1 << 20,
        row_group_rows=None,
    )


def facts_of(files, forgotten=()):
    """What the index knows of files; of those forgotten, no maximum."""
    columns = {}
    for number, (path, kind) in enumerate(TYPES.items()):
        values = [[row[number] for row in rows] for rows in files]
        known = [[each for each in some if each is not None and not math.isnan(each)] for some in values]
        yes = pa.repeat(True, len(files))
        columns[path] = ColumnBounds(
            type=kind,
            minimum=pa.array([min(some, default=None) for some in known], kind),
            maximum=pa.array(
                [None if at in forgotten else max(some, default=None) for at, some in enumerate(known)], kind
            ),
            minimum_exact=yes,
            maximum_exact=yes,
            null_count=pa.array([sum(each is None for each in some) for some in values]),
            nan_count=pa.array([sum(each is not None and math.isnan(each) for each in some) for some in values]),
        )
    statistics = AlignedStatistics(pa.array([len(rows) for rows in files]), columns)
    return list(validated(statistics, TYPES).values())


def intervals_of(model, files, forgotten=()):
    """The intervals, and the rank of each row among their ends is asked for by making each row a file of its own."""
    single = [[row] for rows in files for row in rows]
    low, high = curve_intervals(model, facts_of([*files, *single], set(forgotten) & set(range(len(files)))))
    count = len(files)
    rows = iter(zip(low[count:], high[count:], strict=True))
    return low[:count], high[:count], [[next(rows) for _ in some] for some in files]


@pytest.mark.parametrize("curve", ["zorder", "linear"])
@settings(deadline=None)
@given(files=FILES, forgotten=st.sets(st.integers(0, 7)))
def test_every_row_lies_in_the_interval_of_its_file(curve, files, forgotten):
    model = model_of([row for rows in files for row in rows], curve)
    low, high, rows = intervals_of(model, files, forgotten)
    for number, some in enumerate(rows):
        for first, last in some:
            assert first == last, "a row is at one place"
            assert low[number] <= first
            assert last <= high[number]


@settings(deadline=None)
@given(FILES)
def test_a_file_of_one_row_is_a_point(files):
    model = model_of([row for rows in files for row in rows], "zorder")
    low, high = curve_intervals(model, facts_of([[row] for rows in files for row in rows]))
    assert (low == high).all()


def test_a_maximum_that_is_unknown_reaches_to_the_end():
    files = [[(1, 1.0), (5, 2.0)], [(30, 4.0), (40, 5.0)]]
    model = model_of([row for rows in files for row in rows], "zorder")
    low, high = curve_intervals(model, facts_of(files, forgotten={0}))
    assert high[0] > high[1]
    assert low[0] < low[1]


def test_hilbert_has_no_intervals():
    rows = [(1, 1.0), (2, 2.0)]
    assert curve_intervals(model_of(rows, "hilbert"), facts_of([rows])) is None
    assert np.all(curve_intervals(model_of(rows, "zorder"), facts_of([rows]))[0] == 0)
