"""Overlap: how many files share values with a file, and how many files cover the same point.

Source: Snowflake's ``SYSTEM$CLUSTERING_INFORMATION`` for the figures of one column and for the histogram's buckets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.layout.spans import ranked

Counts = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.int64]

# The number of pairs among 4,096 files.
_MOST_PAIRS = 1 << 23
_PAIRS_AT_ONCE = 1 << 20
_PROBES = 512
_PROBES_AT_ONCE = 64
LAST_SINGLE_BUCKET = 16
_SLACK = 1e-9
# Two-sided 95 % of a normal distribution.
_DEVIATIONS_OF_95_PERCENT = 1.96


@dataclass(frozen=True)
class Overlap:
    """How files overlap.

    Attributes:
        average_overlaps: Average number of other files that share values with a file.
        average_depth: Average number of files, itself included, that overlap at a file; 1.0 is best, 0.0 means there
            are no files.
        depth_histogram: Number of files by depth: 0 … 16 individually, then up to 32, 64, 128 …
        measured_files: Number of files measured; less than the number of files if a sample was used.
        depth_error: Error of the averages with about 95 % confidence; 0.0 if all files were measured.
    """

    average_overlaps: float
    average_depth: float
    depth_histogram: Mapping[int, int]
    measured_files: int
    depth_error: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values; histogram buckets are spelled as in Snowflake."""
        return {**vars(self), "depth_histogram": {f"{top:05}": count for top, count in self.depth_histogram.items()}}


def interval_overlap(low: Ranks, high: Ranks, partition: Ranks) -> Overlap:
    """Returns the exact overlap along one column.

    The depth of a file is the largest number of files that share one value within its span.

    Args:
        low: int64[n], ranks from 0 on; memory grows with the highest.
        high: int64[n], each at least ``low``.
        partition: int64[n], numbers from 0 on; files of different partitions do not overlap.

    >>> low, high = np.array([0, 2, 8]), np.array([3, 5, 9])
    >>> found = interval_overlap(low, high, np.zeros(3, np.int64))
    >>> round(found.average_depth, 2), round(found.average_overlaps, 2)
    (1.67, 0.67)
    """
    low, high = _apart(low, high, partition)
    return _overlap(_overlaps_along(low, high), _depths(low, high), len(low))


def box_overlap(lows: Sequence[Ranks], highs: Sequence[Ranks], partition: Ranks) -> Overlap:
    """Returns the overlap of boxes over several columns.

    The depth of a file is the number of files whose boxes intersect its box, itself included. The result is exact for
    up to 4,096 files, and for more if some column alone leaves no more pairs than 4,096 files have. Otherwise 512 files
    are compared with all, sampled across narrow and wide files.

    Args:
        lows: Per column as for `interval_overlap`; without columns, all files of a partition overlap.
        highs: Likewise.
        partition: int64[n].
    """
    count = len(partition)
    if not count:
        return _overlap(partition, partition, 0)
    if not lows:
        lows = highs = [np.zeros(count, np.int64)]
    parted = [_apart(low, high, partition) for low, high in zip(lows, highs, strict=True)]
    along = [_overlaps_along(low, high) for low, high in parted]
    best = int(np.argmin([each.sum() for each in along]))
    others = [each for number, each in enumerate(parted) if number != best]
    if along[best].sum() // 2 <= _MOST_PAIRS:
        meeting = _counted_pairs(parted[best], others)
    else:
        # Sorts by the expected overlaps if columns were independent, so that the sample represents files of each kind.
        order = np.argsort(sum(np.log1p(each) for each in along), kind="stable")
        probes = order[((np.arange(_PROBES) + 0.5) * (count / _PROBES)).astype(np.int64)]
        meeting = _sampled_overlaps(probes, parted)
    return _overlap(meeting, meeting + 1, count)


