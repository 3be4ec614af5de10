"""The cost of a layout for its readers, and the least cost that a rewrite of some files could reach.

Cost is the number of bytes that a query reads on average, over point queries on each key with constants drawn from the
rows; opening a file counts as extra bytes. Source: Snowflake's clustering depth, weighted by what a file costs to read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.curve.cuts import key_weights
from dbt.adapters.zlayout.layout.key_space import Boxes, Floats

_OPEN_BYTES = 4 << 20  # Spark's estimate for opening a file: spark.sql.files.openCostInBytes
_OPEN_SHARE = 1 / 32  # of a target-size file, at most: otherwise small tables with small files would all be packed


@dataclass(frozen=True)
class CostModel:
    """How reads are weighted.

    Attributes:
        max_file_bytes: A file above this is too large.
        weights: For each key the share of queries that filter on it; they sum to 1.
    """

    target_bytes: int
    max_file_bytes: int
    weights: tuple[float, ...]

    @classmethod
    def of(
        cls, target_bytes: int, max_file_bytes: int, keys: int, curve: str, weights: tuple[float, ...] | None = None
    ) -> CostModel:
        """Weights keys as given, or as cuts do, or only the first key on a linear curve."""
        if curve == "linear" and keys:
            return cls(target_bytes, max_file_bytes, (1.0, *(0.0 for _ in range(keys - 1))))
        weights = weights or key_weights(keys)
        return cls(target_bytes, max_file_bytes, tuple(each / sum(weights) for each in weights))

    @property
    def open_bytes(self) -> float:
        """Cost of opening a file."""
        return min(_OPEN_BYTES, self.target_bytes * _OPEN_SHARE)

    def share_read(self, boxes: Boxes) -> Floats:
        """float64[n]: the share of queries that read each file; 1.0 for all files in a table without keys."""
        if not self.weights:
            return np.ones(boxes.low.shape[1])
        found: Floats = np.asarray(self.weights) @ boxes.widths
        return found

    def cost(self, boxes: Boxes, size_bytes: npt.NDArray[np.int64]) -> Floats:
        """float64[n]: bytes of each file that a query reads on average."""
        found: Floats = self.share_read(boxes) * (size_bytes + self.open_bytes)
        return found

    def most_files(self, size_bytes: npt.NDArray[np.int64]) -> Floats:
        """float64[n]: how many files each file may become: one, unless it is too large.

        Smaller files always skip better, but that is a question of the target size and no reason to rewrite.
        """
        parts = np.maximum(1.0, np.rint(size_bytes / self.target_bytes))
        found: Floats = np.where(size_bytes > self.max_file_bytes, parts, 1.0)
        return found

    def files_for(self, size_bytes: Floats, most_files: Floats) -> Floats:
        """float64[m]: how many files each of m groups becomes.

        Args:
            size_bytes: float64[m], size of each group.
            most_files: float64[m], the sum of `most_files` over the group's files.
        """
        found: Floats = np.minimum(np.maximum(1.0, np.rint(size_bytes / self.target_bytes)), most_files)
        return found

    def least_cost(self, sides: Floats, size_bytes: Floats, most_files: Floats) -> Floats:
        """float64[m]: the cost of m groups if each were cut evenly inside its box.

        Args:
            sides: float64[k, m], extent of each group's box.
            size_bytes: float64[m], size of each group.
            most_files: As for `files_for`.
        """
        parts = self.files_for(size_bytes, most_files)
        weighted = np.asarray(self.weights)[:, None] * sides
        widths = np.minimum(weighted, _cut_evenly(weighted, parts))
        found: Floats = widths.sum(axis=0) * (size_bytes + parts * self.open_bytes)
        return found


def _cut_evenly(sides: Floats, parts: Floats) -> Floats:
    """float64[m]: the width to which boxes are cut if each is split along its widest sides until they are even.

    Args:
        sides: float64[k, m].
        parts: float64[m], the number of parts of each box.
    """
    ordered = -np.sort(-sides, axis=0)
    found, open_ = ordered[0], np.ones(len(parts), dtype=bool)
    with np.errstate(divide="ignore"):
        logs = np.cumsum(np.log(ordered), axis=0)
    for count, log in enumerate(logs, 1):
        width = np.exp((log - np.log(parts)) / count)
        rest = ordered[count] if count < len(ordered) else 0.0
        fits = open_ & (width >= rest)
        found = np.where(fits, width, found)
        open_ &= ~fits
    even: Floats = np.nan_to_num(found)
    return even
