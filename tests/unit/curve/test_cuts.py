from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dbt.adapters.zlayout.curve.cuts import Tree, build_tree
from dbt.adapters.zlayout.curve.query_boxes import QueryRanks

RNG = np.random.default_rng(11)


def uniform(rows: int, *tops: int) -> list[npt.NDArray[np.uint16]]:
    return [RNG.integers(1, top + 1, rows).astype(np.uint16) for top in tops]


def rows_per_file(tree: Tree, ranks: list[npt.NDArray[np.uint16]]) -> npt.NDArray[np.intp]:
    return np.bincount(tree.file_of_leaf[tree.leaf_of(ranks)], minlength=tree.file_count)


@pytest.mark.parametrize("files", [1, 2, 3, 7, 45, 100])
def test_any_number_of_files_comes_out_even(files: int) -> None:
    ranks = uniform(50_000, 1000, 1000)
    tree = build_tree(ranks, files, 1)
    counts = rows_per_file(tree, ranks)
    assert tree.file_count == tree.leaf_count == files
    assert counts.max() <= 1.15 * counts.mean()
    assert counts.min() >= 0.85 * counts.mean()


def test_files_are_rectangles_that_do_not_overlap() -> None:
    ranks = uniform(20_000, 500, 500)
    file = build_tree(ranks, 16, 1).leaf_of(ranks)
    boxes = [[(each[file == f].min(), each[file == f].max()) for each in ranks] for f in range(16)]
    for f, box in enumerate(boxes):
        inside = np.logical_and.reduce(
            [(each >= low) & (each <= high) for each, (low, high) in zip(ranks, box, strict=True)]
        )
        assert (file[inside] == f).all()


def test_leaves_of_a_file_are_neighbours_and_files_rise_with_leaves() -> None:
    ranks = uniform(50_000, 1000, 1000)
    tree = build_tree(ranks, 10, 8)
    assert tree.leaf_count == 80
    assert tree.file_of_leaf.tolist() == np.repeat(np.arange(10), 8).tolist()


def test_cutting_row_groups_does_not_move_the_file_cuts() -> None:
    ranks = uniform(50_000, 1000, 1000)
    coarse, fine = build_tree(ranks, 13, 1), build_tree(ranks, 13, 5)
    assert (coarse.leaf_of(ranks) == fine.file_of_leaf[fine.leaf_of(ranks)]).all()


def test_a_column_of_one_rank_is_never_cut() -> None:
    ranks = [np.full(10_000, 7, np.uint16), *uniform(10_000, 100)]
    assert set(build_tree(ranks, 8, 4).column.tolist()) == {1}


def test_a_wide_column_whose_cuts_are_far_from_the_middle_is_passed_over() -> None:
    lopsided = np.where(RNG.random(10_000) < 0.8, 500, RNG.integers(1, 1000, 10_000)).astype(np.uint16)
    tree = build_tree([lopsided, *uniform(10_000, 4)], 2, 1)
    assert tree.column.tolist() == [1]


def test_a_value_in_nine_of_ten_rows_is_one_leaf_that_says_how_large_it_is() -> None:
    ranks = [np.where(RNG.random(20_000) < 0.9, 50, RNG.integers(1, 100, 20_000)).astype(np.uint16)]
    tree = build_tree(ranks, 10, 4)
    leaf = tree.leaf_of(ranks)
    heavy = np.unique(leaf[ranks[0] == 50])
    assert len(heavy) == 1
    assert (ranks[0][leaf == heavy[0]] == 50).all()
    assert 8.8 < tree.leaf_size[heavy[0]] < 9.2
    assert abs(tree.leaf_size.sum() - 10) < 1e-9


def test_fewer_distinct_values_than_files_give_a_file_each() -> None:
    ranks = uniform(3000, 3)
    tree = build_tree(ranks, 20, 4)
    assert tree.file_count == 3
    assert (tree.leaf_of(ranks) == ranks[0] - 1).all()


@pytest.mark.parametrize("rows", [0, 1])
def test_no_row_or_one_row_gives_one_leaf(rows: int) -> None:
    tree = build_tree([np.ones(rows, np.uint16)], 8, 4)
    assert (tree.file_count, tree.leaf_count) == (1, 1)
    assert tree.leaf_of([np.array([0, 9], np.uint16)]).tolist() == [0, 0]
    assert tree.leaf_of([np.array([], np.uint16)]).tolist() == []


def test_only_nulls_give_one_leaf() -> None:
    assert build_tree([np.zeros(100, np.uint16)] * 2, 8, 4).leaf_count == 1


def test_nulls_can_be_cut_off() -> None:
    ranks = [np.array([0] * 500 + [1] * 500, np.uint16)]
    assert build_tree(ranks, 2, 1).leaf_of([np.array([0, 1], np.uint16)]).tolist() == [0, 1]