def overlap_depth(
    lows: Sequence[npt.NDArray[Any]],
    highs: Sequence[npt.NDArray[Any]],
    unknown: npt.NDArray[np.bool_],
    partition: npt.NDArray[np.int64],
) -> float:
    """Returns how many files' boxes over all keys intersect the box of a file, itself included, on average.

    See `box_overlap`.

    Args:
        lows: Per key the smallest value of each file, comparable[n].
        highs: Per key the largest value.
        unknown: bool[n]; files without bounds, which overlap every file of their partition.
        partition: int64[n]; files of different partitions do not overlap.

    Returns:
        1.0 … n, and 0.0 without files.
    """
    return box_overlap(*ranks_of(lows, highs, unknown), partition).average_depth


def ranks_of(
    lows: Sequence[npt.NDArray[Any]], highs: Sequence[npt.NDArray[Any]], unknown: npt.NDArray[np.bool_]
) -> tuple[list[Ranks], list[Ranks]]:
    """Returns bounds as ranks from 0 on, per key; files without bounds span all others.

    Args:
        lows: As for `overlap_depth`.
        highs: Likewise.
        unknown: Likewise.
    """
    count = len(unknown)
    first, last = [], []
    for low, high in zip(lows, highs, strict=True):
        distinct, positions = ranked(low, high)
        first.append(np.where(unknown, 0, positions[:count]))
        last.append(np.where(unknown, len(distinct), positions[count:]))
    return first, last


def is_deeper(lows: Sequence[Ranks], highs: Sequence[Ranks], gone: Ranks, came: Ranks) -> bool:
    """Returns whether files overlap more deeply after some are replaced by others with the same rows.

    The depth of each removed file counts as much as that of a file in its place, so that having fewer files does not by
    itself make the average worse.

    Args:
        lows: Per column as for `interval_overlap`, of all files of one partition, including the new ones.
        highs: Likewise.
        gone: Positions of the removed files.
        came: Positions of the new files.
    """
    stay = np.ones(len(lows[0]), bool)
    stay[gone] = stay[came] = False
    others = np.flatnonzero(stay)
    before = 2 * _intersections(lows, highs, gone, others) + _intersections(lows, highs, gone, gone)
    meet_others = _intersections(lows, highs, came, others)
    after = meet_others + (meet_others + _intersections(lows, highs, came, came)) * len(gone) / max(1, len(came))
    return after > before * (1 + _SLACK)


