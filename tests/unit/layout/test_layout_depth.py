import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.zlayout.layout.depth import overlap_depth


def test_files_that_share_no_point_have_depth_one():
    low, high = np.array([0, 10, 20]), np.array([9, 19, 29])
    assert overlap_depth([low], [high], np.zeros(3, bool), np.zeros(3, int)) == 1.0


def test_files_that_all_cover_the_same_range_have_the_depth_of_their_number():
    low, high = np.zeros(4, int), np.full(4, 9)
    assert overlap_depth([low], [high], np.zeros(4, bool), np.zeros(4, int)) == 4.0


def test_boxes_that_meet_in_one_key_only_do_not_overlap():
    first = (np.array([0, 0]), np.array([9, 9]))
    second = (np.array([0, 10]), np.array([9, 19]))
    assert overlap_depth([first[0], second[0]], [first[1], second[1]], np.zeros(2, bool), np.zeros(2, int)) == 1.0


def test_a_file_without_bounds_meets_every_file():
    low, high = np.array([0, 10, 0]), np.array([9, 19, 0])
    assert overlap_depth([low], [high], np.array([False, False, True]), np.zeros(3, int)) == pytest.approx(
        (2 + 2 + 3) / 3
    )


def test_no_files_have_no_depth():
    assert overlap_depth([], [], np.zeros(0, bool), np.zeros(0, int)) == 0.0


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=40))
def test_depth_equals_counting_pairs(spans):
    low = np.array([start for start, _ in spans])
    high = np.array([start + width for start, width in spans])
    pairs = sum(1 for a in range(len(low)) for b in range(len(low)) if low[a] <= high[b] and low[b] <= high[a])
    assert overlap_depth([low], [high], np.zeros(len(low), bool), np.zeros(len(low), int)) == pytest.approx(
        pairs / len(low)
    )


def test_files_of_different_partitions_share_nothing():
    low, high = np.zeros(4, int), np.full(4, 9)
    assert overlap_depth([low], [high], np.zeros(4, bool), np.array([0, 0, 1, 2])) == pytest.approx((2 + 2 + 1 + 1) / 4)
