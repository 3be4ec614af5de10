"""Overlapping groups: selects the files whose joint rewrite lowers the read cost most for the bytes it takes.

The key space is halved recursively. The files inside each part are sorted by how often queries read them. Each prefix
of that order is a group that could be rewritten, from newly appended files that cut across a good layout to all files
of the part. Groups in disjoint parts are chosen so that their total gain is greatest. If bytes are limited, each byte
gets a price, which is adjusted until the chosen groups fit the budget (a Lagrange multiplier, as in H. Everett,
Operations Research 11(3), 1963).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.config.clustering import ReclusteringConfig
from dbt.adapters.zlayout.layout.measures.cost import CostModel
from dbt.adapters.zlayout.layout.measures.key_space import Boxes, Floats

_PRICE_STEPS = 40
_DEEPEST = 24
_MOST_PARTS = 4096
_STEP = 1.3
_DROP = 1.5
_MOST_DROPS = 64
_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class FileGroup:
    """Files of one partition that are rewritten together.

    Attributes:
        files: Positions of the files.
        gain: Bytes per query that the rewrite saves, at the least cost that the group could have.
        cost: Bytes that a query reads of the files now.
        reason: 'overlap', 'small', 'large' or 'all'.
    """

    files: npt.NDArray[np.int64]
    gain: float
    cost: float
    reason: str


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the key space: the groups that lie in it, and its halves."""

    order: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    size_bytes: Floats
    cost: Floats
    gain: Floats
    halves: tuple[_Part, ...]

    def best(self, price: float, min_gain: float) -> tuple[float, list[tuple[_Part, int]]]:
        """Returns the largest net gain inside this part at a price per byte, and the groups that achieve it."""
        apart = [half.best(price, min_gain) for half in self.halves]
        worth, chosen = sum(each[0] for each in apart), [group for each in apart for group in each[1]]
        if len(self.ends):
            own = self.gain - min_gain * self.cost - price * self.size_bytes
            first = int(np.argmax(own))
            if own[first] > worth + _SLACK:
                return float(own[first]), [(self, first)]
        return worth, chosen

    def group(self, number: int) -> FileGroup:
        files = np.sort(self.order[: self.ends[number]])
        reason = "overlap" if len(files) > 1 else "large"
        return FileGroup(files, float(self.gain[number]), float(self.cost[number]), reason)


def overlapping_groups(
    boxes: Boxes,
    size_bytes: npt.NDArray[np.int64],
    partitions: Sequence[npt.NDArray[np.int64]],
    model: CostModel,
    wanted: ReclusteringConfig,
    keep_size: npt.NDArray[np.bool_] | None = None,
) -> list[FileGroup]:
    """Returns the groups that are worth rewriting, most gain per byte first; none spans two partitions.

    Args:
        boxes: Of all files.
        size_bytes: int64[n], of all files.
        partitions: Positions of each partition's files.
        model: Weights reads.
        wanted: Uses ``min_gain``, the share of its cost that each file of a group must save, ``max_group_bytes`` and
            the budget.
        keep_size: bool[n], files whose size is no reason to split them; None for no file.
    """
    if not model.weights:
        return []
    low, high = np.zeros(len(model.weights)), np.ones(len(model.weights))
    most_files = model.most_files(size_bytes)
    if keep_size is not None:
        most_files = np.where(keep_size, 1.0, most_files)
    wholes = [_part(boxes, size_bytes, most_files, files, model, wanted, low, high) for files in partitions]
    groups = [part.group(number) for part, number in _within_budget(wholes, wanted)]
    return sorted(groups, key=lambda group: -group.gain / max(1, int(size_bytes[group.files].sum())))


def _within_budget(wholes: Sequence[_Part], wanted: ReclusteringConfig) -> list[tuple[_Part, int]]:
    chosen = _best(wholes, 0.0, wanted.min_gain)
    if wanted.max_bytes is None or _bytes(chosen) <= wanted.max_bytes:
        return chosen
    low, high = 0.0, 1.0
    best: list[tuple[_Part, int]] = []
    for _ in range(_PRICE_STEPS):
        price = (low + high) / 2
        chosen = _best(wholes, price, wanted.min_gain)
        if _bytes(chosen) > wanted.max_bytes:
            low = price
        else:
            best, high = chosen, price
    return best


def _best(wholes: Sequence[_Part], price: float, min_gain: float) -> list[tuple[_Part, int]]:
    return [group for whole in wholes for group in whole.best(price, min_gain)[1]]


def _bytes(chosen: list[tuple[_Part, int]]) -> float:
    return sum(float(part.size_bytes[number]) for part, number in chosen)


def _part(
    boxes: Boxes,
    size_bytes: npt.NDArray[np.int64],
    most_files: Floats,
    files: npt.NDArray[np.int64],
    model: CostModel,
    wanted: ReclusteringConfig,
    low: Floats,
    high: Floats,
    depth: int = 0,
) -> _Part:
    inner = Boxes(boxes.low[:, files], boxes.high[:, files])
    sizes = size_bytes[files]
    cost = model.cost(inner, sizes)
    share = model.share_read(inner)
    ranked = np.argsort(-share, kind="stable")
    order, cost = files[ranked], cost[ranked]
    total = np.cumsum(sizes[ranked]).astype(float)
    sides = np.maximum.accumulate(inner.high[:, ranked], axis=1) - np.minimum.accumulate(inner.low[:, ranked], axis=1)
    ends = _steps(share[ranked])
    ends = ends[total[ends - 1] <= min(wanted.max_group_bytes, wanted.max_bytes or wanted.max_group_bytes)]
    before = np.cumsum(cost)[ends - 1]
    after = model.least_cost(sides[:, ends - 1], total[ends - 1], np.cumsum(most_files[order])[ends - 1])
    halves: tuple[_Part, ...] = ()
    if len(files) > max(1, len(size_bytes) // _MOST_PARTS) and depth < _DEEPEST:
        key = int(np.argmax((high - low) * np.asarray(model.weights)))
        middle = (low[key] + high[key]) / 2
        sides_of_middle = (inner.high[key] <= middle, inner.low[key] >= middle)
        halves = tuple(
            _part(
                boxes,
                size_bytes,
                most_files,
                files[inside],
                model,
                wanted,
                *_half(low, high, key, left=number == 0),
                depth + 1,
            )
            for number, inside in enumerate(sides_of_middle)
            if inside.sum() >= 2
        )
    return _Part(order, ends, total[ends - 1], before, before - after, halves)


def _half(low: Floats, high: Floats, key: int, *, left: bool) -> tuple[Floats, Floats]:
    low, high = low.copy(), high.copy()
    middle = (low[key] + high[key]) / 2
    if left:
        high[key] = middle
    else:
        low[key] = middle
    return low, high


def _steps(share: Floats) -> npt.NDArray[np.int64]:
    """Returns 1, 2, 3, 4, 6 … files, and each number of files after which the share of queries drops sharply.

    Args:
        share: float64[n], descending.
    """
    count = len(share)
    wanted = int(np.ceil(np.log(max(2, count)) / np.log(_STEP))) + 1
    steps = np.minimum(count, np.ceil(_STEP ** np.arange(wanted + 1)).astype(np.int64))
    drops = np.flatnonzero(share[:-1] > _DROP * share[1:])[:_MOST_DROPS] + 1
    return np.unique(np.concatenate([steps, drops]))
