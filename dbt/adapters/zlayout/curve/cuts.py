"""File and row group boundaries: a balanced k-d tree over sampled ranks; every file is a box of the key space.

Cutting a curve at equal row counts instead would give every file a sliver of its neighbour's cell, and the sliver
doubles the file's bounding box. Source: J. L. Bentley, Multidimensional binary search trees used for associative
searching, CACM 18(9), 1975. The path to a leaf is a z-address in which each node chooses the column of the next bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.curve.query_boxes import Floats, QueryRanks
from dbt.adapters.zlayout.lazy import cached_property

Ranks = Sequence[npt.NDArray[Any]]

_BLOCK_ROWS = 1 << 15  # a block and its intermediate arrays fit into the processor's cache
_TRIMMED = 0.05  # share of a node's rows ignored at either end when its width is measured: outliers do not count
_GROUPS_PER_FILE = 8
_SIDES = 7
_MOST_LOPSIDED = 12
_FEWEST_GROUP_ROWS, _MOST_GROUP_ROWS = 1 << 15, 1 << 20
_FEWEST_BUCKETS, _MOST_BUCKETS = 1 << 10, 1 << 15
_BUCKETS_PER_FILE = 16


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree in flat arrays. Node 0 is the root; parents come before their children.

    Attributes:
        column: int16[nodes], the key that a node compares.
        threshold: int32[nodes]; a row goes left when its rank is below the threshold.
        left: int32[nodes], the left child, or ``-1 - leaf``.
        right: int32[nodes], as ``left``.
        file_of_leaf: int32[leaves]; leaves and files are numbered from left to right.
        leaf_size: float64[leaves], expected rows of a leaf, as a fraction of a target-size file.
    """

    column: npt.NDArray[np.int16]
    threshold: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    file_of_leaf: npt.NDArray[np.int32]
    leaf_size: npt.NDArray[np.float64]

    @property
    def leaf_count(self) -> int:
        """Number of leaves, at least 1."""
        return len(self.file_of_leaf)

    @property
    def file_count(self) -> int:
        """Number of files, at least 1."""
        return int(self.file_of_leaf[-1]) + 1

    @property
    def file_size(self) -> npt.NDArray[np.float64]:
        """float64[files], expected rows of a file relative to the target size; above 1 where many values are equal."""
        return np.bincount(self.file_of_leaf, weights=self.leaf_size, minlength=self.file_count).astype(np.float64)

    def leaf_of(self, ranks: Ranks) -> npt.NDArray[np.int32]:
        """Returns the leaf of each row.

        Args:
            ranks: For each key unsigned integers[n].

        Returns:
            int32[n].
        """
        rows, nodes = len(ranks[0]), len(self.column)
        leaves = np.zeros(rows, np.int32)
        if not nodes:
            return leaves
        for start in range(0, rows, _BLOCK_ROWS):
            block = np.concatenate([column[start : start + _BLOCK_ROWS] for column in ranks])
            count = len(block) // len(ranks)
            row_numbers = np.arange(count)
            first_of_column = self._column_of_any * count
            at = np.zeros(count, np.intp)
            while int(at.min()) < nodes:  # a leaf is its own child, so rows that have reached one stay there
                goes_right = block[first_of_column[at] + row_numbers] >= self._threshold_of_any[at]
                at = self._children[2 * at + goes_right]
            leaves[start : start + _BLOCK_ROWS] = at - nodes
        return leaves

    @cached_property
    def _column_of_any(self) -> npt.NDArray[np.intp]:
        return np.concatenate([self.column, np.zeros(self.leaf_count)]).astype(np.intp)

    @cached_property
    def _threshold_of_any(self) -> npt.NDArray[np.uint32]:
        return np.concatenate([self.threshold, np.zeros(self.leaf_count)]).astype(np.uint32)

    @cached_property
    def _children(self) -> npt.NDArray[np.intp]:
        """intp[2 (nodes + leaves)]: left and right child of every node; leaves are numbered after nodes."""
        nodes = len(self.column)
        pairs = np.stack([self.left, self.right], axis=1).astype(np.intp)
        pairs = np.where(pairs < 0, nodes - 1 - pairs, pairs)
        own = np.repeat(np.arange(nodes, nodes + self.leaf_count), 2)
        return np.concatenate([pairs.reshape(-1), own])


