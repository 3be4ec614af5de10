"""Statistics of the files that earlier steps have left."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds, Statistics
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags

_WORTH_TAKING = 0.5


@dataclass(frozen=True)
class SomeStatistics:
    """The statistics of some of the files.

    Attributes:
        whole: Of all of them.
        positions: int64, rising: which ones.
    """

    whole: Statistics
    positions: npt.NDArray[np.int64]

    @property
    def row_count(self) -> pa.Array:
        """int64; null where unknown."""
        return self.whole.row_count.take(pa.array(self.positions))

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        """The column's statistics; None where there are none for any file."""
        found = self.whole.column(path)
        if found is None:
            return None
        at = pa.array(self.positions)
        taken = {each.name: getattr(found, each.name).take(at) for each in fields(found) if each.name != "type"}
        return ColumnBounds(type=found.type, **taken)


def statistics_of(whole: Statistics, left: Flags) -> tuple[Statistics, npt.NDArray[np.int64] | slice]:
    """The statistics to decide on the files that are left by, and where these are among all files.

    Few of many are taken out; of most of them it is cheaper to look at all.
    """
    positions = np.flatnonzero(left)
    if len(positions) > _WORTH_TAKING * len(left):
        return whole, slice(None)
    return SomeStatistics(whole, positions), positions
