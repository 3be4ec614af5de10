"""Statistics of a subset of files: those that earlier stages have left."""

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
        whole: The statistics of all files.
        positions: int64, ascending: the positions of the selected files.
    """

    whole: Statistics
    positions: npt.NDArray[np.int64]

    @property
    def row_count(self) -> pa.Array:
        """int64, rows of each file; null if unknown."""
        return self.whole.row_count.take(pa.array(self.positions))

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        """Returns the statistics of a column; None if no file has any."""
        found = self.whole.column(path)
        if found is None:
            return None
        at = pa.array(self.positions)
        taken = {each.name: getattr(found, each.name).take(at) for each in fields(found) if each.name != "type"}
        return ColumnBounds(type=found.type, **taken)


def statistics_of(whole: Statistics, left: Flags) -> tuple[Statistics, npt.NDArray[np.int64] | slice]:
    """Returns statistics to decide the remaining files with, and the positions of their entries among all files.

    A small subset is extracted; for most of the files it is cheaper to evaluate all of them.
    """
    positions = np.flatnonzero(left)
    if len(positions) > _WORTH_TAKING * len(left):
        return whole, slice(None)
    return SomeStatistics(whole, positions), positions
