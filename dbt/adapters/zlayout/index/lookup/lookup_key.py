"""The columns of a lookup index, and the hashes of their values.

Values that Spark holds equal have one hash, and null has a hash of its own. The task that writes a file reports its
hashes as sorted runs, one for each index. A commit merges the runs of its files bucket by bucket, so it reads a run in
parts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.index.bloom.hashing import NULL_HASH, Hashes, combined, distinct, hashes_of, hashes_of_rows
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.store import Store

KeyPaths = tuple[ColumnPath, ...]
"""The columns of a lookup index, sorted: the order in a setting does not matter."""
MOST_BUCKET_BITS = 8
_HASH_BYTES = 8
_LENGTH_BYTES = 8
_LIKELY_BYTES = 64 << 10

RunPiece = bytes | str
"""The runs of a file; or the path of a file that holds them."""


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


def run_bytes(path: str, runs: Mapping[LookupKey, Hashes | None]) -> bytes:
    """Returns the runs of a file.

    Args:
        path: The file.
        runs: The distinct hashes of its rows, sorted, by index; None if they are unknown.
    """
    described = [
        {"paths": key.paths, "types": key.types, "starts": None if hashes is None else _starts(hashes)}
        for key, hashes in runs.items()
    ]
    trailer = json.dumps({"path": path, "runs": described}).encode()
    content = [np.ascontiguousarray(hashes, "<u8").tobytes() for hashes in runs.values() if hashes is not None]
    return b"".join([*content, trailer, len(trailer).to_bytes(_LENGTH_BYTES, "little")])


def _starts(hashes: Hashes) -> list[int]:
    """Returns where each of the finest buckets starts, and the number of hashes at the end."""
    edges = np.arange(1, 1 << MOST_BUCKET_BITS, dtype=np.uint64) << np.uint64(64 - MOST_BUCKET_BITS)
    return [0, *np.searchsorted(hashes, edges).tolist(), len(hashes)]


@dataclass(frozen=True)
class HashRun:
    """The sorted hashes of a file for one index.

    Attributes:
        path: The file.
        paths: The columns of the index.
        types: Their types, as text.
        starts: Where each of the 256 finest buckets starts among the hashes, and their number at the end.
        is_known: Whether the hashes are known. If not, there are none here.
    """

    path: str
    paths: KeyPaths
    types: tuple[str, ...]
    starts: tuple[int, ...]
    is_known: bool
    _store: Store
    _piece: RunPiece
    _offset: int

    @property
    def count(self) -> int:
        """Number of hashes."""
        return self.starts[-1]

    def bucket(self, number: int, bits: int) -> Hashes:
        """Returns the hashes of a bucket, of which there are 2 to the power of ``bits``.

        Raises:
            StoreError: They cannot be read.
        """
        width = 1 << (MOST_BUCKET_BITS - bits)
        first, after = self.starts[number * width], self.starts[(number + 1) * width]
        start, length = self._offset + _HASH_BYTES * first, _HASH_BYTES * (after - first)
        if isinstance(self._piece, bytes):
            return np.frombuffer(self._piece, "<u8", after - first, start)
        (content,) = self._store.read_ranges(self._piece, [start], [length]) if length else (b"",)
        return np.frombuffer(content, "<u8")


def runs_of(store: Store, piece: RunPiece) -> Sequence[HashRun]:
    """Returns the runs in a report.

    Raises:
        StoreError: Their staged file cannot be read.
    """
    tail = piece if isinstance(piece, bytes) else store.read_tail(piece, _LIKELY_BYTES)
    length = int.from_bytes(tail[-_LENGTH_BYTES:], "little") + _LENGTH_BYTES
    if isinstance(piece, str) and length > len(tail):
        tail = store.read_tail(piece, length)
    report: dict[str, Any] = json.loads(tail[-length:-_LENGTH_BYTES])
    found, offset = [], 0
    for each in report["runs"]:
        paths = tuple(tuple(path) for path in each["paths"])
        starts = tuple(each["starts"] or [0] * (1 + (1 << MOST_BUCKET_BITS)))
        is_known = each["starts"] is not None
        run = HashRun(report["path"], paths, tuple(each["types"]), starts, is_known, store, piece, offset)
        found.append(run)
        offset += _HASH_BYTES * run.count
    return found
