"""The narrow seam through which statistics come in: one entry a file (or partition), in vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import ColumnPath


@dataclass(frozen=True)
class ColumnBounds:
    """Statistics of one column; every array has one entry a file, and null always means unknown.

    Attributes:
        type: Arrow type of the bounds.
        minimum: Typed; no value of the file that is neither null nor NaN is below it.
        maximum: Typed; no value of the file that is neither null nor NaN is above it.
        minimum_exact: bool; false where the minimum is only a lower bound (cut off).
        maximum_exact: bool; false where the maximum is only an upper bound (cut off).
        null_count: int64, rows in which the column is null (for a struct field also because the struct is).
        nan_count: int64, rows in which it is NaN; 0 for types without NaN.
    """

    type: pa.DataType
    minimum: pa.Array
    maximum: pa.Array
    minimum_exact: pa.Array
    maximum_exact: pa.Array
    null_count: pa.Array
    nan_count: pa.Array


class Statistics(Protocol):
    """What is known of a list of files."""

    @property
    def row_count(self) -> pa.Array:
        """int64, rows of each file; null where unknown. Its length is the number of files."""

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        """Returns the statistics of a column, or None where there are none for any file."""