def build_tree(
    sample: Ranks,
    files: int,
    leaves_per_file: int,
    *,
    linear: bool = False,
    spans: Sequence[float] | None = None,
    asked: QueryRanks | None = None,
) -> Tree:
    """Cuts the key space into files, then each file into row groups.

    ``n`` files are split into ⌊n/2⌋ and ⌈n/2⌉ at that quantile of one column. The column is the one with the widest
    spread of rows, weighted by the key's weight and by how close its best cut is to the quantile. All rows with the
    same rank stay on one side. A set of rows that cannot be split becomes one file, however large.

    With ``asked``, a cut goes where queries skip most rows by it, between any two files. Where no query gains anything,
    cuts are placed as without.

    Args:
        sample: Ranks of a uniform sample, for each key unsigned integers[n]; n may be 0.
        files: Target number of files, at least 1.
        leaves_per_file: Target number of row groups in a file of the target size, at least 1.
        linear: Split along the first column that can be split: leaves are runs of the lexicographic order of ranks.
        spans: For each key the share of the table's rows whose value lies in the value range of these rows: a key of
            which the rows cover only a small range is less worth splitting. None if the sample covers the whole table.
        asked: What queries ask for. Ignored if ``linear``.
    """
    shares = spans or (1.0,) * len(sample)
    worth = [weight * share for weight, share in zip(key_weights(len(sample)), shares, strict=True)]
    making = _Making(sample, linear, tuple(worth), None if linear else asked)
    making.run(files, leaves_per_file)
    return Tree(
        np.array(making.column, np.int16),
        np.array(making.threshold, np.int32),
        np.array(making.left, np.int32),
        np.array(making.right, np.int32),
        np.array(making.file_of_leaf, np.int32),
        np.array(making.leaf_size, np.float64),
    )


def key_weights(keys: int) -> tuple[float, ...]:
    """Returns the weight of each key: 1, 1, 1/2, 1/3 and so on, since keys are listed most important first.

    Cuts are scarce, and each further key takes some from all others. On four skewed keys these weights let queries open
    fewer rows than equal weights do, at any number of files (`benchmarks/key_weights.py`).
    """
    return tuple(1 / max(1, number) for number in range(keys))


@dataclass(frozen=True)
class _Cut:
    column: int
    threshold: int
    share: float


@dataclass(frozen=True)
class _Open:
    """A part of the sample that is not cut yet: into ``parts`` files, or into ``parts`` leaves of one file.

    ``lopsided`` counts the cuts above it that are far from the middle, because many of them make deep trees.
    """

    rows: npt.NDArray[np.intp]
    parts: int
    in_file: bool
    parent: int
    is_left: bool
    asked: QueryRanks | None = None
    lopsided: int = 0


