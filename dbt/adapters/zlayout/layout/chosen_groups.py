"""File group selection for clustering: groups of files to rewrite, chosen from the index alone, within a budget.

Overlapping files come first: those whose joint rewrite lowers the read cost most for the bytes it takes. The key space
is halved recursively. The files inside each part are sorted by how often queries read them. Each prefix of that order
is a group that could be rewritten, from newly appended files that cut across a good layout to all files of the part.
Groups in disjoint parts are chosen so that their total gain is greatest. If bytes are limited, each byte gets a price,
which is adjusted until the chosen groups fit the budget (a Lagrange multiplier, as in H. Everett, Operations Research
11(3), 1963).

Then come files of a wrong size: small files are combined with their neighbours, large ones are split.

Packing (`pack_groups`) looks at sizes alone: it fills files up to the target size with small files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.config.clustering import ALONG_CURVE, ClusterStrategy, ReclusteringConfig
from dbt.adapters.zlayout.curve.orders import MAX_BITS, interleave
from dbt.adapters.zlayout.layout.cost import CostModel
from dbt.adapters.zlayout.layout.key_space import Boxes, Floats

_PRICE_STEPS = 40
_DEEPEST = 24
_MOST_PARTS = 4096
_STEP = 1.3
_DROP = 1.5
_MOST_DROPS = 64
_SLACK = 1e-9
_BITS = 16
_PACK_ROUNDS = 32


@dataclass(frozen=True, eq=False)
class ChosenGroup:
    """Files of one partition that are rewritten together.

    Attributes:
        files: Positions of the files.
        gain: Bytes per query that the rewrite saves, at the least cost that the group could have.
        cost: Bytes that a query reads of the files now.
        reason: 'overlap', 'small', 'large' or 'all'.
        strategy: How their rows are arranged. With ``binpack`` the files are in the order in which they are packed.
    """

    files: npt.NDArray[np.int64]
    gain: float
    cost: float
    reason: str
    strategy: ClusterStrategy = ALONG_CURVE


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

    def group(self, number: int) -> ChosenGroup:
        files = np.sort(self.order[: self.ends[number]])
        reason = "overlap" if len(files) > 1 else "large"
        return ChosenGroup(files, float(self.gain[number]), float(self.cost[number]), reason)


def _overlapping_groups(
    boxes: Boxes,
    size_bytes: npt.NDArray[np.int64],
    partitions: Sequence[npt.NDArray[np.int64]],
    model: CostModel,
    wanted: ReclusteringConfig,
    keep_size: npt.NDArray[np.bool_] | None,
) -> list[ChosenGroup]:
    """Returns the groups that are worth rewriting, most gain per byte first; none spans two partitions.

    Args:
        boxes: The boxes of all files.
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


