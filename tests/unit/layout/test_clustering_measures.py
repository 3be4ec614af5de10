"""All figures of a layout together."""

import json

import numpy as np
import pyarrow as pa
import pytest
from measured_files import bounds, files, statistics

from dbt.adapters.zlayout.index.statistics.column_stats import AlignedStatistics
from dbt.adapters.zlayout.layout.clustering_measures import clustering_measures

A, B = ("a",), ("s", "b c")
TYPES = {A: pa.int64(), B: pa.int64()}
SIDE = 4
ONE_PARTITION = np.zeros(SIDE * SIDE, np.int64)


def grid():
    """Files that are the cells of a grid."""
    cells = [(10 * a, 10 * a + 9, 10 * b, 10 * b + 9) for a in range(SIDE) for b in range(SIDE)]
    return statistics(
        {A: bounds(pa.int64(), [each[:2] for each in cells]), B: bounds(pa.int64(), [each[2:] for each in cells])},
        len(cells),
    )


def test_a_grid_has_no_overlap_in_all_columns_and_a_line_of_it_in_one():
    found = clustering_measures(files([100] * 16), grid(), TYPES, ONE_PARTITION)
    assert (found.files, found.rows, found.bytes, found.partitions) == (16, 1600, 160, 1)
    assert (found.average_overlaps, found.average_depth, found.constant_files) == (0.0, 1.0, 0)
    assert found.depth_histogram[1] == 16
    assert found.expected_files["point"] == pytest.approx(1)
    one = found.column("s.`b c`")
    assert (one.overlap.average_overlaps, one.overlap.average_depth) == (SIDE - 1, SIDE)
    assert one.expected_files["point"] == pytest.approx(SIDE)
    assert one.expected_files["range_10_percent"] > one.expected_files["range_1_percent"] > SIDE
    assert found.columns == ("a", "s.`b c`")


def test_partitions_share_nothing_but_are_all_read():
    found = clustering_measures(files([100] * 4), some([(0, 9)] * 4), {A: TYPES[A]}, np.array([0, 0, 1, 1]))
    assert (found.average_depth, found.partitions) == (2.0, 2)
    assert found.column("a").expected_files["point"] == 4


def some(spans, **counts):
    return statistics({A: bounds(pa.int64(), spans, **counts)}, len(spans))


def test_constant_files_are_alike_in_every_column():
    both = statistics(
        {A: bounds(pa.int64(), [(1, 1), (2, 2), "null"]), B: bounds(pa.int64(), [(1, 1), (2, 3), (4, 4)])}, 3
    )
    found = clustering_measures(files([100] * 3), both, TYPES, np.zeros(3, np.int64))
    assert found.constant_files == 2
    assert [each.constant_files for each in found.by_column] == [3, 2]


def test_files_without_rows_count_but_are_not_measured():
    bounds_of_two = bounds(pa.int64(), [(0, 9), (None, None), (0, 9)])
    found = clustering_measures(
        files([100, 0, 100]),
        AlignedStatistics(pa.array([100, 0, 100]), {A: bounds_of_two}),
        {A: pa.int64()},
        np.zeros(3, np.int64),
    )
    assert (found.files, found.overlap.measured_files, found.average_depth) == (3, 2, 2.0)
    assert found.column("a").unknown_files == 0


def test_an_empty_table_has_no_depth():
    found = clustering_measures(files([]), some([]), {A: pa.int64()}, np.zeros(0, np.int64))
    assert (found.files, found.partitions, found.average_depth) == (0, 0, 0.0)
    assert found.expected_files == {"point": 0.0, "range_1_percent": 0.0, "range_10_percent": 0.0}


def test_a_column_that_nothing_is_known_of_is_in_all_files():
    found = clustering_measures(files([100] * 5), statistics({}, 5), {A: pa.int64()}, np.zeros(5, np.int64))
    assert (found.average_depth, found.column("a").unknown_files) == (5.0, 5)
    assert found.expected_files["point"] == 5


@pytest.mark.parametrize("name", ["curve_intervals", "curve_interval_depth"])
def test_figures_of_the_curve_are_gone_but_their_names_still_answer(name):
    found = clustering_measures(files([100] * 16), grid(), TYPES, ONE_PARTITION)
    with pytest.warns(DeprecationWarning, match=f"^{name}: not measured any more"):
        assert getattr(found, name) is None
    assert found.to_dict()[name] is None


def test_a_dictionary_is_json():
    found = clustering_measures(files([100] * 16), grid(), TYPES, ONE_PARTITION).to_dict()
    again = json.loads(json.dumps(found))
    assert again == found
    assert again["depth_histogram"]["00001"] == 16
    assert [each["column"] for each in again["by_column"]] == ["a", "s.`b c`"]
    assert set(again["expected_files"]) == {"point", "range_1_percent", "range_10_percent"}
