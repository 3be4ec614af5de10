"""The interface through which pruning reads statistics: vectors with one entry per file (or partition)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import ColumnPath


@dataclass(frozen=True)
class ColumnBounds:
    """Statistics of one column; every array has one entry per file, and null always means unknown.

    Attributes:
        type: Arrow type of the bounds.
        minimum: Of that type; no value of the file that is neither null nor NaN is below it.
        maximum: Of that type; no value of the file that is neither null nor NaN is above it.
        minimum_exact: bool; false if the minimum is only a lower bound (truncated).
        maximum_exact: bool; false if the maximum is only an upper bound (truncated).
        null_count: int64, rows in which the column is null (for a struct field also because the struct is null).
        nan_count: int64, rows in which the column is NaN; 0 for types without NaN.
    """

    type: pa.DataType
    minimum: pa.Array
    maximum: pa.Array
    minimum_exact: pa.Array
    maximum_exact: pa.Array
    null_count: pa.Array
    nan_count: pa.Array


class Statistics(Protocol):
    """The statistics of a list of files."""

    @property
    def row_count(self) -> pa.Array:
        """int64, rows of each file; null if unknown. Its length is the number of files."""

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        """Returns the statistics of a column, or None if no file has any."""