def _intersections(lows: Sequence[Ranks], highs: Sequence[Ranks], some: Ranks, others: Ranks) -> int:
    """Returns how often a box of ``some`` intersects a box of ``others``."""
    found = 0
    at_once = max(1, _PAIRS_AT_ONCE // max(1, len(others)))
    for start in range(0, len(some), at_once):
        chunk = some[start : start + at_once]
        meets = np.logical_and.reduce(
            [
                (low[others] <= high[chunk, None]) & (high[others] >= low[chunk, None])
                for low, high in zip(lows, highs, strict=True)
            ],
            axis=0,
        )
        found += int(meets.sum())
    return found


def depth_histogram(depths: Counts) -> dict[int, int]:
    """Counts depths by the top of their bucket: 0 … 16, then 32, 64 … up to the greatest depth."""
    deepest = int(depths.max(initial=0))
    tops = list(range(LAST_SINGLE_BUCKET + 1))
    while tops[-1] < deepest:
        tops.append(2 * tops[-1])
    counts = np.bincount(np.searchsorted(tops, depths), minlength=len(tops))
    return dict(zip(tops, counts.tolist(), strict=True))


def _overlap(overlaps: Counts, depths: Counts, count: int) -> Overlap:
    measured = len(depths)
    if not measured:
        return Overlap(0.0, 0.0, depth_histogram(depths), 0)
    error = 0.0
    if measured < count:
        # For a systematic sample of an ordered list, the variance is estimated from the differences of neighbours.
        variance = float(np.square(np.diff(depths)).sum()) / (2 * (measured - 1))
        error = _DEVIATIONS_OF_95_PERCENT * float(np.sqrt(variance * (1 - measured / count) / measured))
    return Overlap(float(overlaps.mean()), float(depths.mean()), depth_histogram(depths), measured, error)


def _apart(low: Ranks, high: Ranks, partition: Ranks) -> tuple[Ranks, Ranks]:
    """Returns spans in which each partition lies above the previous one, with the lowest possible ranks."""
    if not partition.any():
        return low, high
    offset = partition * (int(high.max()) + 1)
    _, positions = ranked(low + offset, high + offset)
    return positions[: len(low)], positions[len(low) :]


def _begun_and_ended(low: Ranks, high: Ranks) -> tuple[Counts, Counts]:
    """Returns for each rank how many spans start at or before it, and how many end before it."""
    size = int(high.max(initial=0)) + 1
    begun = np.cumsum(np.bincount(low, minlength=size))
    ended = np.cumsum(np.bincount(high + 1, minlength=size + 1))[:-1]
    return begun, ended


def _overlaps_along(low: Ranks, high: Ranks) -> Counts:
    """Returns how many other spans each span intersects: all except those that end before it or start after it."""
    begun, ended = _begun_and_ended(low, high)
    return (begun[high] - ended[low] - 1).astype(np.int64)


def _depths(low: Ranks, high: Ranks) -> Counts:
    """Returns the largest number of files that share one rank within each span."""
    begun, ended = _begun_and_ended(low, high)
    return _range_maxima((begun - ended).astype(np.int64), low, high)


def _range_maxima(values: Counts, first: Ranks, last: Ranks) -> Counts:
    """Returns the largest value of each range, ends included, from maxima over windows of power-of-two length."""
    level = np.frexp((last - first + 1).astype(np.float64))[1] - 1
    found = np.empty(len(first), np.int64)
    width, maxima = 1, values
    for number in range(int(level.max(initial=-1)) + 1):
        asked = np.flatnonzero(level == number)
        found[asked] = np.maximum(maxima[first[asked]], maxima[last[asked] - width + 1])
        maxima = np.maximum(maxima[:-width], maxima[width:])
        width *= 2
    return found


def _counted_pairs(along: tuple[Ranks, Ranks], others: Sequence[tuple[Ranks, Ranks]]) -> Counts:
    """Returns how many other boxes each box intersects, from the pairs that intersect along one column."""
    order = np.argsort(along[0], kind="stable")
    low, high = along[0][order], along[1][order]
    met_later = np.searchsorted(low, high, side="right") - np.arange(len(order)) - 1
    sides = [(first[order], last[order]) for first, last in others]
    meeting = np.zeros(len(order), np.int64)
    for start, end in _batches(met_later):
        counts = met_later[start:end]
        left = np.repeat(np.arange(start, end), counts)
        right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
        for first, last in sides:
            both = (first[left] <= last[right]) & (first[right] <= last[left])
            left, right = left[both], right[both]
        meeting += np.bincount(left, minlength=len(order)) + np.bincount(right, minlength=len(order))
    found = np.empty_like(meeting)
    found[order] = meeting
    return found


def _batches(sizes: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yields ranges of positions whose sizes add up to about `_PAIRS_AT_ONCE`."""
    batch = np.cumsum(sizes) // _PAIRS_AT_ONCE
    starts = np.flatnonzero(np.diff(batch, prepend=-1)).tolist()
    yield from zip(starts, [*starts[1:], len(sizes)], strict=True)


def _sampled_overlaps(probes: npt.NDArray[np.int64], sides: Sequence[tuple[Ranks, Ranks]]) -> Counts:
    """Returns how many other boxes each of some boxes intersects."""
    sides = [(low.astype(np.int32), high.astype(np.int32)) for low, high in sides]
    counts = []
    for start in range(0, len(probes), _PROBES_AT_ONCE):
        chunk = probes[start : start + _PROBES_AT_ONCE]
        meets = np.logical_and.reduce(
            [(low <= high[chunk, None]) & (high >= low[chunk, None]) for low, high in sides], axis=0
        )
        counts.append(meets.sum(axis=1) - 1)
    return np.concatenate(counts).astype(np.int64)
