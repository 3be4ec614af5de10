"""The interface through which pruning reads statistics: vectors with one entry per file (or partition).

Each stage of a scan reads the statistics of the files that earlier stages have left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import Column, ColumnPath
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags

_WORTH_TAKING = 0.5


@dataclass(frozen=True)
class ColumnBounds:
    """Statistics of one column; every array has one entry per file, and null always means unknown.

    Attributes:
        type: Arrow type of the bounds.
        minimum: A value of that type; no value of the file that is neither null nor NaN is below it.
        maximum: A value of that type; no value of the file that is neither null nor NaN is above it.
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


class Membership(Protocol):
    """Which values each of a list of files may hold, as Bloom filters or lookup indexes know."""

    @property
    def label(self) -> str:
        """What explanations call it, such as 'its Bloom filter'."""
        ...

    @property
    def lack(self) -> str:
        """What explanations say about a column of a file for which it has no answer."""
        ...

    @property
    def knows_null(self) -> bool:
        """Whether it knows about null."""
        ...

    def may_hold(self, column: Column, values: pa.Array | pa.Scalar) -> Flags | None:
        """Returns for each file whether it may hold one of the values; None if that is unknown for all files."""
        ...

    def may_hold_together(self, wanted: Mapping[Column, pa.Array | pa.Scalar]) -> Sequence[Together]:
        """Returns what is known about several columns together.

        Args:
            wanted: The values by column.
        """
        ...

    def lacks(self, column: Column) -> Flags | None:
        """Returns for which files it is unknown; None if it is for all files."""
        ...


@dataclass(frozen=True)
class Together:
    """What is known about several columns together.

    Attributes:
        possible: For each file whether it may hold a row with one of the values of each column.
    """

    columns: tuple[Column, ...]
    possible: Flags


@dataclass(frozen=True)
class SomeMembership:
    """The membership in some of the files.

    Attributes:
        whole: The membership in all files.
        positions: The positions of the selected files.
    """

    whole: Membership
    positions: npt.NDArray[np.int64] | slice

    @property
    def label(self) -> str:
        """What explanations call it."""
        return self.whole.label

    @property
    def lack(self) -> str:
        """What explanations say about a column of a file for which it has no answer."""
        return self.whole.lack

    @property
    def knows_null(self) -> bool:
        """Whether it knows about null."""
        return self.whole.knows_null

    def may_hold(self, column: Column, values: pa.Array | pa.Scalar) -> Flags | None:
        """Returns for each file whether it may hold one of the values; None if that is unknown for all files."""
        found = self.whole.may_hold(column, values)
        return None if found is None else found[self.positions]

    def may_hold_together(self, wanted: Mapping[Column, pa.Array | pa.Scalar]) -> Sequence[Together]:
        """Returns what is known about several columns together."""
        return [Together(each.columns, each.possible[self.positions]) for each in self.whole.may_hold_together(wanted)]

    def lacks(self, column: Column) -> Flags | None:
        """Returns for which files it is unknown; None if it is for all files."""
        found = self.whole.lacks(column)
        return None if found is None else found[self.positions]


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


def worth_taking(left: Flags) -> npt.NDArray[np.int64] | None:
    """Returns the positions of the files that are left. None if they are most: then evaluating all files is faster."""
    positions = np.flatnonzero(left)
    return None if len(positions) > _WORTH_TAKING * len(left) else positions
