"""Intervals on the curve hold every row of their file, whatever its nulls, NaN and unknown bounds."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.index.statistics.aligned import AlignedStatistics
from dbt.adapters.zlayout.layout.measures.curve_intervals import curve_intervals
from dbt.adapters.zlayout.layout.measures.spans import validated
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds

TYPES = {("a",): pa.int64(), ("b",): pa.float64()}
ROWS = st.tuples(
    st.one_of(st.none(), st.integers(0, 40)), st.one_of(st.none(), st.just(math.nan), st.floats(-5, 5, width=16))
)
FILES = st.lists(st.lists(ROWS, min_size=1, max_size=8), min_size=1, max_size=8)


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
