"""Quantile encoding: a key becomes its rank among boundaries drawn from a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.curve.keys import Comparable

BUCKETS = 1024


@dataclass(frozen=True)
class Boundaries:
    """Where ranks begin.

    Attributes:
        values: Comparable values, strictly rising; each is the first of its rank.
    """

    values: npt.NDArray[Any]

    @classmethod
    def of_sample(cls, sample: Comparable, buckets: int = BUCKETS) -> Boundaries:
        """Chooses boundaries so that each rank holds about as many rows.

        Few distinct values get a rank each. Among many, a value heavier than a bucket is alone in its rank, so that
        a cut can set it apart from its neighbours.

        Args:
            sample: Values of one key in a uniform sample of the rows.
            buckets: Ranks to aim at.
        """
        present = sample.values[~sample.nulls]
        distinct, counts = np.unique(present, return_counts=True)
        if len(distinct) <= buckets:
            return cls(distinct)
        before = np.cumsum(counts) - counts
        step = len(present) / buckets
        starts = np.zeros(len(distinct), dtype=bool)
        starts[0] = True
        starts[1:] = (before[1:] // step) > (before[:-1] // step)
        heavy = counts > step
        starts |= heavy
        starts[1:] |= heavy[:-1]
        return cls(distinct[starts])

    @property
    def rank_count(self) -> int:
        """Ranks that can occur, that of null (0) included."""
        return len(self.values) + 2

    def ranks(self, values: Comparable) -> npt.NDArray[np.int32]:
        """The rank of each value: 0 for null, rising with the value, equal for equal values.

        Returns:
            int32[n].
        """
        found = np.searchsorted(self.values, values.values, side="right").astype(np.int32) + np.int32(1)
        found[values.nulls] = 0
        return found


def bits_for(distinct_ranks: int) -> int:
    """Bits that hold so many ranks; a column with one rank deserves none."""
    return max(0, int(distinct_ranks - 1).bit_length())
