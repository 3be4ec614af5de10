"""Key space: the position of files when each key is measured by the share of the table's rows up to a value.

On that scale a file's extent along a key is the share of point queries on the key that read the file, if constants are
drawn from the rows. Rows are assumed to be spread evenly between a file's bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.curve.keys import Comparable

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class KeyBounds:
    """The smallest and largest value of one key in each of n files.

    Attributes:
        low: n values; null where unknown, or where a file has no value.
        high: n values, in the same way.
        empty: bool[n], files whose rows are all null: no comparison reads them.
    """

    low: Comparable
    high: Comparable
    empty: npt.NDArray[np.bool_]

    @property
    def unknown(self) -> npt.NDArray[np.bool_]:
        """bool[n], files without known bounds: they may hold any value."""
        found: npt.NDArray[np.bool_] = (self.low.nulls | self.high.nulls) & ~self.empty
        return found

    def take(self, files: npt.NDArray[Any]) -> KeyBounds:
        """Returns the bounds of some files, by position or mask."""
        return KeyBounds(_taken(self.low, files), _taken(self.high, files), self.empty[files])

    def plus(self, more: KeyBounds) -> KeyBounds:
        """Returns the bounds of these files followed by those of others."""
        return KeyBounds(
            _joined(self.low, more.low), _joined(self.high, more.high), np.concatenate([self.empty, more.empty])
        )


@dataclass(frozen=True, eq=False)
class Boxes:
    """The extent of n files along k keys.

    Attributes:
        low: float64[k, n] in 0 … 1.
        high: float64[k, n], never below ``low``.
    """

    low: Floats
    high: Floats

    @property
    def widths(self) -> Floats:
        """float64[k, n]: the share of point queries on each key that read each file."""
        found: Floats = self.high - self.low
        return found


def boxes_of(keys: Sequence[KeyBounds], rows: npt.NDArray[np.int64], boundaries: Sequence[Comparable] = ()) -> Boxes:
    """Places files in the key space.

    Args:
        keys: The bounds of each key, for n files.
        rows: int64[n], rows of each file.
        boundaries: For each key, values that once divided the rows into equal parts, such as those of a stored curve.
            They describe the distribution of rows better than distances do. Empty, or one for each key.
    """
    count = len(rows)
    low, high = np.zeros((len(keys), count)), np.ones((len(keys), count))
    for number, key in enumerate(keys):
        at_low, at_high = _coordinates(key, boundaries[number] if boundaries else None)
        known = ~(key.unknown | key.empty)
        below, up_to = _mass(at_low[known], at_high[known], rows[known].astype(float))
        low[number, known], high[number, known] = below, up_to
        high[number, key.empty] = 0.0
    return Boxes(low, high)


def fullest_bucket(key: KeyBounds, rows: npt.NDArray[np.int64], boundaries: Comparable) -> float:
    """Returns the largest share of rows between two neighbouring boundaries, or beyond the first or last of them.

    Boundaries that once divided the rows evenly cannot divide those of one bucket. Files with a single value are
    excluded: no boundaries could divide them.

    Args:
        key: The bounds of n files.
        rows: int64[n].
        boundaries: Boundaries of a stored curve.
    """
    low, high = _coordinates(key, boundaries)
    spread = ~(key.unknown | key.empty) & (low < high)
    if not spread.any() or len(boundaries) < 2:
        return 0.0
    low, high, parts = low[spread], high[spread], rows[spread].astype(float)
    buckets = np.arange(np.floor(low.min()), np.ceil(high.max()) + 1)
    order_low, order_high = np.argsort(low), np.argsort(high)
    density = parts / (high - low)

    def up_to(x: Floats) -> Floats:
        begun, ended = np.searchsorted(low[order_low], x), np.searchsorted(high[order_high], x)
        rate = _before(density[order_low])[begun] - _before(density[order_high])[ended]
        offset = _before((density * low)[order_low])[begun] - _before((density * low)[order_high])[ended]
        found: Floats = rate * x - offset + _before(parts[order_high])[ended]
        return found

    return float(np.diff(up_to(buckets)).max() / max(1, int(rows.sum())))


def _before(values: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])


def _coordinates(key: KeyBounds, boundaries: Comparable | None) -> tuple[Floats, Floats]:
    """Returns the positions of both bounds on a line where distance represents rows."""
    known = ~(key.unknown | key.empty)
    values = np.zeros(0, key.low.values.dtype)
    if boundaries is not None and len(boundaries) >= 2 and boundaries.values.dtype.kind == values.dtype.kind:
        values = boundaries.values
    low, high, at_boundaries = _numbers(key.low.values, key.high.values, values)
    if not len(values) or not known.any():
        return low, high
    # Values beyond the boundaries were added later: they form one more step at either end, however far they extend.
    inner = np.unique(at_boundaries)
    ends = min(inner[0], low[known].min()), max(inner[-1], high[known].max())
    knots = np.concatenate([ends[:1], inner, ends[1:]])
    steps = np.arange(len(knots), dtype=float)
    knots, first = np.unique(knots, return_index=True)
    return np.interp(low, knots, steps[first]), np.interp(high, knots, steps[first])


def _mass(low: Floats, high: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Returns the share of rows below each low end, and up to each high end."""
    if not len(rows) or not rows.sum():
        return np.zeros(len(rows)), np.ones(len(rows))
    grid = np.unique(np.concatenate([low, high]))
    at_low, at_high = np.searchsorted(grid, low), np.searchsorted(grid, high)
    point = at_low == at_high
    at_point = np.bincount(at_low[point], weights=rows[point], minlength=len(grid))
    with np.errstate(divide="ignore"):
        density = np.where(point, 0.0, rows / np.where(point, 1.0, high - low))
    change = np.bincount(at_low, weights=density, minlength=len(grid)) - np.bincount(
        at_high, weights=density, minlength=len(grid)
    )
    between = np.cumsum(change)[:-1] * np.diff(grid)
    below = np.concatenate([[0.0], np.cumsum(at_point[:-1] + between)])
    total = rows.sum()
    return np.clip(below[at_low] / total, 0, 1), np.clip((below + at_point)[at_high] / total, 0, 1)


def _numbers(low: Values, high: Values, boundaries: Values) -> tuple[Floats, Floats, Floats]:
    """Returns the values as floats in the same order. Strings become their ranks among all three arrays."""
    if low.dtype.kind != "S":
        return low.astype(np.float64), high.astype(np.float64), boundaries.astype(np.float64)
    # Strings have no distances, and many of them may begin alike.
    _, places = np.unique(np.concatenate([low, high, boundaries]), return_inverse=True)
    found = places.reshape(-1).astype(np.float64)
    return found[: len(low)], found[len(low) : len(low) + len(high)], found[len(low) + len(high) :]


def _taken(values: Comparable, files: npt.NDArray[Any]) -> Comparable:
    return Comparable(values.values[files], values.nulls[files])


def _joined(values: Comparable, more: Comparable) -> Comparable:
    return Comparable(np.concatenate([values.values, more.values]), np.concatenate([values.nulls, more.nulls]))
