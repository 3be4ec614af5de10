"""The hashes of one file's values, as the task that writes the file reports them: sorted runs, one for each index.

A commit merges the runs of its files bucket by bucket, so it reads a run in parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dbt.adapters.zlayout.index.bloom.hashing import Hashes
from dbt.adapters.zlayout.index.lookup.lookup_key import KeyPaths, LookupKey
from dbt.adapters.zlayout.store import Store

MOST_BUCKET_BITS = 8
_HASH_BYTES = 8
_LENGTH_BYTES = 8
_LIKELY_BYTES = 64 << 10

RunPiece = bytes | str
"""The runs of a file; or the path of a file that holds them."""


def run_bytes(path: str, runs: Mapping[LookupKey, Hashes | None]) -> bytes:
    """Returns the runs of a file.

    Args:
        path: The file.
        runs: The distinct hashes of its rows, sorted, by index; None if they cannot be told.
    """
    told = [
        {"paths": key.paths, "types": key.types, "starts": None if hashes is None else _starts(hashes)}
        for key, hashes in runs.items()
    ]
    trailer = json.dumps({"path": path, "runs": told}).encode()
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
        is_told: Whether the hashes could be told. If not, there are none here.
    """

    path: str
    paths: KeyPaths
    types: tuple[str, ...]
    starts: tuple[int, ...]
    is_told: bool
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
    told: dict[str, Any] = json.loads(tail[-length:-_LENGTH_BYTES])
    found, offset = [], 0
    for each in told["runs"]:
        paths = tuple(tuple(path) for path in each["paths"])
        starts = tuple(each["starts"] or [0] * (1 + (1 << MOST_BUCKET_BITS)))
        is_told = each["starts"] is not None
        run = HashRun(told["path"], paths, tuple(each["types"]), starts, is_told, store, piece, offset)
        found.append(run)
        offset += _HASH_BYTES * run.count
    return found
