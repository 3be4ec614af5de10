"""Files placed by the share of rows up to their bounds."""

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.curve.keys import comparable
from dbt.adapters.zlayout.layout.key_space import KeyBounds, boxes_of, fullest_bucket


def key(lows, highs, empty=None, kind=None):
    low, high = comparable(pa.array(lows, kind)), comparable(pa.array(highs, kind))
    return KeyBounds(low, high, np.zeros(len(lows), bool) if empty is None else np.array(empty))


def widths(*keys, rows=None, boundaries=()):
    count = len(keys[0].empty)
    return boxes_of(keys, np.full(count, 10) if rows is None else np.array(rows), boundaries).widths.round(6).tolist()


def test_files_side_by_side_are_read_by_their_share_of_the_queries():
    assert widths(key([0, 10, 20, 30], [9, 19, 29, 39])) == [[0.25, 0.25, 0.25, 0.25]]


def test_rows_weigh_and_not_the_distance_between_values():
    assert widths(key([0, 10], [9, 1_000_000]), rows=[30, 10]) == [[0.75, 0.25]]


def test_a_file_across_all_others_is_read_by_all_queries():
    (found,) = widths(key([0, 0, 50], [100, 49, 100]))
    assert found[0] == 1.0
    assert found[1] == pytest.approx(0.495, abs=0.01)


def test_queries_for_a_heavy_value_read_each_file_that_has_it():
    assert widths(key([7, 7, 7, 8], [7, 7, 7, 8])) == [[0.75, 0.75, 0.75, 0.25]]


def test_an_unknown_file_is_read_always_and_one_of_nulls_never():
    assert widths(key([0, None, None], [9, None, None], [False, False, True])) == [[1.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("lows", "highs", "kind"),
    [
        (["a", "k", "t"], ["j", "s", "z"], pa.string()),
        ([b"\x00", b"\x50", b"\xa0"], [b"\x4f", b"\x9f", b"\xff"], pa.binary()),
        ([-2.5, 0.0, float("1e300")], [-1.0, 5.0, float("inf")], pa.float64()),
        ([0, 86_400, 172_800], [86_399, 172_799, 259_199], pa.timestamp("s")),
    ],
)
def test_every_type_has_its_place(lows, highs, kind):
    (found,) = widths(key(lows, highs, kind=kind))
    assert found == pytest.approx([1 / 3] * 3, abs=1e-6)


def test_marks_say_where_rows_lie_between_far_bounds():
    skewed = key([0, 0], [1_000_000, 10])
    boundaries = comparable(pa.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]))
    (by_distance,), (by_boundaries,) = widths(skewed), widths(skewed, boundaries=[boundaries])
    assert by_distance[1] == pytest.approx(0.5, abs=0.01)
    assert by_boundaries[1] > 0.9


def test_no_files_have_no_boxes():
    assert widths(key([], [], kind=pa.int64())) == [[]]


def test_rows_beyond_the_marks_lie_in_one_bucket():
    boundaries = comparable(pa.array(range(0, 1000, 10)))
    within = key([0, 250, 500, 750], [249, 499, 749, 999])
    beyond = key([0, 500, 1000, 3000], [499, 999, 2999, 9999])
    rows = np.full(4, 100)
    assert fullest_bucket(within, rows, boundaries) < 0.03
    assert fullest_bucket(beyond, rows, boundaries) == pytest.approx(0.5, abs=0.02)


def test_a_single_value_is_no_bucket_that_could_be_parted():
    boundaries = comparable(pa.array([1, 2, 3]))
    assert fullest_bucket(key([2, 2], [2, 2]), np.array([10, 10]), boundaries) == 0.0