@dataclass
class _Making:
    sample: Ranks
    linear: bool
    worth: tuple[float, ...]
    asked: QueryRanks | None = None
    column: list[int] = field(default_factory=list)
    threshold: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    file_of_leaf: list[int] = field(default_factory=list)
    leaf_size: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._mass_up_to = [
            np.cumsum(np.bincount(each)) / len(each) if len(each) else np.zeros(1) for each in self.sample
        ]

    def run(self, files: int, leaves_per_file: int) -> None:
        """Builds all nodes; uses an explicit stack because heavily repeated values make deep trees."""
        total = len(self.sample[0])
        file = -1
        pending = [_Open(np.arange(total), files, False, -1, False, self.asked)]
        while pending:
            part = pending.pop()
            size = files * len(part.rows) / max(1, total)
            cut = self._best_cut(part) if part.parts > 1 else None
            if cut is not None:
                pending += self._node(part, cut)
            elif not part.in_file:
                file += 1
                leaves = max(1, round(leaves_per_file * size)) if total else leaves_per_file
                pending.append(_Open(part.rows, leaves, True, part.parent, part.is_left, part.asked, part.lopsided))
            else:
                self._link(part, -1 - len(self.file_of_leaf))
                self.file_of_leaf.append(file)
                self.leaf_size.append(size)

    def _node(self, part: _Open, cut: _Cut) -> tuple[_Open, _Open]:
        node = len(self.column)
        self._link(part, node)
        self.column.append(cut.column)
        self.threshold.append(cut.threshold)
        self.left.append(0)
        self.right.append(0)
        goes_left = self.sample[cut.column][part.rows] < cut.threshold
        first = min(part.parts - 1, max(1, round(part.parts * cut.share)))
        right = left = part.asked
        if part.asked is not None:
            right = part.asked.of(part.asked.high[cut.column] >= cut.threshold)
            left = part.asked.of(part.asked.low[cut.column] < cut.threshold)
        lopsided = part.lopsided + (min(first, part.parts - first) < part.parts // 4)
        return (
            _Open(part.rows[~goes_left], part.parts - first, part.in_file, node, False, right, lopsided),
            _Open(part.rows[goes_left], first, part.in_file, node, True, left, lopsided),
        )

    def _link(self, part: _Open, child: int) -> None:
        if part.parent >= 0:
            (self.left if part.is_left else self.right)[part.parent] = child

    def _best_cut(self, part: _Open) -> _Cut | None:
        if part.asked is not None and len(part.asked.weights):
            cut = self._cut_by_queries(part, part.asked)
            if cut is not None:
                return cut
        return self._cut_by_width(part.rows, part.parts)

    def _cut_by_queries(self, part: _Open, asked: QueryRanks) -> _Cut | None:
        wanted = _between_parts(part.parts, only_middle=part.lopsided >= _MOST_LOPSIDED)
        best, best_score = None, 0.0
        for column, ranks in enumerate(self.sample):
            ordered = np.sort(ranks[part.rows], kind="stable")
            if not len(ordered) or ordered[0] == ordered[-1]:
                continue
            thresholds, shares = _thresholds_near(ordered, wanted)
            uneven = 1 - 2 * np.minimum(0.5, np.abs(shares - wanted))
            scores = asked.saved(column, thresholds, shares) * uneven
            number = int(np.argmax(scores))
            if scores[number] > best_score:
                best, best_score = _Cut(column, int(thresholds[number]), float(shares[number])), float(scores[number])
        return best

    def _cut_by_width(self, rows: npt.NDArray[np.intp], parts: int) -> _Cut | None:
        wanted = (parts // 2) / parts
        best, best_score = None, -1.0
        for column, ranks in enumerate(self.sample):
            ordered = np.sort(ranks[rows], kind="stable")  # numpy uses a radix sort for two-byte ranks
            if not len(ordered) or ordered[0] == ordered[-1]:
                continue
            thresholds, shares = _thresholds_near(ordered, np.array([wanted]))
            cut = _Cut(column, int(thresholds[0]), float(shares[0]))
            if self.linear:
                return cut
            trimmed = int(_TRIMMED * len(ordered))
            low, high = int(ordered[trimmed]), int(ordered[-1 - trimmed])
            width = self.worth[column] * float(self._mass_up_to[column][high] - self._mass_up_to[column][low])
            score = width * (1 - 2 * min(0.5, abs(cut.share - wanted)))
            if score > best_score:
                best, best_score = cut, score
        return best


def _between_parts(parts: int, *, only_middle: bool) -> Floats:
    """Returns shares of rows at which whole parts lie on both sides: the middle, and ever fewer parts on one side."""
    if only_middle:
        return np.array([parts // 2 / parts])
    few = np.unique(np.r_[parts // 2, parts // 2 ** np.arange(1, _SIDES), parts * 3 // 8])
    few = few[few > 0]
    return np.unique(np.r_[few, parts - few]) / parts


def _thresholds_near(ordered: npt.NDArray[Any], wanted: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Returns the cuts whose left shares are nearest to the wanted ones; neither side is empty.

    Args:
        ordered: Sorted ranks, not all equal.
        wanted: float64[c], wanted shares of rows on the left.

    Returns:
        int64[c], thresholds, and float64[c], the shares of rows below them.
    """
    middle = ordered[(len(ordered) * wanted).astype(np.intp)].astype(np.int64)
    below = np.searchsorted(ordered, middle) / len(ordered)
    up_to = np.searchsorted(ordered, middle, side="right") / len(ordered)
    stays = (below > 0) & ((up_to == 1) | (wanted - below <= up_to - wanted))
    return np.where(stays, middle, middle + 1), np.where(stays, below, up_to)


@dataclass(frozen=True)
class Sizing:
    """The sizes that cuts are made for.

    Attributes:
        rows_per_file: Rows of a file of the target size.
        row_group_rows: Target rows of a row group.
    """

    rows_per_file: int
    row_group_rows: int
    total_rows: int
    sampled_rows: int

    @classmethod
    def of(
        cls,
        total_rows: int,
        sampled_rows: int,
        bytes_per_row: float,
        target_file_bytes: int,
        row_group_rows: int | None,
    ) -> Sizing:
        """Computes rows per file; row groups have ``row_group_rows`` or, if None, about an eighth of a file."""
        rows_per_file = max(1, round(target_file_bytes / max(bytes_per_row, 1e-3)))
        eighth = -(-min(rows_per_file, max(1, total_rows)) // _GROUPS_PER_FILE)
        group_rows = row_group_rows or min(_MOST_GROUP_ROWS, max(_FEWEST_GROUP_ROWS, eighth))
        return cls(rows_per_file, group_rows, total_rows, sampled_rows)

    @property
    def buckets(self) -> int:
        """Number of ranks per key: enough that one key alone can cut a table of many files evenly."""
        wanted = 1 << (_BUCKETS_PER_FILE * self.total_rows // self.rows_per_file).bit_length()
        return min(_MOST_BUCKETS, max(_FEWEST_BUCKETS, wanted))

    def leaves(self, rows: float) -> int:
        """Returns the number of row groups in a file of this many rows."""
        return max(1, -int(-rows // self.row_group_rows))

    def files_and_leaves(self, sampled_rows: int) -> tuple[int, int]:
        """Returns the number of files for the rows that a part of the sample represents, and the row groups of each."""
        rows = self.total_rows * sampled_rows / max(1, self.sampled_rows)
        files = max(1, round(rows / self.rows_per_file))
        return files, self.leaves(rows / files)
