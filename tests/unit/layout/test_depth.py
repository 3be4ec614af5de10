"""Overlaps and depths, held against counting pair by pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.layout import depth
from dbt.adapters.zlayout.layout.depth import (
    box_overlap,
    depth_histogram,
    interval_overlap,
    is_deeper,
    overlap_depth,
)

NOWHERE = np.zeros(0, np.int64)


def ranks(*values):
    return np.array(values, np.int64)


def boxes_of(columns):
    """Boxes of up to so many columns, as ``(low, high) …, partition``."""
    side = st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda each: (each[0], each[0] + each[1]))
    return st.lists(st.tuples(*[side] * columns, st.integers(0, 2)), min_size=1, max_size=40)


def arrays_of(boxes, columns):
    lows = [ranks(*(box[number][0] for box in boxes)) for number in range(columns)]
    highs = [ranks(*(box[number][1] for box in boxes)) for number in range(columns)]
    return lows, highs, ranks(*(box[-1] for box in boxes))


def meet(one, other):
    sides = zip(one[:-1], other[:-1], strict=True)
    return one[-1] == other[-1] and all(a[0] <= b[1] and b[0] <= a[1] for a, b in sides)


@settings(deadline=None)
@given(boxes_of(1))
def test_the_overlap_along_a_column_equals_counting(files):
    lows, highs, partition = arrays_of(files, 1)
    found = interval_overlap(lows[0], highs[0], partition)
    overlaps = [sum(meet(each, other) for other in files) - 1 for each in files]
    depths = [
        max(sum(meet(((at, at), each[-1]), other) for other in files) for at in range(each[0][0], each[0][1] + 1))
        for each in files
    ]
    assert found.average_overlaps == pytest.approx(sum(overlaps) / len(files))
    assert found.average_depth == pytest.approx(sum(depths) / len(files))
    assert {top: count for top, count in found.depth_histogram.items() if count and top <= 16} == {
        each: depths.count(each) for each in set(depths) if each <= 16
    }
    assert (found.measured_files, found.depth_error) == (len(files), 0.0)


@pytest.mark.parametrize("columns", [1, 2, 3])
@settings(deadline=None)
@given(data=st.data())
def test_the_overlap_of_boxes_equals_counting_pairs(columns, data):
    files = data.draw(boxes_of(columns))
    found = box_overlap(*arrays_of(files, columns))
    overlaps = [sum(meet(each, other) for other in files) - 1 for each in files]
    assert found.average_overlaps == pytest.approx(sum(overlaps) / len(files))
    assert found.average_depth == pytest.approx(sum(overlaps) / len(files) + 1)
    assert sum(found.depth_histogram.values()) == len(files)


@settings(max_examples=25, deadline=None)
@given(boxes_of(2))
def test_pairs_that_come_in_batches_are_all_counted(files):
    whole = box_overlap(*arrays_of(files, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(depth, "_PAIRS_AT_ONCE", 3)
        assert box_overlap(*arrays_of(files, 2)) == whole


def test_a_sample_tells_how_far_it_may_be_off(monkeypatch):
    rng = np.random.default_rng(5)
    low = [rng.integers(0, 10_000, 3_000) for _ in range(2)]
    high = [each + rng.integers(0, 2_000, 3_000) for each in low]
    exact = box_overlap(low, high, np.zeros(3_000, np.int64))
    monkeypatch.setattr(depth, "_MOST_PAIRS", 10_000)
    sampled = box_overlap(low, high, np.zeros(3_000, np.int64))
    assert (exact.measured_files, exact.depth_error) == (3_000, 0.0)
    assert sampled.measured_files == 512
    assert 0 < sampled.depth_error < 0.1 * exact.average_depth
    assert abs(sampled.average_depth - exact.average_depth) < 1.5 * sampled.depth_error
    assert sum(sampled.depth_histogram.values()) == 512


def test_a_sample_has_its_share_of_wide_files(monkeypatch):
    monkeypatch.setattr(depth, "_MOST_PAIRS", 10_000)
    rng = np.random.default_rng(7)
    cells = np.arange(6_400)
    wide = rng.random(len(cells)) < 0.02
    lows = [np.where(wide, 0, cell) for cell in (cells % 80, cells // 80)]
    highs = [np.where(wide, 79, cell) for cell in (cells % 80, cells // 80)]
    found = box_overlap(lows, highs, np.zeros(len(cells), np.int64))
    others = int(wide.sum())
    expected = (others * len(cells) + (len(cells) - others) * (others + 1)) / len(cells)
    assert found.measured_files == 512
    assert abs(found.average_depth - expected) <= found.depth_error < 0.15 * expected


def test_files_of_many_partitions_are_all_measured():
    count = 20_000
    partition = np.arange(count) // 20
    found = box_overlap([np.zeros(count, np.int64)], [np.ones(count, np.int64)], partition)
    assert (found.average_depth, found.measured_files) == (20.0, count)
    assert interval_overlap(np.zeros(count, np.int64), np.ones(count, np.int64), partition).average_depth == 20.0


def test_boxes_without_columns_are_as_large_as_their_partition():
    assert box_overlap([], [], ranks(0, 0, 1)).average_depth == pytest.approx((2 + 2 + 1) / 3)


def test_no_files_have_no_depth():
    for none in (interval_overlap(NOWHERE, NOWHERE, NOWHERE), box_overlap([NOWHERE], [NOWHERE], NOWHERE)):
        assert (none.average_overlaps, none.average_depth, none.measured_files) == (0.0, 0.0, 0)
    assert overlap_depth([], [], np.zeros(0, bool), NOWHERE) == 0.0


def test_the_buckets_of_the_histogram_double_from_sixteen_on():
    found = depth_histogram(ranks(1, 1, 16, 17, 32, 33, 100))
    assert {top: count for top, count in found.items() if count} == {1: 2, 16: 1, 32: 2, 64: 1, 128: 1}
    assert list(found) == [*range(17), 32, 64, 128]
    assert list(depth_histogram(ranks(1))) == list(range(17))


def test_a_dictionary_spells_the_buckets_as_snowflake_does():
    found = interval_overlap(ranks(0, 0), ranks(1, 1), ranks(0, 0)).to_dict()
    assert found["depth_histogram"]["00002"] == 2
    assert list(found["depth_histogram"])[-1] == "00016"


def test_the_depth_of_a_run_takes_values_as_they_are():
    low, high = np.array([b"a", b"c", b"x"]), np.array([b"b", b"d", b"z"])
    numbers = np.array([-(2**63), 5, 5]), np.array([4, 2**63 - 1, 5])
    none = np.zeros(3, bool)
    assert overlap_depth([low], [high], none, ranks(0, 0, 0)) == 1.0
    assert overlap_depth([numbers[0]], [numbers[1]], none, ranks(0, 0, 0)) == pytest.approx((1 + 2 + 2) / 3)
    assert overlap_depth([low, numbers[0]], [high, numbers[1]], none, ranks(0, 0, 0)) == 1.0


def test_a_file_without_bounds_meets_every_file_of_its_partition():
    low, high = ranks(0, 10, 0, 0), ranks(9, 19, 0, 0)
    unknown = np.array([False, False, True, False])
    assert overlap_depth([low], [high], unknown, ranks(0, 0, 0, 1)) == pytest.approx((2 + 2 + 3 + 1) / 4)


@pytest.mark.parametrize("at_once", [1, 1 << 20])
@settings(deadline=None)
@given(data=st.data())
def test_files_in_the_place_of_others_are_deeper_by_counting_each_for_those_that_went(at_once, data):
    files = [(*each[:-1], 0) for each in data.draw(boxes_of(2))]
    numbers = st.integers(0, len(files) - 1)
    gone = sorted(data.draw(st.sets(numbers, min_size=1)))
    came = sorted(data.draw(st.sets(numbers, min_size=1)) - set(gone)) or gone
    stay = [each for number, each in enumerate(files) if number not in {*gone, *came}]
    before, after = (stay + [files[number] for number in some] for some in (gone, came))
    depths = [[sum(meet(each, other) for other in there) for each in there] for there in (before, after)]
    weight = len(gone) / len(came)
    weighted = sum(depths[1][: len(stay)]) + weight * sum(depths[1][len(stay) :])
    lows, highs, _ = arrays_of(files, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(depth, "_PAIRS_AT_ONCE", at_once)
        found = is_deeper(lows, highs, ranks(*gone), ranks(*came))
    assert found == (weighted > sum(depths[0]) + 1e-6)


def test_runs_of_a_z_order_that_are_no_rectangles_lie_deeper_and_neighbours_do_not():
    # Four quarters, then the first with the last as one file, and the first with its neighbour.
    lows, highs = [ranks(0, 0, 5, 5, 0, 0), ranks(0, 5, 0, 5, 0, 0)], [ranks(4, 4, 9, 9, 9, 4), ranks(4, 9, 4, 9, 9, 9)]
    across, along = ([each[[0, 1, 2, 3, number]] for each in lows] for number in (4, 5))
    up_across, up_along = ([each[[0, 1, 2, 3, number]] for each in highs] for number in (4, 5))
    assert is_deeper(across, up_across, ranks(0, 3), ranks(4))
    assert not is_deeper(along, up_along, ranks(0, 1), ranks(4))
