"""Files that random conditions read, held against conditions that are really drawn."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_files import bounds, statistics

from dbt.adapters.zlayout.layout import expected_reads
from dbt.adapters.zlayout.layout.expected_reads import files_of_a_range, files_of_a_row, row_ranges
from dbt.adapters.zlayout.layout.spans import spans_of, validated

X, INTEGERS = ("x",), pa.int64()
FILES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 100)), min_size=1, max_size=20)


def ranges(spans, kind=INTEGERS, rows=None):
    found = statistics({X: bounds(kind, spans)}, len(spans))
    rows = np.full(len(spans), 100) if rows is None else np.array(rows)
    return row_ranges(spans_of(validated(found, {X: kind})[X], kind, len(spans)), rows)


def test_rows_of_files_side_by_side_lie_side_by_side():
    found = ranges([(0, 9), (10, 19), (20, 29), (30, 39)])
    assert found.start == pytest.approx([0, 0.25, 0.5, 0.75])
    assert found.end == pytest.approx([0.25, 0.5, 0.75, 1])


def test_files_over_the_same_values_share_all_rows():
    found = ranges([(0, 9)] * 3)
    assert (found.start.tolist(), found.end.tolist()) == ([0, 0, 0], [1, 1, 1])
    assert files_of_a_range([found], 0.0) == 3


def test_a_point_reads_one_file_of_a_sorted_table_and_all_of_an_unsorted_one():
    assert files_of_a_range([ranges([(number * 10, number * 10 + 9) for number in range(50)])], 0.0) == pytest.approx(1)
    assert files_of_a_range([ranges([(0, 1000)] * 50)], 0.0) == pytest.approx(50)


def test_days_that_two_files_share_are_counted_by_their_share():
    # Two days a file, the second is also the next file's first: of 2 x 100 rows each, a day's rows are in two files.
    found = files_of_a_range([ranges([(number, number + 1) for number in range(100)], pa.int32())], 0.0)
    assert found == pytest.approx(2, abs=0.05)


def test_values_that_two_files_share_count_little_where_there_are_many_values():
    shared = [(number * 1000.0, number * 1000.0 + 1000.0) for number in range(100)]
    assert files_of_a_range([ranges(shared, pa.float64())], 0.0) == pytest.approx(1)


def test_a_value_that_fills_files_weighs_as_much_as_its_rows():
    # Half of the rows are 7, in five files; the others lie in five files side by side.
    found = ranges([(7, 7)] * 5 + [(100 * number, 100 * number + 99) for number in range(1, 6)])
    assert files_of_a_range([found], 0.0) == pytest.approx(0.5 * 5 + 0.5 * 1)


def test_files_of_nulls_are_not_read_and_unknown_ones_always():
    with_nulls = ranges([(0, 9), (10, 19), "null"])
    assert files_of_a_range([with_nulls], 0.0) == pytest.approx(1)
    assert files_of_a_range([with_nulls], 0.1) == pytest.approx(1 + 0.1 / 0.9)
    with_unknown = ranges([(0, 9), (10, 19), (None, None)])
    assert files_of_a_range([with_unknown], 0.0) == pytest.approx(2)
    assert files_of_a_range([ranges([(None, None)] * 4)], 0.1) == 4
    assert files_of_a_range([ranges(["null"] * 4)], 0.1) == 0
    assert files_of_a_row([ranges(["null"] * 4)] * 2, np.full(4, 100)) == 0


def test_a_range_reads_the_files_that_it_touches():
    found = ranges([(number * 10, number * 10 + 9) for number in range(100)])
    # A tenth of the rows begins anywhere in the first 90 %: ten files and, nearly always, one more.
    assert files_of_a_range([found], 0.1) == pytest.approx(11, abs=0.1)
    assert files_of_a_range([found, found], 0.1) < files_of_a_range([found], 0.1)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 100)), min_size=1, max_size=20), st.sampled_from([0.01, 0.1])
)
def test_a_range_reads_what_drawn_ranges_read(spans, fraction):
    found = ranges([(low, low + width) for low, width in spans])
    starts = (np.arange(20_000) + 0.5) / 20_000 * (1 - fraction)
    read = (starts[:, None] <= found.end) & (starts[:, None] + fraction >= found.start)
    assert files_of_a_range([found], fraction) == pytest.approx(read.sum(axis=1).mean(), abs=0.01)


@settings(deadline=None)
@given(FILES)
def test_rows_lie_between_nothing_and_everything_and_a_row_reads_its_file(spans):
    found = ranges([(low, low + width) for low, width in spans])
    assert ((found.start >= 0) & (found.start <= found.end) & (found.end <= 1)).all()
    read = files_of_a_range([found], 0.0)
    assert 1 - 1e-9 <= read <= len(spans) + 1e-9
    # A row's value in one column, asked for in that column alone.
    assert files_of_a_row([found], np.full(len(spans), 100)) >= 1 - 1e-9


def grid(side):
    cells = [(10 * a, 10 * a + 9, 10 * b, 10 * b + 9) for a in range(side) for b in range(side)]
    return [ranges([each[:2] for each in cells]), ranges([each[2:] for each in cells])], np.full(len(cells), 100)


def test_a_row_of_a_grid_is_in_one_file_and_a_column_of_it_in_a_whole_line():
    columns, rows = grid(8)
    assert files_of_a_row(columns, rows) == pytest.approx(1)
    assert files_of_a_range(columns[:1], 0.0) == pytest.approx(8)


def test_rows_of_many_files_are_a_sample_of_them():
    columns, rows = grid(40)
    assert len(rows) > expected_reads._PROBES
    assert files_of_a_row(columns, rows) == pytest.approx(1)
    twice = [
        expected_reads.RowRanges(*(np.concatenate([part, part]) for part in vars(each).values())) for each in columns
    ]
    assert files_of_a_row(twice, np.concatenate([rows, rows])) == pytest.approx(2)


def test_files_that_all_meet_are_not_looked_at_without_end(monkeypatch):
    count = 2_000
    shifted = [ranges([(number, 4 * count + number) for number in range(count)])] * 2
    rows = np.full(count, 100)
    every = files_of_a_row(shifted, rows)
    monkeypatch.setattr(expected_reads, "_ENOUGH_PAIRS", 1)
    assert files_of_a_row(shifted, rows) == pytest.approx(every, rel=0.02)


def test_the_row_of_a_large_file_is_drawn_more_often():
    # Ninety percent of the rows are where two files lie on each other.
    columns = [ranges([(0, 9), (0, 9), (10, 19)])] * 2
    assert files_of_a_row(columns, np.array([450, 450, 100])) == pytest.approx(0.9 * 2 + 0.1)
