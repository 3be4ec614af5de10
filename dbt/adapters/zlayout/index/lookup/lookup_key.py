"""The columns of a lookup index, and the hashes of their values.

Values that Spark holds equal have one hash, and null has a hash of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.index.bloom.hashing import NULL_HASH, Hashes, combined, distinct, hashes_of, hashes_of_rows
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath

KeyPaths = tuple[ColumnPath, ...]
"""The columns of a lookup index, sorted: the order in a setting does not matter."""


@dataclass(frozen=True)
class LookupKey:
    """One lookup index of a table.

    Attributes:
        columns: Its columns, sorted by path.
    """

    columns: tuple[TrackedColumn, ...]

    @classmethod
    def of(cls, columns: Sequence[TrackedColumn]) -> LookupKey:
        """Returns the key of some columns, in any order."""
        return cls(tuple(sorted(columns, key=lambda each: each.path)))

    @property
    def paths(self) -> KeyPaths:
        """The paths of its columns."""
        return tuple(each.path for each in self.columns)

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its columns, as text."""
        return tuple(str(each.type) for each in self.columns)


def key_name(paths: KeyPaths) -> str:
    """Returns what names of slices call a lookup index."""
    return hashlib.blake2b(json.dumps(paths).encode(), digest_size=6).hexdigest()


def value_hashes(key: LookupKey, columns: Sequence[pa.Array | pa.ChunkedArray]) -> Hashes:
    """Returns the distinct hashes of rows, sorted.

    Args:
        key: The columns of the index.
        columns: Their values in each row, in the order of the key.

    Raises:
        pyarrow.ArrowException: The values cannot be of these types.
    """
    if len(key.columns) > 1:
        pairs = zip(columns, key.columns, strict=True)
        return distinct(combined([hashes_of_rows(values, each.type) for values, each in pairs]))
    hashes = hashes_of(columns[0], key.columns[0].type)
    return with_null(hashes) if may_have_nulls(columns[0]) else hashes


def with_null(hashes: Hashes) -> Hashes:
    """Returns distinct hashes with that of null, sorted."""
    return distinct(np.append(hashes, NULL_HASH))


def may_have_nulls(values: pa.Array | pa.ChunkedArray) -> bool:
    """Returns whether a value is null, or whether a dictionary of the values has a null that some of them may mean."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    named = pa.types.is_dictionary(values.type) and any(each.dictionary.null_count for each in chunks)
    return bool(values.null_count or named)


class HashCollector:
    """Collects the distinct hashes of one file's rows.

    Args:
        key: The columns of the index.
    """

    def __init__(self, key: LookupKey) -> None:
        self._key = key
        self._parts: list[Hashes] | None = []

    def add(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        """Adds rows. Values that are not of the columns' types end the collection, not the write."""
        if self._parts is None:
            return
        try:
            self.add_hashes(value_hashes(self._key, columns))
        except pa.ArrowException:
            self.add_hashes(None)

    def add_hashes(self, hashes: Hashes | None) -> None:
        """Adds the distinct hashes of some rows, sorted; None ends the collection."""
        if self._parts is None or hashes is None:
            self._parts = None
            return
        self._parts.append(hashes)

    def hashes(self) -> Hashes | None:
        """Returns the distinct hashes, sorted; None if some values had none."""
        if self._parts is None:
            return None
        if len(self._parts) != 1:
            self._parts = [distinct(np.concatenate([np.empty(0, np.uint64), *self._parts]))]
        return self._parts[0]
