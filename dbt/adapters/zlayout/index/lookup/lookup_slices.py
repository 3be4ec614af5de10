"""Slices of lookup indexes: sorted pairs of a hash and a file, in small blocks, with a table of the blocks at the end.

A slice belongs to one index and one bucket of hashes: those with the same first bits. It says of each of its files that
the pairs are all that the file has in the bucket. A search reads the table once, and then only the blocks of the hashes
that it looks for. The name has the digest of the table, and each block ends with a checksum.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.index.bloom.filter_slices import Positions
from dbt.adapters.zlayout.index.bloom.hashing import Hashes
from dbt.adapters.zlayout.index.lookup.lookup_key import KeyPaths, key_name
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.bounded_parquet import BoundedParquet, parquet_bytes
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles

LOOKUPS = "lookups"
_LENGTH_BYTES = 8
_HASH_BYTES = 8
_CHECK_BYTES = 4
_LIKELY_BYTES = 64 << 10
# A block has half as many pairs to as many. Smaller blocks make a search read less, and the table of blocks larger.
_BLOCK_PAIRS = 128
_MOST_BLOCK_BITS = 32
_NAME = re.compile(r"/\d{17}_(?P<key>[0-9a-f]{12})_(?P<bucket>\d+)of(?P<buckets>\d+)_(?P<digest>[0-9a-f]{16})\.lookup$")


@dataclass(frozen=True)
class SliceName:
    """What the path of a slice says.

    Attributes:
        key: Name of the index, see `key_name`.
        bucket: The first bits of its hashes.
        bits: Number of these bits.
        digest: Digest of its table.
    """

    key: str
    bucket: int
    bits: int
    digest: str

    @classmethod
    def of(cls, path: str) -> SliceName | None:
        """Returns the name in a path; None if no release writes it."""
        match = _NAME.search(path)
        if match is None:
            return None
        bucket, buckets = int(match["bucket"]), int(match["buckets"])
        if not 0 <= bucket < buckets or buckets & (buckets - 1) or buckets >= 1 << 32:
            return None
        return cls(match["key"], bucket, buckets.bit_length() - 1, match["digest"])

    def within(self, hashes: Hashes) -> Flags:
        """Returns which hashes belong to its bucket."""
        inside: Flags = first_bits(hashes, self.bits) == self.bucket
        return inside


def first_bits(hashes: Hashes, bits: int) -> Positions:
    """Returns the number that the first bits of each hash make."""
    if not bits:
        return np.zeros(len(hashes), np.int64)
    found: Positions = (hashes >> np.uint64(64 - bits)).astype(np.int64)
    return found


@dataclass(frozen=True)
class Pairs:
    """The pairs of a slice, sorted by hash.

    Attributes:
        hashes: uint64[n].
        files: int64[n], the position of the file among those of the slice.
        is_known: bool, whether the pairs of each of these files are all that it has.
    """

    hashes: Hashes
    files: Positions
    is_known: Flags

    @classmethod
    def of_runs(cls, runs: Sequence[Hashes], is_known: Flags) -> Pairs:
        """Returns the pairs of the sorted hashes of several files."""
        hashes = np.concatenate([np.empty(0, np.uint64), *runs])
        of_file = np.repeat(np.arange(len(runs)), [len(each) for each in runs])
        # Sorting in place of merging: numpy's stable sort merges runs that are sorted already.
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], of_file[order], is_known)


def slice_bytes(paths: KeyPaths, types: Sequence[str], bits: int, bucket: int, files: DataFiles, pairs: Pairs) -> bytes:
    """Returns a slice.

    Args:
        paths: The columns of the index.
        types: Their types, as text.
        bits: Number of first bits that all its hashes share.
        bucket: These bits.
        files: The files.
        pairs: Their hashes in this bucket.
    """
    count = len(pairs.hashes)
    block_bits = max(0, -(-count // _BLOCK_PAIRS) - 1).bit_length()
    block_bits = min(block_bits, _MOST_BLOCK_BITS - bits)
    blocks = _blocks_of(pairs.hashes, bits, block_bits)
    starts = np.searchsorted(blocks, np.arange((1 << block_bits) + 1))
    kind = "<u2" if len(files) <= 1 << 16 else "<u4"
    hash_bytes = _HASH_BYTES - (bits + block_bits) // 8
    octets = pairs.hashes.astype("<u8").view(np.uint8).reshape(-1, _HASH_BYTES)
    hashes, numbers = np.ascontiguousarray(octets[:, :hash_bytes]), pairs.files.astype(kind)
    content = [
        _with_check(number, hashes[first:after].tobytes() + numbers[first:after].tobytes())
        for number, (first, after) in enumerate(pairwise(starts.tolist()))
        if first < after
    ]
    described = {name: contiguous(files[name]) for name in ("path", *IDENTITY)}
    described["pairs"] = pa.array(np.where(pairs.is_known, np.bincount(pairs.files, minlength=len(files)), -1))
    table = parquet_bytes(pa.table(described))
    places = parquet_bytes(pa.table({"pairs": np.diff(starts)}))
    trailer_fields = {
        "paths": paths,
        "types": list(types),
        "bits": bits,
        "bucket": bucket,
        "block_bits": block_bits,
        "hash_bytes": hash_bytes,
        "file_bytes": int(kind[-1]),
        "table_bytes": len(table),
        "places_bytes": len(places),
    }
    trailer = json.dumps(trailer_fields).encode()
    header = b"".join([table, places, trailer, len(trailer).to_bytes(_LENGTH_BYTES, "little")])
    return b"".join([*content, header, len(header).to_bytes(_LENGTH_BYTES, "little")])


def slice_path(instant: str, paths: KeyPaths, bits: int, bucket: int, content: bytes) -> str:
    """Returns the path of a slice, relative to the table.

    Args:
        instant: The instant of the commit that writes it.
        paths: The columns of the index.
        bits: As for `slice_bytes`.
        bucket: As for `slice_bytes`.
        content: The slice.
    """
    length = int.from_bytes(content[-_LENGTH_BYTES:], "little")
    digest = _digest(content[-_LENGTH_BYTES - length : -_LENGTH_BYTES])
    return f".zlayout/index/{LOOKUPS}/{instant}_{key_name(paths)}_{bucket}of{1 << bits}_{digest}.lookup"


@dataclass(frozen=True)
class Found:
    """The result of a search for n hashes.

    Attributes:
        hash: int64[m], the position of a hash among those looked for, once for each file that holds it.
        file: int64[m], the position of this file among those of the slice.
        damaged: bool[n]: nothing is known about these hashes.
    """

    hash: Positions
    file: Positions
    damaged: Flags


class LookupSlice:
    """An open slice; its pairs stay in the store, apart from those near its end. Threads may share it.

    Args:
        store: The table's folder.
        path: Path of the slice.

    Raises:
        CorruptError: It is damaged.
        StoreError: It cannot be read.

    Attributes:
        paths: The columns of the index.
        types: Their types, as text.
        bits: Number of first bits that all its hashes share.
        bucket: These bits.
        rows: ``path`` and the columns of `IDENTITY` of its files.
        pairs_of_file: int64, number of pairs of each file; -1 if the hashes of its values are unknown.
        data_bytes: Size of all pairs.
    """

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        name = SliceName.of(path)
        size = store.stat(path).size_bytes
        tail = store.read_tail(path, _LIKELY_BYTES)
        length = int.from_bytes(tail[-_LENGTH_BYTES:], "little") + _LENGTH_BYTES
        if not 2 * _LENGTH_BYTES < length <= size:
            raise CorruptError(f"index slice {path} is damaged: it does not end with the length of its table")
        if length > len(tail):
            tail = store.read_tail(path, length)
        header = tail[len(tail) - length : len(tail) - _LENGTH_BYTES]
        if name is None or name.digest != _digest(header):
            raise CorruptError(f"index slice {path} is damaged: its table does not have the digest in its name")
        self.data_bytes = size - length
        self._tail, self._tail_start = tail, size - len(tail)
        try:
            self._decode(header)
        except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
            raise CorruptError(f"index slice {path} is damaged: its table cannot be read ({error})") from error
        if (self.bits, self.bucket, key_name(self.paths)) != (name.bits, name.bucket, name.key):
            raise CorruptError(f"index slice {path} is damaged: its name is that of another one")

    def _decode(self, header: bytes) -> None:
        length = int.from_bytes(header[-_LENGTH_BYTES:], "little")
        trailer = len(header) - _LENGTH_BYTES - length
        fields: dict[str, Any] = json.loads(header[trailer:-_LENGTH_BYTES])
        self.paths: KeyPaths = tuple(tuple(map(str, path)) for path in fields["paths"])
        self.types = tuple(map(str, fields["types"]))
        self.bits, self.bucket = int(fields["bits"]), int(fields["bucket"])
        self._block_bits = int(fields["block_bits"])
        if not 0 <= self._block_bits <= _MOST_BLOCK_BITS - self.bits:
            raise ValueError(f"{self._block_bits} bits number its blocks")
        self._file_type = {2: "<u2", 4: "<u4"}[fields["file_bytes"]]
        # A block does not store the first bytes, which all its hashes share.
        self._hash_bytes = int(fields["hash_bytes"])
        if not _HASH_BYTES - (self.bits + self._block_bits) // 8 <= self._hash_bytes <= _HASH_BYTES:
            raise ValueError(f"it stores {self._hash_bytes} bytes of each hash")
        self._pair_bytes = self._hash_bytes + int(fields["file_bytes"])
        places_at = trailer - int(fields["places_bytes"])
        table = BoundedParquet(header[places_at - int(fields["table_bytes"]) : places_at]).read()
        places = BoundedParquet(header[places_at:trailer]).read()
        self.rows = table.select(["path", *IDENTITY])
        self.pairs_of_file: Positions = table.column("pairs").to_numpy()
        self._pairs: Positions = places.column("pairs").to_numpy()
        self._lengths = self._pairs * self._pair_bytes + _CHECK_BYTES * (self._pairs > 0)
        self._starts = np.cumsum(self._lengths) - self._lengths
        whole = len(self._pairs) == 1 << self._block_bits and self._pairs.min(initial=0) >= 0
        if not whole or int(self._lengths.sum()) != self.data_bytes:
            raise ValueError("its blocks do not fill it")

    @property
    def size_bytes(self) -> int:
        """Memory that the slice takes."""
        places = self._pairs.nbytes + self._lengths.nbytes + self._starts.nbytes
        return len(self._tail) + int(self.rows.nbytes) + int(self.pairs_of_file.nbytes) + int(places)

    def read_bytes(self, hashes: Hashes) -> int:
        """Returns how many bytes `find` reads, apart from those near the end of the slice."""
        return int(self._lengths[self._blocks(hashes)].sum())

    def find(self, hashes: Hashes) -> Found:
        """Looks for hashes.

        Args:
            hashes: Distinct hashes of this bucket, sorted.

        Raises:
            StoreError: The pairs cannot be read.
        """
        pairs, wrong = self._read(self._blocks(hashes))
        damaged = np.isin(_blocks_of(hashes, self.bits, self._block_bits), wrong)
        at = np.minimum(np.searchsorted(hashes, pairs.hashes), max(0, len(hashes) - 1))
        hit = np.flatnonzero(hashes[at] == pairs.hashes) if len(hashes) else np.empty(0, np.int64)
        return Found(at[hit], pairs.files[hit], damaged)

    def pairs(self) -> Pairs | None:
        """Returns all pairs; None if some are damaged.

        Raises:
            StoreError: They cannot be read.
        """
        pairs, wrong = self._read(np.arange(len(self._pairs)))
        return None if len(wrong) else pairs

    def _blocks(self, hashes: Hashes) -> Positions:
        blocks = _blocks_of(hashes, self.bits, self._block_bits)
        found: Positions = blocks[np.r_[True, blocks[1:] != blocks[:-1]]] if len(blocks) else blocks
        return found

    def _read(self, blocks: Positions) -> tuple[Pairs, Positions]:
        """Returns the pairs of blocks, and the numbers of the blocks that are damaged."""
        blocks = blocks[self._pairs[blocks] > 0]
        parts = self._ranges(self._starts[blocks].tolist(), self._lengths[blocks].tolist())
        right = np.fromiter(map(_is_whole, blocks.tolist(), parts), bool, len(parts))
        whole, wrong = blocks[right], blocks[~right]
        counts = self._pairs[whole]
        octets, files = [np.empty(0, np.uint8)], [np.empty(0, self._file_type)]
        kept = (part for part, ok in zip(parts, right.tolist(), strict=True) if ok)
        for count, part in zip(counts.tolist(), kept, strict=True):
            end = count * self._hash_bytes
            octets.append(np.frombuffer(part, np.uint8, end))
            files.append(np.frombuffer(part, self._file_type, count, end))
        of_file, is_known = np.concatenate(files).astype(np.int64), self.pairs_of_file >= 0
        if of_file.max(initial=-1) >= self.rows.num_rows:
            return Pairs(np.empty(0, np.uint64), np.empty(0, np.int64), is_known), blocks
        return Pairs(self._hashes(whole, counts, np.concatenate(octets)), of_file, is_known), wrong

    def _hashes(self, blocks: Positions, counts: Positions, octets: npt.NDArray[np.uint8]) -> Hashes:
        """Returns the hashes of blocks from the bytes that are stored of each."""
        stored = np.zeros((int(counts.sum()), _HASH_BYTES), np.uint8)
        stored[:, : self._hash_bytes] = octets.reshape(-1, self._hash_bytes)
        hashes: Hashes = stored.view("<u8").ravel().astype(np.uint64, copy=False)
        if self._hash_bytes < _HASH_BYTES:
            bits = self.bits + self._block_bits
            first = (self.bucket << self._block_bits | blocks).astype(np.uint64) << np.uint64(64 - bits)
            hashes |= np.repeat(first, counts)
        return hashes

    def _ranges(self, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        if all(start >= self._tail_start for start in starts):
            first = [start - self._tail_start for start in starts]
            return [self._tail[at : at + length] for at, length in zip(first, lengths, strict=True)]
        return self._store.read_ranges(self._path, starts, lengths)


def _blocks_of(hashes: Hashes, bits: int, block_bits: int) -> Positions:
    """Returns the number of each hash's block in its bucket."""
    return first_bits(hashes, bits + block_bits) & ((1 << block_bits) - 1)


def _with_check(number: int, block: bytes) -> bytes:
    """Returns a block with its checksum, which depends on its number: it is not right in the place of another block."""
    return block + zlib.crc32(block, number).to_bytes(_CHECK_BYTES, "little")


def _is_whole(number: int, block: bytes) -> bool:
    return _with_check(number, block[:-_CHECK_BYTES]) == block


def _digest(header: bytes) -> str:
    return hashlib.blake2b(header, digest_size=8).hexdigest()
