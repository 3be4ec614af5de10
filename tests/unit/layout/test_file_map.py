"""The layout map: where files lie among the rows, which files a sample holds, and the texts of bounds."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
from measured_files import bounds, files, statistics

from dbt.adapters.zlayout.layout.file_map import file_map


def mapped(pairs, kind=None, most=100, rows=None):
    kind = kind or pa.int64()
    rows = rows or [100] * len(pairs)
    return file_map(files(rows), statistics({("a",): bounds(kind, pairs)}, len(pairs)), {("a",): kind}, most)


def test_files_lie_where_their_rows_are_when_all_are_sorted():
    found = mapped([(10, 19), (0, 9), (20, 29), (0, 29)])
    (axis,) = found.axes
    assert found.positions.tolist() == [1, 3, 0, 2]
    assert (axis.start[1], axis.end[1]) == (0.0, 1.0)
    np.testing.assert_allclose(axis.start[[0, 2, 3]], [0, 1 / 3, 2 / 3], atol=0.01)
    assert (axis.lowest[2], axis.highest[2]) == ("10", "19")
    assert (axis.ticks[0], axis.ticks[-1]) == ("0", "29")


def test_a_sample_is_spread_evenly_and_counts_all_files():
    found = mapped([(number, number) for number in range(1000)], most=10)
    assert found.total_files == 1000
    assert (found.positions // 100).tolist() == list(range(10))
    assert len(found.files) == 10


def test_files_without_rows_are_left_out_and_positions_stay_those_of_the_table():
    found = mapped([(0, 1), (2, 3), (4, 5)], rows=[100, 0, 100])
    assert found.positions.tolist() == [0, 2]
    assert found.total_files == 2


def test_unknown_and_missing_values_have_no_text():
    found = mapped([(0, 1), "null", (None, None)])
    texts = dict(
        zip(found.positions.tolist(), zip(found.axes[0].lowest, found.axes[0].highest, strict=True), strict=True)
    )
    assert texts == {0: ("0", "1"), 1: ("", ""), 2: ("", "")}


def test_a_column_without_statistics_covers_everything():
    found = file_map(files([1, 1]), statistics({}, 2), {("a",): pa.int64()}, 10)
    assert found.axes[0].start.tolist() == [0, 0]
    assert found.axes[0].end.tolist() == [1, 1]
    assert set(found.axes[0].ticks) == {""}


def test_long_and_binary_values_are_cut_and_times_at_midnight_are_days():
    long = mapped([("x" * 100, "y")], pa.string())
    assert len(long.axes[0].lowest[0]) == 24
    assert mapped([(b"\x00\xff", b"\xff")], pa.binary()).axes[0].lowest[0] == "x'00ff'"
    times = mapped(
        [(dt.datetime.fromisoformat("2024-01-02"), dt.datetime.fromisoformat("2024-01-02 03:00"))], pa.timestamp("us")
    )
    assert (times.axes[0].lowest[0], times.axes[0].highest[0]) == ("2024-01-02", "2024-01-02 03:00:00")
