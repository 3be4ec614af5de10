"""Expected reads: how many files a random condition reads, from the range of rows that each file covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.layout.spans import Spans

_NARROWEST = 1e-10
_PROBES = 256
_BATCHES = 16
_ENOUGH_PAIRS = 1 << 21

Shares = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RowRanges:
    """The range of rows that contains a file's values when all rows are sorted by one column.

    Attributes:
        start: float64[n], 0 … 1: the share of rows below the file's smallest value.
        end: float64[n], 0 … 1: the share of rows up to its largest value, at least ``start``; both are 0 for a file
            without values.
        has_values: bool[n].
    """

    start: Shares
    end: Shares
    has_values: npt.NDArray[np.bool_]


def row_ranges(spans: Spans, row_count: npt.NDArray[np.int64]) -> RowRanges:
    """Spreads the rows of each file evenly over the values of its span, and sorts all by value.

    Narrow files reproduce the table's distribution without further information. For whole numbers and days each value
    has a share of the rows; for other types a single value has none, unless a file holds nothing else.

    Args:
        spans: The spans of n files.
        row_count: int64[n].
    """
    has_values = spans.has_values
    bounds = spans.bound_count
    if not bounds:
        return RowRanges(np.zeros(len(has_values)), has_values.astype(np.float64), has_values)
    # One cell for each bound, and one for the gap between it and the next.
    mass = np.zeros(2 * bounds - 1)
    single = 1.0 if spans.countable else 0.0
    mass[0::2] = single
    # The ratio of the narrowest gap to the whole column must fit into a float's precision.
    mass[1::2] = np.maximum(spans.steps, _NARROWEST * spans.steps.sum()) - single
    first = 2 * (np.clip(spans.low, 1, bounds) - 1)
    last = 2 * (np.clip(spans.high, 1, bounds) - 1)
    rows = np.where(has_values, row_count, 0).astype(np.float64)
    upto = np.concatenate([[0.0], np.cumsum(mass)])
    spread = first < last
    density = np.divide(rows, upto[last + 1] - upto[first], out=np.zeros_like(rows), where=spread)
    begun = np.bincount(first, density, len(upto)) - np.bincount(last + 1, density, len(upto))
    files_there = np.cumsum(np.bincount(first, spread, len(upto)) - np.bincount(last + 1, spread, len(upto)))[:-1]
    # Cells that no file covers have no rows, whatever rounding has left there.
    held = np.where(files_there > 0, np.maximum(np.cumsum(begun)[:-1], 0) * mass, 0) + np.bincount(
        first, np.where(spread, 0, rows), len(mass)
    )
    below = np.concatenate([[0.0], np.cumsum(held)])
    total = below[-1]
    below = np.minimum(below / total, 1.0) if total else np.linspace(0, 1, len(below))
    return RowRanges(
        np.where(has_values, below[first], 0.0),
        np.where(has_values, below[last + 1], 0.0),
        has_values,
    )


def files_of_a_range(columns: Sequence[RowRanges], fraction: float) -> float:
    """Returns how many files a random box reads on average.

    For each column the box has an independent range that holds a given share of the rows, at a uniformly random
    position. It has no condition on partitions, and nulls never match.

    Args:
        columns: The columns of n files each; one column or more.
        fraction: The share of rows in a range, 0 or more and below 1.
    """
    chances = np.ones(len(columns[0].start))
    for each in columns:
        # A range that reads the file starts at most ``fraction`` before it, and at the latest where the file ends.
        earliest = np.maximum(each.start - fraction, 0.0)
        latest = np.minimum(each.end, 1.0 - fraction)
        chances *= np.where(each.has_values, np.clip((latest - earliest) / (1.0 - fraction), 0.0, 1.0), 0.0)
    return float(chances.sum())


def files_of_a_row(columns: Sequence[RowRanges], row_count: npt.NDArray[np.int64]) -> float:
    """Returns how many files are read on average by equality with the values of a random row in all columns.

    The position of a row within its file is assumed to be independent between columns. If there are more than 256
    files, rows of 256 files are sampled, spread evenly over all rows. The sample stops early, at the earliest after a
    sixteenth of it, once its rows have met two million files.

    Args:
        columns: The columns of n files each; one column or more.
        row_count: int64[n].
    """
    weights = np.where(np.logical_and.reduce([each.has_values for each in columns]), row_count, 0).astype(np.float64)
    total = weights.sum()
    if not total:
        return 0.0
    probes = np.flatnonzero(weights)
    if len(probes) > _PROBES:
        places = (np.arange(_PROBES) + 0.5) * (total / _PROBES)
        probes, weights = np.searchsorted(np.cumsum(weights), places), np.ones(len(weights))
    expected = drawn = 0.0
    pairs = 0
    for start in range(_BATCHES):
        # Each batch is spread over all rows, so that a few batches represent all.
        chunk = probes[start::_BATCHES]
        meets = np.logical_and.reduce(
            [(each.start < each.end[chunk, None]) & (each.end > each.start[chunk, None]) for each in columns], axis=0
        )
        row, other = np.nonzero(meets)
        shares = np.ones(len(row))
        for each in columns:
            first, last = each.start[chunk][row], each.end[chunk][row]
            shares *= (np.minimum(last, each.end[other]) - np.maximum(first, each.start[other])) / (last - first)
        expected += float((shares * weights[chunk][row]).sum())
        drawn += float(weights[chunk].sum())
        pairs += len(row)
        if pairs > _ENOUGH_PAIRS:
            break
    return expected / drawn
