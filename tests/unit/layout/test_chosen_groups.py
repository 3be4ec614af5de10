"""What a plan takes, and what it leaves alone."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.zlayout.config.clustering import ReclusteringConfig
from dbt.adapters.zlayout.layout.chosen_groups import Candidates, pack_groups, packs_of, plan_groups
from dbt.adapters.zlayout.layout.cost import CostModel
from dbt.adapters.zlayout.layout.key_space import Boxes

TARGET = 1000
MODEL = CostModel.of(TARGET, 1800, 2, "zorder")


def grid(side):
    """side² files that part the space evenly."""
    edges = np.arange(side) / side
    x, y = (each.ravel() for each in np.meshgrid(edges, edges))
    return Boxes(np.stack([x, y]), np.stack([x, y]) + 1 / side)


def plus(boxes, *more):
    low = [[each[0] for each in more], [each[1] for each in more]]
    high = [[each[2] for each in more], [each[3] for each in more]]
    return Boxes(np.hstack([boxes.low, low]), np.hstack([boxes.high, high]))


def plan(boxes, sizes=None, partition=None, eligible=None, model=MODEL, as_built=None, **changed):
    count = boxes.low.shape[1]
    sizes = np.full(count, TARGET) if sizes is None else np.array(sizes)
    partition = np.zeros(count, np.int64) if partition is None else np.array(partition)
    eligible = np.ones(count, bool) if eligible is None else eligible
    return plan_groups(Candidates(boxes, sizes, partition, eligible, as_built), model, ReclusteringConfig(**changed))


def everywhere(count):
    return Boxes(np.zeros((2, count)), np.ones((2, count)))


def test_a_good_layout_is_left_alone():
    assert plan(grid(10)) == []


def test_a_layout_is_good_that_has_no_cut_for_the_third_key():
    sides = (8, 8, 1)
    corners = np.stack([each.ravel() / side for each, side in zip(np.indices(sides), sides, strict=True)])
    boxes = Boxes(corners, corners + 1 / np.array(sides)[:, None])
    # Cuts for all three alike would save two fifths.
    assert plan(boxes, model=CostModel.of(TARGET, 1800, 3, "zorder"), min_gain=0.25) == []


def test_a_table_without_order_is_rewritten_as_a_whole():
    (group,) = plan(everywhere(64))
    assert group.files.tolist() == list(range(64))
    assert group.reason == "overlap"
    assert group.gain / group.cost == pytest.approx(1 - 1 / 8, abs=0.01)


def test_appended_files_across_a_good_layout_are_clustered_among_themselves():
    appended = [(0, 0, 1, 1)] * 9
    (group,) = plan(plus(grid(20), *appended))
    assert group.files.tolist() == list(range(400, 409))


def test_new_files_are_merged_with_those_that_they_overlap_only():
    # Sixteen files that have all of the one corner of a grid of sixteen by sixteen.
    corner = [(0, 0, 0.25, 0.25)] * 16
    groups = plan(plus(grid(16), *corner))
    taken = np.concatenate([group.files for group in groups])
    boxes = plus(grid(16), *corner)
    assert set(range(256, 272)) <= set(taken.tolist())
    assert boxes.high[:, taken].max() <= 0.25 + 1e-9


@pytest.mark.parametrize("budget", [3_000, 10_000, 30_000])
def test_a_budget_is_kept_and_used(budget):
    groups = plan(everywhere(64), max_bytes=budget)
    spent = TARGET * sum(len(group.files) for group in groups)
    assert budget / 2 <= spent <= budget


def test_partitions_are_planned_apart():
    groups = plan(everywhere(20), partition=[0, 1] * 10)
    assert sorted(group.files.tolist() for group in groups) == [list(range(0, 20, 2)), list(range(1, 20, 2))]


def test_only_files_that_may_be_rewritten_are():
    eligible = np.arange(20) < 10
    (group,) = plan(everywhere(20), eligible=eligible)
    assert group.files.tolist() == list(range(10))


def test_small_neighbours_are_put_together():
    groups = plan(grid(10), sizes=[100] * 100)
    assert {group.reason for group in groups} == {"small"}
    assert sum(len(group.files) for group in groups) == 100
    assert all(5 <= len(group.files) <= 11 for group in groups)


def test_a_few_small_files_are_left_alone():
    assert plan(grid(2), sizes=[100] * 4) == []
    assert [len(group.files) for group in plan(grid(2), sizes=[100] * 4, min_input_files=4)] == [4]


@pytest.mark.parametrize("size", [90, 450, 2_900])
def test_files_of_the_last_build_are_of_the_size_that_they_were_cut_for(size):
    assert plan(grid(10), sizes=[size] * 100, as_built=np.ones(100, bool)) == []
    limits = {"min_file_bytes": 900} if size < TARGET else {"max_file_bytes": 1_800}
    assert plan(grid(10), sizes=[size] * 100, as_built=np.ones(100, bool), **limits)


def test_files_of_the_last_build_join_small_ones_but_are_no_reason():
    (group,) = plan(grid(3), sizes=[90] * 9, as_built=np.arange(9) < 4)
    assert len(group.files) == 9
    assert plan(grid(3), sizes=[90] * 9, as_built=np.arange(9) < 5) == []


def test_what_packing_makes_is_never_packed_again():
    assert plan(grid(10), sizes=[760] * 100) == []


def test_a_large_file_is_split():
    (group,) = plan(Boxes(np.zeros((2, 1)), np.ones((2, 1))), sizes=[5_000])
    assert (group.reason, group.files.tolist()) == ("large", [0])
    assert [file for group in plan(grid(2), sizes=[1, 1, 5_000, 1]) for file in group.files if file == 2] == [2]


def test_all_files_are_rewritten_when_asked_for_in_groups_that_are_not_too_large():
    groups = plan(grid(10), rewrite_all=True, max_group_bytes=25_000)
    assert sorted(np.concatenate([group.files for group in groups]).tolist()) == list(range(100))
    assert all(len(group.files) <= 26 for group in groups)


def test_a_table_without_keys_is_packed_only():
    nothing = Boxes(np.zeros((0, 12)), np.zeros((0, 12)))
    (group,) = plan(nothing, sizes=[80] * 12, model=CostModel.of(TARGET, 1800, 0, "zorder"))
    assert (group.reason, len(group.files)) == ("small", 12)


def test_runs_along_the_first_key_are_good_for_a_linear_curve_only():
    edges = np.arange(64) / 64
    runs = Boxes(np.stack([edges, np.zeros(64)]), np.stack([edges + 1 / 64, np.ones(64)]))
    assert plan(runs, model=CostModel.of(TARGET, 1800, 2, "linear")) == []
    assert sum(len(group.files) for group in plan(runs)) == 64


def test_finer_files_are_no_reason():
    assert plan(grid(10), sizes=[1_400] * 100) == []


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_put_together(count):
    assert plan(everywhere(count)) == []


def test_many_files_are_planned_in_vectors():
    boxes = plus(grid(100), *[(0, 0, 1, 1)] * 20)
    (group,) = plan(boxes)
    assert group.files.tolist() == list(range(10_000, 10_020))


@given(sizes=st.lists(st.integers(1, 2 * TARGET), max_size=40))
def test_packs_keep_the_order_fit_the_target_and_leave_no_room_for_the_next_file(sizes):
    sizes = np.array(sizes, np.int64)
    packs = packs_of(sizes, TARGET)
    assert [each for pack in packs for each in pack.tolist()] == list(range(len(sizes)))
    assert all(sizes[pack].sum() <= TARGET or len(pack) == 1 for pack in packs)
    assert all(sizes[pack].sum() + sizes[after[0]] > TARGET for pack, after in pairwise(packs))


def packed(sizes, partition=None, eligible=None, as_built=None, boxes=None, **changed):
    boxes = Boxes(np.zeros((0, len(sizes))), np.zeros((0, len(sizes)))) if boxes is None else boxes
    partition = np.zeros(len(sizes), np.int64) if partition is None else np.array(partition)
    eligible = np.ones(len(sizes), bool) if eligible is None else np.array(eligible)
    candidates = Candidates(boxes, np.array(sizes, np.int64), partition, eligible, as_built)
    return pack_groups(candidates, TARGET, ReclusteringConfig(**changed))


def files_in(groups):
    return [group.files.tolist() for group in groups]


def test_small_files_are_packed_within_their_partition_and_others_stay():
    assert files_in(packed([400, 900, 500, 100, 450, 450], partition=[0, 0, 0, 0, 1, 1])) == [[0, 2, 3], [4, 5]]
    assert files_in(packed([400, 500], eligible=[True, False])) == []
    # Neither many nor enough for a file.
    assert files_in(packed([100] * 4)) == []
    assert files_in(packed([100] * 5)) == [[0, 1, 2, 3, 4]]
    assert files_in(packed([100] * 2, min_input_files=2)) == [[0, 1]]


def test_a_packed_file_is_not_packed_again_with_a_few_small_ones():
    assert files_in(packed([600, 100, 100])) == []
    assert files_in(packed([300, 300, 300])) == [[0, 1, 2]]
    assert files_in(packed([600, 100, 100, 50, 50])) == [[0, 1, 2, 3, 4]]


def test_files_of_the_last_build_are_no_reason_to_pack():
    built = np.array([True, True, False])
    assert files_in(packed([400, 450, 50], as_built=np.ones(3, bool))) == []
    assert files_in(packed([400, 450, 50], as_built=built)) == [[0, 1, 2]]
    assert files_in(packed([400, 450, 50], as_built=np.ones(3, bool), min_file_bytes=750)) == [[0, 1, 2]]


def test_a_file_that_stays_does_not_keep_its_neighbours_apart():
    # 700 and 740 fit with neither neighbour.
    assert files_in(packed([400, 700, 500], min_input_files=99)) == []
    assert files_in(packed([260, 240, 740, 300, 160, 100], min_input_files=99)) == [[0, 1, 3, 4]]


def test_neighbours_on_the_curve_are_packed_together():
    low = np.array([[0.0, 0.9, 0.05, 0.95]])
    assert files_in(packed([400] * 4, boxes=Boxes(low, low + 0.01))) == [[0, 2, 1, 3]]


def test_packing_again_and_again_ends():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, TARGET, 300).tolist()
    for _ in range(10):
        groups = packed(sizes)
        if not groups:
            break
        gone = {file for group in groups for file in group.files.tolist()}
        new = [sum(sizes[file] for file in pack) for g in groups for pack in _packs(g, sizes)]
        assert len(new) < len(gone)
        sizes = [*(size for file, size in enumerate(sizes) if file not in gone), *new]
    assert not packed(sizes)


def _packs(group, sizes):
    return [group.files[pack].tolist() for pack in packs_of(np.array(sizes)[group.files], TARGET)]


def test_rewrite_all_packs_every_file_and_the_budget_counts_new_files():
    sizes = [100, 2500, 900, 100]
    assert files_in(packed(sizes, rewrite_all=True)) == [[0, 1, 2, 3]]
    assert files_in(packed([450] * 6, max_bytes=2000)) == [[0, 1, 2, 3]]
    assert files_in(packed([450] * 6, max_group_bytes=1000)) == [[0, 1], [2, 3], [4, 5]]
