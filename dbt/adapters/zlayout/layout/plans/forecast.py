"""Forecast: the files that a rewrite would produce, from a sample of the keys, before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.curve.keys import Comparable, comparable
from dbt.adapters.zlayout.curve.model import CurveModel, PartitionKey
from dbt.adapters.zlayout.layout.measures.key_space import KeyBounds


@dataclass(frozen=True, eq=False)
class Forecast:
    """The files that would replace a group.

    Attributes:
        bounds: Of each key, for n files.
        rows: int64[n].
        size_bytes: int64[n].
    """

    bounds: tuple[KeyBounds, ...]
    rows: npt.NDArray[np.int64]
    size_bytes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)


def forecast(
    sample: pa.Table, model: CurveModel, partition_key: PartitionKey, total_rows: int, total_bytes: int
) -> Forecast:
    """Cuts a sample as the rows would be cut.

    Args:
        sample: One column per key; at least one row.
        model: With cuts for the group.
        partition_key: The partition of the rows; () for a table without partitions.
        total_rows: Rows that the sample represents.
        total_bytes: Their size in files.
    """
    file = model.place(sample.columns, partition_key or None).file
    present, number, counts = np.unique(file, return_inverse=True, return_counts=True)
    parts = np.array([model.shares.get((partition_key, int(each)), 1) for each in present])
    bounds = tuple(_bounds(comparable(column), number, parts) for column in sample.columns)
    share = np.repeat(counts / len(file) / parts, parts)
    rows = np.maximum(1, np.rint(share * total_rows)).astype(np.int64)
    return Forecast(bounds, rows, np.rint(share * total_bytes).astype(np.int64))


def _bounds(key: Comparable, file: npt.NDArray[Any], parts: npt.NDArray[np.int64]) -> KeyBounds:
    """Returns the smallest and largest value of each file, repeated for each part that shares its rows."""
    count = len(parts)
    filled = np.flatnonzero(~key.nulls)
    ordered = filled[np.lexsort((key.values[filled], file[filled]))]
    owner = file[ordered]
    firsts, lasts = np.searchsorted(owner, np.arange(count)), np.searchsorted(owner, np.arange(count), side="right") - 1
    empty = lasts < firsts
    values = key.values[ordered] if len(ordered) else np.zeros(1, key.values.dtype)
    low, high = values[np.where(empty, 0, firsts)], values[np.where(empty, 0, lasts)]
    return KeyBounds(
        Comparable(np.repeat(low, parts), np.repeat(empty, parts)),
        Comparable(np.repeat(high, parts), np.repeat(empty, parts)),
        np.repeat(empty, parts),
    )
