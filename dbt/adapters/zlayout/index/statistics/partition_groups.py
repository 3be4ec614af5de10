"""Partition groups: numbers rows by the partition that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class RowGroups:
    """Groups of rows with equal values.

    Attributes:
        group_of_row: The group of each row; groups are numbered by first appearance.
        first_rows: The first row of each group.
    """

    group_of_row: npt.NDArray[np.int64]
    first_rows: npt.NDArray[np.int64]

    @property
    def group_count(self) -> int:
        """Number of groups."""
        return len(self.first_rows)


def group_rows(columns: Sequence[pa.Array], row_count: int) -> RowGroups:
    """Groups rows by equal values; nulls are equal to each other.

    Args:
        columns: Partition columns as text; without columns all rows form one group.
        row_count: Length of each.
    """
    codes = np.zeros(row_count, np.int64)
    for column in columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes = codes * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
        # Renumbered for each column, so that many columns do not overflow.
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    number = np.empty_like(by_appearance)
    number[by_appearance] = np.arange(len(by_appearance))
    return RowGroups(number[group.reshape(-1)].astype(np.int64), first[by_appearance].astype(np.int64))