def _in_curve_order(boxes: Boxes, files: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sorts files by the z-order position of their centres; keeps the order in a table without keys.

    Args:
        boxes: The boxes of all files.
        files: Positions.
    """
    keys = len(boxes.low)
    if not keys:
        return files
    bits = min(_BITS, MAX_BITS // keys)
    centres = (boxes.low[:, files] + boxes.high[:, files]) / 2
    codes = [np.minimum(centre * (1 << bits), (1 << bits) - 1).astype(np.uint64) for centre in centres]
    return files[np.argsort(interleave(codes, [bits] * keys), kind="stable")]


def _small_file_groups(
    boxes: Boxes,
    size_bytes: npt.NDArray[np.int64],
    files: npt.NDArray[np.int64],
    *,
    min_file_bytes: int,
    target_bytes: int,
    min_input_files: int,
    as_built: npt.NDArray[np.bool_] | None,
) -> Iterator[ChosenGroup]:
    """Yields runs of small neighbours of one partition, each about one file of the target size.

    A run is worth rewriting if it has many files or fills a file, and if it becomes at most half as many files: so the
    result of packing is never packed again by itself. Files of the last build join runs of other small files, but do
    not start one, because they were cut for this size.

    Args:
        boxes: The boxes of all files.
        size_bytes: int64[n], of all files.
        files: Positions of the partition's files.
        min_file_bytes: Files below this size are small.
        min_input_files: Number of files from which on a run is worth it even if it does not fill a file.
        as_built: bool[n], files of the last build; None for no file.
    """
    small = _in_curve_order(boxes, files[size_bytes[files] < min_file_bytes])
    if len(small) < 2:
        return
    ends = np.cumsum(size_bytes[small])
    run = (ends - size_bytes[small]) // max(1, target_bytes)
    for members in np.split(small, np.flatnonzero(np.diff(run)) + 1):
        total = int(size_bytes[members].sum())
        becomes = max(1, round(total / target_bytes))
        reasons = len(members) if as_built is None else int((~as_built[members]).sum())
        enough = reasons >= min_input_files or (reasons > 0 and total >= target_bytes)
        if len(members) >= 2 and enough and becomes <= len(members) / 2:
            yield ChosenGroup(np.sort(members), 0.0, 0.0, "small")


def _large_file_groups(
    size_bytes: npt.NDArray[np.int64], files: npt.NDArray[np.int64], *, max_file_bytes: int
) -> Iterator[ChosenGroup]:
    """Yields each file that is too large as a group of its own.

    Args:
        size_bytes: int64[n], of all files.
        files: Positions of the partition's files.
        max_file_bytes: Files above this size are too large.
    """
    for file in files[size_bytes[files] > max_file_bytes]:
        yield ChosenGroup(np.array([file]), 0.0, 0.0, "large")


def _whole_groups(
    boxes: Boxes, size_bytes: npt.NDArray[np.int64], files: npt.NDArray[np.int64], *, max_group_bytes: int
) -> Iterator[ChosenGroup]:
    """Yields all files of one partition, in runs along the curve with a limited size.

    Args:
        boxes: The boxes of all files.
        size_bytes: int64[n], of all files.
        files: Positions of the partition's files.
        max_group_bytes: Largest group; a single file may be larger.
    """
    ordered = _in_curve_order(boxes, files)
    ends = np.cumsum(size_bytes[ordered])
    run = (ends - 1) // max(1, max_group_bytes)
    for members in np.split(ordered, np.flatnonzero(np.diff(run)) + 1):
        yield ChosenGroup(np.sort(members), 0.0, 0.0, "all")


@dataclass(frozen=True, eq=False)
class Candidates:
    """The files of a table as planning sees them.

    Attributes:
        boxes: The position of n files in the key space.
        size_bytes: int64[n].
        partition: int64[n], number of each file's partition.
        eligible: bool[n], files that may be rewritten.
        as_built: bool[n], files that the last build cut for the current target size: that they came out smaller or
            larger is no reason to rewrite them, unless limits are set. None for no file.
    """

    boxes: Boxes
    size_bytes: npt.NDArray[np.int64]
    partition: npt.NDArray[np.int64]
    eligible: npt.NDArray[np.bool_]
    as_built: npt.NDArray[np.bool_] | None = None

    def partitions(self, without: npt.NDArray[np.bool_] | None = None) -> Iterator[npt.NDArray[np.int64]]:
        """Returns the positions of the eligible files, partition by partition."""
        wanted = self.eligible if without is None else self.eligible & ~without
        files = np.flatnonzero(wanted)
        ordered = files[np.argsort(self.partition[files], kind="stable")]
        changes = np.flatnonzero(np.diff(self.partition[ordered])) + 1
        return (members for members in np.split(ordered, changes) if len(members))


def plan_groups(candidates: Candidates, model: CostModel, wanted: ReclusteringConfig) -> list[ChosenGroup]:
    """Chooses the groups to rewrite: overlapping files by gain, then files of a wrong size, within the budget.

    Args:
        candidates: The files.
        model: Weights reads; has the target size and the largest size of a file.
        wanted: What is worth rewriting.

    Returns:
        Disjoint groups, in the order in which they should be rewritten.
    """
    sizes = candidates.size_bytes
    if wanted.rewrite_all:
        every = [
            group
            for files in candidates.partitions()
            for group in _whole_groups(candidates.boxes, sizes, files, max_group_bytes=wanted.max_group_bytes)
        ]
        return _affordable(every, sizes, wanted.max_bytes)
    # Explicit limits apply to all files, including those of the last build.
    not_small = candidates.as_built if wanted.min_file_bytes is None else None
    not_large = candidates.as_built if wanted.max_file_bytes is None else None
    chosen = _overlapping_groups(candidates.boxes, sizes, list(candidates.partitions()), model, wanted, not_large)
    taken = np.zeros(len(sizes), dtype=bool)
    for group in chosen:
        taken[group.files] = True
    min_file_bytes, _ = wanted.file_limits(model.target_bytes)
    sized = [
        group
        for files in candidates.partitions(without=taken)
        for group in (
            *_small_file_groups(
                candidates.boxes,
                sizes,
                files,
                min_file_bytes=min_file_bytes,
                target_bytes=model.target_bytes,
                min_input_files=wanted.min_input_files,
                as_built=not_small,
            ),
            *_large_file_groups(
                sizes, files if not_large is None else files[~not_large[files]], max_file_bytes=model.max_file_bytes
            ),
        )
    ]
    return _affordable([*chosen, *sized], sizes, wanted.max_bytes)


def packs_of(size_bytes: npt.NDArray[np.int64], target_bytes: int) -> list[npt.NDArray[np.int64]]:
    """Fills new files with the given files, in their order. A file above the target size has a new file to itself.

    Args:
        size_bytes: int64[n], in the order in which files are packed.
        target_bytes: Most bytes of a new file.

    Returns:
        int64 positions, for each new file; together 0 … n - 1.

    >>> [pack.tolist() for pack in packs_of(np.array([4, 5, 3, 20, 1]), 10)]
    [[0, 1], [2], [3], [4]]
    """
    ends, packs, start = np.cumsum(size_bytes), [], 0
    while start < len(ends):
        room = target_bytes + (int(ends[start - 1]) if start else 0)
        end = max(start + 1, int(np.searchsorted(ends, room, "right")))
        packs.append(np.arange(start, end))
        start = end
    return packs


def pack_groups(candidates: Candidates, target_bytes: int, wanted: ReclusteringConfig) -> list[ChosenGroup]:
    """Chooses small files to append to one another, neighbours on the curve together, within the budget.

    A new file is worth its rewrite if it takes many files, or if it is no longer small and has twice the size of each
    file that it takes. Files of the last build join others, but are no reason to pack, as in `plan_groups`.

    Args:
        candidates: The files. In a table without keys they are packed in the order of the table.
        wanted: What is worth rewriting. With ``rewrite_all`` all files are packed.

    Returns:
        Disjoint groups. The files of a group are in the order in which they are packed: `packs_of` gives the new files.
    """
    sizes = candidates.size_bytes
    min_file_bytes, _ = wanted.file_limits(target_bytes)
    built = candidates.as_built if wanted.min_file_bytes is None else None

    def is_worth_it(pack: npt.NDArray[np.int64]) -> bool:
        reasons = len(pack) if built is None else int((~built[pack]).sum())
        total, largest = int(sizes[pack].sum()), int(sizes[pack].max())
        # Files that were packed before shrink at most a little. So none of them is packed again with a few small ones.
        filled = reasons > 0 and total >= min_file_bytes and largest <= total / 2
        return len(pack) >= 2 and (filled or reasons >= wanted.min_input_files)

    packs: list[ChosenGroup] = []
    for files in candidates.partitions():
        left = files if wanted.rewrite_all else files[sizes[files] < min_file_bytes]
        left = _in_curve_order(candidates.boxes, left)
        kept = [left[pack] for pack in packs_of(sizes[left], target_bytes)]
        for _ in range(0 if wanted.rewrite_all else _PACK_ROUNDS):
            # Without a file that stays alone, its neighbours may fit together.
            together = [pack for pack in kept if len(pack) >= 2]
            chosen = together if len(together) < len(kept) else [pack for pack in kept if is_worth_it(pack)]
            if len(chosen) == len(kept):
                break
            left = np.concatenate([*chosen, left[:0]])
            kept = [left[pack] for pack in packs_of(sizes[left], target_bytes)]
        if not wanted.rewrite_all:
            kept = [pack for pack in kept if is_worth_it(pack)]
        packs += [ChosenGroup(pack, 0.0, 0.0, "all" if wanted.rewrite_all else "small") for pack in kept]
    return _together(_affordable(packs, sizes, wanted.max_bytes), candidates, wanted.max_group_bytes)


def _together(packs: Sequence[ChosenGroup], candidates: Candidates, max_group_bytes: int) -> list[ChosenGroup]:
    """Joins packs of one partition into groups of limited size, so that one job writes many files."""
    partition = candidates.partition
    groups: list[list[ChosenGroup]] = []
    spent = 0
    for pack in packs:
        size = int(candidates.size_bytes[pack.files].sum())
        of_last = bool(groups) and partition[groups[-1][0].files[0]] == partition[pack.files[0]]
        if not of_last or spent + size > max_group_bytes:
            groups.append([])
            spent = 0
        groups[-1].append(pack)
        spent += size
    return [ChosenGroup(np.concatenate([each.files for each in group]), 0.0, 0.0, group[0].reason) for group in groups]


def _affordable(
    groups: Sequence[ChosenGroup], size_bytes: npt.NDArray[np.int64], max_bytes: int | None
) -> list[ChosenGroup]:
    """Returns the groups in order, without those that do not fit into the budget."""
    found, spent = [], 0
    for group in groups:
        total = int(size_bytes[group.files].sum())
        if max_bytes is None or spent + total <= max_bytes:
            found.append(group)
            spent += total
    return found
