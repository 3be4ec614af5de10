"""Opened index slices, which read what is asked of them and no more."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import ColumnPath

DIGEST_BYTES = 8
_DIGEST = re.compile(r"_([0-9a-f]{16})\.(parquet|stats)$")

Groups = npt.NDArray[np.int64]
Note = Callable[[str], None]


class SliceStore(Protocol):
    """Reads slices."""

    def read(self, path: str) -> bytes:
        """Returns the content of a file, by its path relative to the table."""
        ...

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        """Returns the last bytes of a file, or the whole file if it is smaller."""
        ...

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Returns parts of a file."""
        ...


class OpenSlice(Protocol):
    """One slice; threads may share it.

    Attributes:
        paths: The name of each column's statistics, by the column.
        types: The type of every column.
        group_rows: int64, the number of rows in each row group.
        row_count: Number of rows.
        size_bytes: Memory that the open slice takes, without what `HELD` counts.
    """

    paths: dict[ColumnPath, str]
    types: dict[str, pa.DataType]
    group_rows: Groups
    row_count: int
    size_bytes: int

    def groups_of(self, paths: npt.NDArray[np.object_]) -> Groups:
        """Returns the row groups that may have rows of some files, ascending; the others have none."""
        ...

    def load(self, names: Collection[str], groups: Groups | None = None) -> None:
        """Reads columns that are not in memory, of some row groups or of all, at once.

        Raises:
            StoreError: They cannot be read.
        """
        ...

    def column(self, name: str, note: Note, groups: Groups | None = None) -> pa.Array:
        """Returns a column's rows of some row groups, one group after the other, or all rows.

        Args:
            name: The column.
            note: Receives a sentence for each damaged chunk; its rows are null.
            groups: The row groups, ascending.

        Raises:
            CorruptError: The column is missing or cannot be decoded.
            StoreError: It cannot be read.
        """
        ...


def digest_in(path: str) -> str | None:
    """Returns the digest in the name of a slice, as hexadecimal digits."""
    match = _DIGEST.search(path)
    return None if match is None else match[1]


def digest_of(content: bytes) -> bytes:
    """Returns the digest of some bytes."""
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()
