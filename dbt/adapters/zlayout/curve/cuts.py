"""Where files and row groups end: a balanced k-d tree over sampled ranks, so that each is a rectangle of the key space.

Source: J. L. Bentley, Multidimensional binary search trees used for associative searching, CACM 18(9), 1975. The
path to a leaf is a z-address whose next bit's column is chosen node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ranks = Sequence[npt.NDArray[np.int32]]
_SPREAD = (5, 95)


@dataclass(frozen=True)
class Tree:
    """A binary tree in flat arrays; nodes are numbered in the order they were made, the root is 0.

    Attributes:
        column: int32[nodes]; -1 in a leaf.
        threshold: int32[nodes]; a row goes left when its rank in the column is below it. In a leaf, the leaf's number.
        left: int32[nodes]; the right child is the next node.
        file_of_leaf: int32[leaves]; leaves are numbered from left to right, files too.
    """

    column: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    file_of_leaf: npt.NDArray[np.int32]

    @property
    def leaf_count(self) -> int:
        """Number of leaves."""
        return len(self.file_of_leaf)

    @property
    def file_count(self) -> int:
        """Number of files."""
        return int(self.file_of_leaf[-1]) + 1

    def leaf_of(self, ranks: Ranks) -> npt.NDArray[np.int32]:
        """The leaf of each row.

        Args:
            ranks: One int32[n] a key.

        Returns:
            int32[n].
        """
        count = len(ranks[0]) if ranks else 0
        leaf = np.zeros(count, dtype=np.int32)
        # Rows are parted level by level as quicksort does: each level touches each row once, and in order.
        pending: list[tuple[int, npt.NDArray[np.int64]]] = [(0, np.arange(count))]
        while pending:
            node, rows = pending.pop()
            if self.column[node] < 0:
                leaf[rows] = self.threshold[node]
                continue
            goes_left = ranks[self.column[node]][rows] < self.threshold[node]
            child = int(self.left[node])
            for target, part in ((child, rows[goes_left]), (child + 1, rows[~goes_left])):
                if len(part):
                    pending.append((target, part))
        return leaf


def build_tree(sample: Ranks, files: int, leaves_per_file: int, *, linear: bool = False) -> Tree:
    """Cuts the key space into files and each file into row groups.

    ``n`` files are cut into ⌊n/2⌋ and ⌈n/2⌉ at that quantile of the column whose sample is spread widest; a value
    that is heavier than that goes wholly to one side.

    Args:
        sample: Ranks of a uniform sample, one int32[n] a key.
        files: Files to aim at; fewer come out where values are too few to cut at.
        leaves_per_file: Row groups of a file to aim at.
        linear: Cut along the columns' lexicographic order: the first column as long as it can be cut.
    """
    build = _Building(sample, linear)
    rows = np.arange(len(sample[0]) if sample else 0)
    build.cut(rows, max(1, files), max(1, leaves_per_file))
    return Tree(
        np.array(build.column, dtype=np.int32),
        np.array(build.threshold, dtype=np.int32),
        np.array(build.left, dtype=np.int32),
        np.array(build.file_of_leaf, dtype=np.int32),
    )


@dataclass
class _Building:
    sample: Ranks
    linear: bool
    column: list[int] = field(default_factory=list)
    threshold: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    file_of_leaf: list[int] = field(default_factory=list)
    files: int = 0
    _below: list[npt.NDArray[np.float64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for ranks in self.sample:
            ordered = np.sort(ranks)
            last = int(ordered[-1]) if len(ordered) else 0
            self._below.append(np.searchsorted(ordered, np.arange(last + 2)) / max(1, len(ordered)))

    def _mass(self, column: int, low: int, high: int) -> float:
        """Share of all sampled rows whose rank is between two ranks: widths of different columns compare in it."""
        below = self._below[column]
        return float(below[high + 1] - below[low])

    def cut(self, rows: npt.NDArray[np.int64], files: int, leaves_per_file: int) -> None:
        """Makes the root and everything below it."""
        root = self._node()
        self._part(root, rows, files, leaves_per_file, is_file=False)

    def _part(self, node: int, rows: npt.NDArray[np.int64], files: int, leaves: int, *, is_file: bool) -> None:
        parts = leaves if is_file else files
        split = self._best(rows, parts) if parts > 1 else None
        if split is None:
            if not is_file:
                self._part(node, rows, files, leaves * files if files > 1 else leaves, is_file=True)
                self.files += 1
                return
            self.column[node], self.threshold[node] = -1, len(self.file_of_leaf)
            self.file_of_leaf.append(self.files)
            return
        column, threshold, share = split
        goes_left = self.sample[column][rows] < threshold
        first = min(parts - 1, max(1, round(parts * share)))
        self.column[node], self.threshold[node] = column, threshold
        self.left[node] = self._node()
        right = self._node()
        for target, part, count in (
            (self.left[node], rows[goes_left], first),
            (right, rows[~goes_left], parts - first),
        ):
            if is_file:
                self._part(target, part, files, count, is_file=True)
            else:
                self._part(target, part, count, leaves, is_file=False)

    def _best(self, rows: npt.NDArray[np.int64], parts: int) -> tuple[int, int, float] | None:
        """Column, threshold and the share of the rows that goes left; None where no column can be cut."""
        if len(rows) < 2:
            return None
        wanted = (parts // 2) / parts
        best: tuple[float, int, int, float] | None = None
        for column, ranks in enumerate(self.sample):
            ordered = np.sort(ranks[rows])
            if ordered[0] == ordered[-1]:
                continue
            middle = ordered[min(len(ordered) - 1, int(len(ordered) * wanted))]
            candidates = [
                (int(np.searchsorted(ordered, threshold, side="left")) / len(ordered), threshold)
                for threshold in (int(middle), int(middle) + 1)
            ]
            possible = [each for each in candidates if 0 < each[0] < 1]
            if not possible:
                continue
            share, threshold = min(possible, key=lambda each: abs(each[0] - wanted))
            low, high = np.percentile(ordered, _SPREAD)
            # A wide column is cut first, but not one whose best cut is far from where it should be.
            score = self._mass(column, int(low), int(high)) * (1 - 2 * min(0.5, abs(share - wanted)))
            if self.linear:
                return column, threshold, share
            if best is None or score > best[0]:
                best = (score, column, threshold, share)
        return best[1:] if best is not None else None

    def _node(self) -> int:
        self.column.append(-1)
        self.threshold.append(0)
        self.left.append(-1)
        return len(self.column) - 1