def test_linear_leaves_are_runs_of_the_lexicographic_order() -> None:
    ranks = uniform(30_000, 5, 1000)
    tree = build_tree(ranks, 12, 3, linear=True)
    order = np.lexsort((ranks[1], ranks[0]))
    assert (np.diff(tree.leaf_of(ranks)[order]) >= 0).all()
    assert tree.file_count == 12


def test_a_long_chain_of_heavy_values_builds_and_is_walked() -> None:
    weights = 0.97 ** np.arange(2000)
    ranks = [np.repeat(np.arange(2000), np.ceil(weights * 50).astype(int)).astype(np.uint16)]
    tree = build_tree(ranks, 1900, 2, linear=True)
    assert (np.diff(tree.leaf_of(ranks)) >= 0).all()


def test_rows_beyond_one_block_go_where_single_rows_go() -> None:
    ranks = uniform(70_000, 300, 300)
    tree = build_tree(ranks, 9, 3)
    together = tree.leaf_of(ranks)
    picked = RNG.integers(0, 70_000, 200)
    assert together[picked].tolist() == [int(tree.leaf_of([each[[row]] for each in ranks])[0]) for row in picked]


def test_the_first_two_keys_are_cut_alike_and_the_others_less() -> None:
    ranks = uniform(200_000, 10_000, 10_000, 10_000, 10_000)
    file = build_tree(ranks, 256, 1).leaf_of(ranks)
    widths = [np.mean([np.ptp(each[file == number].astype(int)) for number in range(256)]) / 10_000 for each in ranks]
    assert np.multiply(widths, [1, 1, 1 / 2, 1 / 3]) == pytest.approx([1 / 6] * 4, rel=0.3)


def hot_boxes(low: int, high: int, other: int) -> QueryRanks:
    """Ranges of the first key near its end, four fifths of all, and points of the second key."""
    first = np.array([[low, low + (high - low) // 2, 0], [low + (high - low) // 2, high, 1 << 40]], np.int64)
    second = np.array([[0, 0, other], [1 << 40, 1 << 40, other]], np.int64)
    return QueryRanks(np.stack([first[0], second[0]]), np.stack([first[1], second[1]]), np.array([0.4, 0.4, 0.2]))


def opened(tree: Tree, ranks: list[npt.NDArray[np.uint16]], asked: QueryRanks) -> float:
    file = tree.file_of_leaf[tree.leaf_of(ranks)]
    total = 0.0
    for number in range(tree.file_count):
        rows = [each[file == number] for each in ranks]
        meets = np.logical_and.reduce(
            [(asked.low[key] <= each.max()) & (asked.high[key] >= each.min()) for key, each in enumerate(rows)]
        )
        total += len(rows[0]) * float(asked.weights[meets].sum())
    return total / len(ranks[0])


def test_cuts_go_where_queries_ask_and_files_stay_even() -> None:
    ranks = uniform(50_000, 1000, 1000)
    asked = hot_boxes(950, 1000, 400)
    plain, cut = build_tree(ranks, 32, 1), build_tree(ranks, 32, 1, asked=asked)
    counts = rows_per_file(cut, ranks)
    assert cut.file_count == 32
    assert counts.max() <= 1.25 * counts.mean()
    assert opened(cut, ranks, asked) < 0.5 * opened(plain, ranks, asked)


def test_where_no_query_asks_cuts_are_as_without_queries() -> None:
    ranks = uniform(20_000, 1000, 1000)
    everywhere = QueryRanks(np.zeros((2, 1), np.int64), np.full((2, 1), 1 << 40), np.ones(1))
    plain, cut = build_tree(ranks, 16, 4), build_tree(ranks, 16, 4, asked=everywhere)
    assert (plain.leaf_of(ranks) == cut.leaf_of(ranks)).all()


def test_a_linear_table_is_cut_along_its_order_whatever_queries_ask() -> None:
    ranks = uniform(20_000, 1000, 1000)
    cut = build_tree(ranks, 16, 1, linear=True, asked=hot_boxes(950, 1000, 400))
    assert (cut.leaf_of(ranks) == build_tree(ranks, 16, 1, linear=True).leaf_of(ranks)).all()


def test_trees_stay_shallow_whatever_queries_ask() -> None:
    ranks = uniform(60_000, 20_000)
    # Each query starts a little later than one twice as frequent: slice after slice is worth cutting off.
    starts = np.arange(1, 61, dtype=np.int64)[None, :] * 320
    tree = build_tree(ranks, 1_000, 1, asked=QueryRanks(starts, np.full_like(starts, 1 << 40), 0.5 ** np.arange(60)))
    depth = np.zeros(len(tree.column), int)
    for node, children in enumerate(zip(tree.left.tolist(), tree.right.tolist(), strict=True)):
        for child in children:
            if child >= 0:
                depth[child] = depth[node] + 1
    assert depth.max() <= 24
