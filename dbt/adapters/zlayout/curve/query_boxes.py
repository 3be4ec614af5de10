"""Boxes that queries select in the key space, with weights. Cuts are placed where they let queries skip most.

Source of the idea: qd-tree (Z. Yang et al., Qd-tree: learning data layouts for big data analytics, SIGMOD 2020), which
cuts where the queries of a workload skip most rows. Here every file keeps its target size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.curve.keys import null_mask
from dbt.adapters.zlayout.curve.quantiles import Boundaries

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_BOXES = 256
_HIGHEST_RANK = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class QueryRanks:
    """Boxes in ranks.

    Attributes:
        low: int64[k, n], the lowest rank of each key that each query asks for.
        high: int64[k, n], the highest one.
        weights: float64[n], positive.
    """

    low: Ints
    high: Ints
    weights: Floats

    def of(self, boxes: npt.NDArray[np.intp]) -> QueryRanks:
        """Returns some of the boxes."""
        return QueryRanks(self.low[:, boxes], self.high[:, boxes], self.weights[boxes])

    def saved(self, key: int, thresholds: Ints, shares: Floats) -> Floats:
        """Returns the share of rows that queries skip, on average, if rows are cut along a key.

        Args:
            thresholds: int64[c]; rows below go to the left.
            shares: float64[c], share of the rows that goes to the left.

        Returns:
            float64[c], in units of the weights.
        """
        skips_right = (self.high[key] < thresholds[:, None]) @ self.weights
        skips_left = (self.low[key] >= thresholds[:, None]) @ self.weights
        found: Floats = skips_right * (1 - shares) + skips_left * shares
        return found


@dataclass(frozen=True, eq=False)
class QueryBoxes:
    """Boxes in values.

    Attributes:
        low: For each key the lowest value that each of n queries asks for; null where it has no lower limit.
        high: The highest one, in the same way.
        weights: float64[n], positive; they sum to 1.
    """

    low: tuple[pa.Array, ...]
    high: tuple[pa.Array, ...]
    weights: Floats

    def __len__(self) -> int:
        return len(self.weights)

    def ranks(self, boundaries: Sequence[Boundaries]) -> QueryRanks:
        """Returns the boxes in ranks.

        Args:
            boundaries: The boundaries of each key.
        """
        return QueryRanks(
            np.stack([_ranks(each, known, 0) for each, known in zip(self.low, boundaries, strict=True)]),
            np.stack([_ranks(each, known, _HIGHEST_RANK) for each, known in zip(self.high, boundaries, strict=True)]),
            self.weights,
        )

    def key_weights(self) -> tuple[float, ...]:
        """Returns for each key the share of queries that restrict it, scaled so that the largest is 1."""
        limits = [
            low.is_valid().to_numpy(zero_copy_only=False) | high.is_valid().to_numpy(zero_copy_only=False)
            for low, high in zip(self.low, self.high, strict=True)
        ]
        shares = [float(self.weights @ limited) for limited in limits]
        most = max(shares, default=0.0)
        return tuple(each / most if most else 1.0 for each in shares)


def _ranks(values: pa.Array, boundaries: Boundaries, unlimited: int) -> Ints:
    found: Ints = boundaries.ranks_of(values).astype(np.int64)
    found[null_mask(values)] = unlimited
    return found
