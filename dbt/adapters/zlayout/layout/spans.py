"""Spans: the range of a column that each file covers, as ranks among the bounds of all files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.curve.keys import comparable, floats_of
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.column_bounds import Statistics
from dbt.adapters.zlayout.pruning.statistics.validation import (
    Counts,
    Facts,
    counts_contradict,
    facts_of,
    row_counts,
)
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags

# Number of bytes that a float64 can represent exactly.
_TEXT_DIGITS = 6


@dataclass(frozen=True, eq=False)
class Spans:
    """The ranges of one column that n files cover.

    The m distinct bounds of all files have the ranks 1 … m. Rank 0 stands for null, which sorts first, and m + 1 for
    NaN, which sorts last. A file without values lies at one of these; in a file with values, nulls and NaN do not widen
    the span. An unknown bound lies beyond all others: 0 below, m + 1 above. Strings that differ only in trailing NUL
    bytes are equal.

    Attributes:
        low: int64[n], rank of the smallest value.
        high: int64[n], rank of the largest value.
        constant: bool[n], whether all rows of the file are known to be equal: one value, all null, or all NaN.
        unknown: bool[n], whether a bound is unknown although there may be values.
        steps: float64[m - 1], distances of neighbouring bounds, finite: in values if they can be counted (1 for
            consecutive integers or days), else on a scale specific to the column.
        countable: Whether the column's values are whole numbers of some unit.
        bound_count: m.
    """

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    constant: Flags
    unknown: Flags
    steps: npt.NDArray[np.float64]
    countable: bool
    bound_count: int

    @property
    def has_values(self) -> Flags:
        """bool[n], whether the file may hold anything but nulls and NaN."""
        with_values: Flags = (self.high > 0) & (self.low <= self.bound_count)
        return with_values


def validated(statistics: Statistics, types: Mapping[ColumnPath, pa.DataType]) -> dict[ColumnPath, Facts | None]:
    """Returns the validated statistics of columns, as in pruning; None for a column without any.

    Args:
        statistics: The statistics of n files.
        types: The columns and their types.
    """
    bounds = {path: statistics.column(path) for path in types}
    rows = row_counts(statistics.row_count)
    contradicted = {path: counts_contradict(each, rows) for path, each in bounds.items() if each is not None}
    rows = reduce(Counts.without, contradicted.values(), rows)
    return {
        path: None if each is None else facts_of(each, types[path], rows, contradicted[path])
        for path, each in bounds.items()
    }


def spans_of(facts: Facts | None, column_type: pa.DataType, file_count: int) -> Spans:
    """Returns the spans of one column.

    Args:
        facts: The facts of n files; None if nothing is known about any.
        file_count: n.
    """
    if facts is None:
        yes, no = np.ones(file_count, np.bool_), np.zeros(file_count, np.bool_)
        return Spans(np.zeros(file_count, np.int64), np.ones(file_count, np.int64), no, yes, np.empty(0), False, 0)
    low, high = comparable(facts.minimum), comparable(facts.maximum)
    distinct, positions = ranked(low.values[~low.nulls], high.values[~high.nulls])
    nothing_below, nothing_above = np.int64(0), np.int64(len(distinct) + 1)
    first = np.full(len(low), nothing_below)
    last = np.full(len(high), nothing_above)
    known_lows = len(low) - int(low.nulls.sum())
    first[~low.nulls] = positions[:known_lows] + 1
    last[~high.nulls] = positions[known_lows:] + 1
    empty = ~facts.may_have_value
    first[empty & facts.may_be_nan] = nothing_above
    last[empty & ~facts.may_be_nan] = nothing_below
    one_value = facts.minimum_exact & facts.maximum_exact & (first == last) & ~facts.may_be_null & ~facts.may_be_nan
    return Spans(
        low=first,
        high=last,
        constant=one_value | (empty & ~(facts.may_be_null & facts.may_be_nan)),
        unknown=~empty & (low.nulls | high.nulls),
        steps=_steps(distinct, column_type),
        countable=distinct.dtype == np.int64 and not pa.types.is_floating(column_type),
        bound_count=len(distinct),
    )


def ranked(low: npt.NDArray[Any], high: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Returns the distinct values of two arrays, ascending, and the positions among them of ``low``, then ``high``."""
    distinct, positions = np.unique(np.concatenate([low, high]), return_inverse=True)
    return distinct, positions.reshape(-1).astype(np.int64)


def _steps(distinct: npt.NDArray[Any], column_type: pa.DataType) -> npt.NDArray[np.float64]:
    if distinct.dtype != np.int64:
        steps = np.diff(_numbers_of_bytes(distinct))
        # Texts that begin alike in several ways: their places are all that is known of their distances.
        return steps if (steps > 0).all() else np.ones(len(steps))
    if pa.types.is_floating(column_type):
        largest = np.finfo(np.float64).max / 4
        return np.diff(np.clip(floats_of(distinct), -largest, largest))
    # Unsigned, so that the distance between extreme integers does not overflow.
    return np.diff(distinct.view(np.uint64)).astype(np.float64)


def _numbers_of_bytes(texts: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Returns numbers in the order of strings: the bytes after the common prefix of all, as digits."""
    digits = np.ascontiguousarray(texts).view(np.uint8).reshape(len(texts), texts.dtype.itemsize)
    differing = np.flatnonzero((digits != digits[:1]).any(axis=0))
    start = int(differing[0]) if len(differing) else 0
    numbers = np.zeros(len(texts))
    for place, column in enumerate(digits[:, start : start + _TEXT_DIGITS].T):
        numbers += column * 256.0 ** (_TEXT_DIGITS - 1 - place)
    return numbers
