"""Slices of Bloom filters: the filters of many files one after the other, then a table of where each of them is.

A lookup reads that table once, and then of each filter only the chunks that hold the blocks of its values. The name of
a slice has the digest of the table, and the table has a checksum of each chunk.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.index.bloom.file_filters import (
    BLOCK_BYTES,
    FILTER,
    blocks_of,
    column_types,
    masks_of,
    with_types,
)
from dbt.adapters.zlayout.index.bloom.hashing import Hashes, hashes_of_words
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.bounded_parquet import BoundedParquet, parquet_bytes
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles

BLOOM_FILTERS = "bloom_filters"
CHUNK_BYTES = 1024
# A slice is closed when it has grown to this size, so that writers hold no more in memory.
_SLICE_BYTES = 64 << 20
_BLOCKS_IN_CHUNK = CHUNK_BYTES // BLOCK_BYTES
_LIKELY_BYTES = 128 << 10
_LENGTH_BYTES = 8
_DIGEST = re.compile(r"_([0-9a-f]{16})\.bloom$")
_PLACE = pa.struct([("offset", pa.int64()), ("size", pa.int64()), ("checks", pa.binary())])
_REFUSED, _NONE = -1, -2
# Odd factors: a chunk with one wrong word never has the checksum of the right one.
_FACTORS = hashes_of_words(np.arange(CHUNK_BYTES // 8, dtype=np.uint64)) | np.uint64(1)
_MOST_CELLS = 1 << 18

Positions = npt.NDArray[np.int64]


def slice_path(instant: str, content: bytes) -> str:
    """Returns the path of a slice, relative to the table.

    Args:
        instant: The instant of the commit that writes it.
        content: The slice.
    """
    return f".zlayout/index/{BLOOM_FILTERS}/{instant}_{_digest(_header_of(content))}.bloom"


def write_slices(files: DataFiles, tables: Iterable[pa.Table], slice_bytes: int = _SLICE_BYTES) -> Iterator[bytes]:
    """Yields slices with the filters of files.

    Args:
        files: The files. Filters of other files are left out.
        tables: From `filter_table`. If a slice has several filters for one file and column, the last one counts.
        slice_bytes: A slice ends with the filter that reaches this size.
    """
    rows = {path: row for row, path in enumerate(files["path"].to_pylist())}
    pending: _Pending | None = None
    for table in tables:
        types = column_types(table.schema)
        if not types:
            continue
        if pending is not None and (pending.types != types or pending.size_bytes >= slice_bytes):
            yield pending.finished(files)
            pending = None
        pending = pending or _Pending(types)
        for number, path in enumerate(table.column("path").to_pylist()):
            if path in rows:
                pending.add(rows[path], table.slice(number, 1))
    if pending is not None and pending.rows:
        yield pending.finished(files)


class _Pending:
    """A slice that is being written."""

    def __init__(self, types: dict[ColumnPath, str]) -> None:
        self.types = types
        self.rows: dict[int, int] = {}
        self.size_bytes = 0
        self._contents: list[bytes] = []
        self._places: list[list[dict[str, object] | None]] = [[] for _ in types]

    def add(self, row: int, filters: pa.Table) -> None:
        position = self.rows.setdefault(row, len(self.rows))
        for number, places in enumerate(self._places):
            if position == len(places):
                places.append(None)
            found = filters.column(f"c{number}")[0].as_py()
            if found is not None and found["content"] is None:
                places[position] = {"offset": 0, "size": _REFUSED, "checks": b""}
            elif found is not None:
                content = found["content"]
                places[position] = {"offset": self.size_bytes, "size": len(content), "checks": checks_of(content)}
                self._contents.append(content)
                self.size_bytes += len(content)

    def finished(self, files: DataFiles) -> bytes:
        some = files.take(pa.array(list(self.rows), pa.int64()))
        columns = {name: contiguous(some[name]) for name in ("path", *IDENTITY)}
        columns |= {f"c{number}": pa.array(places, _PLACE) for number, places in enumerate(self._places)}
        header = parquet_bytes(with_types(pa.table(columns), self.types))
        return b"".join([*self._contents, header, len(header).to_bytes(_LENGTH_BYTES, "little")])


@dataclass(frozen=True)
class FilterPlaces:
    """Where the filters of a column are in a slice, one entry per row of it.

    Attributes:
        offset: int64, of the first byte.
        size: int64; 0 if the file has no value, -1 if the filter would have been too large, -2 if there is none.
        checks: The checksums of all filters' chunks, uint64.
        first_check: int64, the number of the filter's first checksum.
    """

    offset: Positions
    size: Positions
    checks: npt.NDArray[np.uint64]
    first_check: Positions

    @property
    def has_filter(self) -> Flags:
        """Which files have a filter."""
        filters: Flags = self.size >= 0
        return filters

    @property
    def is_listed(self) -> Flags:
        """For which files the slice says whether they have a filter."""
        listed: Flags = self.size > _NONE
        return listed

    @property
    def is_refused(self) -> Flags:
        """Which files have none because it would be too large."""
        large: Flags = self.size == _REFUSED
        return large


class FilterSlice:
    """An open slice; its filters stay in the store, apart from those near its end. Threads may share it.

    Args:
        store: The table's folder.
        path: Path of the slice.

    Raises:
        CorruptError: It is damaged.
        StoreError: It cannot be read.

    Attributes:
        types: Type of each column, as text.
        rows: ``path`` and the columns of `IDENTITY`.
    """

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        size = store.stat(path).size_bytes
        tail = store.read_tail(path, _LIKELY_BYTES)
        length = int.from_bytes(tail[-_LENGTH_BYTES:], "little") + _LENGTH_BYTES
        if not _LENGTH_BYTES < length <= size:
            raise CorruptError(f"index slice {path} is damaged: it does not end with the length of its table")
        if length > len(tail):
            tail = store.read_tail(path, length)
        header = _header_of(tail)
        match = _DIGEST.search(path)
        if match is None or match[1] != _digest(header):
            raise CorruptError(f"index slice {path} is damaged: its table does not have the digest in its name")
        self._data_bytes = size - length
        self._tail, self._tail_start = tail, size - len(tail)
        table = BoundedParquet(header).read()
        self.types = column_types(table.schema)
        self.rows = table.select(["path", *IDENTITY])
        self._places = {
            column: _places(contiguous(table.column(f"c{number}")), self._data_bytes)
            for number, column in enumerate(self.types)
        }

    @property
    def size_bytes(self) -> int:
        """Memory that the slice takes."""
        places = sum(each.offset.nbytes * 3 + each.checks.nbytes for each in self._places.values())
        return len(self._tail) + int(self.rows.nbytes) + places

    @property
    def data_bytes(self) -> int:
        """Size of all filters."""
        return self._data_bytes

    def places(self, column: ColumnPath) -> FilterPlaces:
        """Returns where the filters of a column are."""
        return self._places[column]

    def tables(self, rows: Sequence[int], drops: Collection[ColumnPath] = ()) -> Iterator[pa.Table]:
        """Yields the filters of some rows as writers report them, one row at a time.

        Args:
            rows: The rows. A damaged filter is left out.
            drops: Columns to leave out.

        Raises:
            StoreError: They cannot be read.
        """
        paths = self.rows.column("path").to_pylist()
        types = {column: kind for column, kind in self.types.items() if column not in drops}
        for row in rows:
            structs = [self._filter(self._places[column], row) for column in types]
            names = ["path", *(f"c{number}" for number in range(len(structs)))]
            yield with_types(pa.Table.from_arrays([pa.array([paths[row]]), *structs], names=names), types)

    def _filter(self, places: FilterPlaces, row: int) -> pa.Array:
        size = int(places.size[row])
        content = self._whole(places, row) if size >= 0 else None
        known = content is not None or size == _REFUSED
        return pa.array([{"content": content, "refused": content is None} if known else None], FILTER)

    def _whole(self, places: FilterPlaces, row: int) -> bytes | None:
        (content,) = self._ranges([int(places.offset[row])], [int(places.size[row])])
        first = int(places.first_check[row])
        found = np.frombuffer(checks_of(content), "<u8")
        return content if np.array_equal(found, places.checks[first : first + len(found)]) else None

    def content(self, column: ColumnPath, row: int) -> bytes | None:
        """Returns a filter; None if there is none, or if it is damaged.

        Raises:
            StoreError: It cannot be read.
        """
        places = self._places[column]
        return self._whole(places, row) if places.size[row] >= 0 else None

    def read_bytes(self, column: ColumnPath, rows: Positions, hashes: Hashes) -> int:
        """Returns the most bytes that `may_hold` reads."""
        sizes = self._places[column].size[rows]
        return int(np.minimum(np.maximum(sizes, 0), len(hashes) * CHUNK_BYTES).sum())

    def may_hold(self, column: ColumnPath, rows: Positions, hashes: Hashes) -> tuple[Flags, int]:
        """Looks values up in filters.

        Args:
            column: A column of the slice.
            rows: int64[n], rows of the slice.
            hashes: The hashes of the values.

        Returns:
            bool[n]: False if the file holds none of the values; and the number of damaged filters.

        Raises:
            StoreError: The filters cannot be read.
        """
        places = self._places[column]
        found = np.ones(len(rows), dtype=bool)
        found[places.size[rows] == 0] = False
        asked = np.flatnonzero(places.size[rows] > 0)
        damaged = 0
        step = max(1, _MOST_CELLS // max(1, len(hashes)))
        for start in range(0, len(asked), step):
            some = asked[start : start + step]
            found[some], wrong = self._probed(places, rows[some], hashes)
            damaged += wrong
        return found, damaged

    def _probed(self, places: FilterPlaces, rows: Positions, hashes: Hashes) -> tuple[Flags, int]:
        sizes = places.size[rows]
        block = blocks_of(hashes[None, :], (sizes // BLOCK_BYTES).astype(np.uint64)[:, None])
        chunk = block // _BLOCKS_IN_CHUNK
        most = int(chunk.max()) + 1
        needed, which = np.unique(np.arange(len(rows))[:, None] * most + chunk, return_inverse=True)
        row, number = needed // most, needed % most
        starts = places.offset[rows][row] + number * CHUNK_BYTES
        lengths = np.minimum(CHUNK_BYTES, sizes[row] - number * CHUNK_BYTES)
        parts = self._ranges(starts.tolist(), lengths.tolist())
        chunks = np.frombuffer(b"".join(each.ljust(CHUNK_BYTES, b"\0") for each in parts), np.uint8)
        right = _checksums(chunks) == places.checks[places.first_check[rows][row] + number]
        words = chunks.view("<u4").reshape(-1, _BLOCKS_IN_CHUNK, 8)
        which = which.reshape(block.shape)
        masks = masks_of(hashes)[None, :, :]
        bits = words[which, block % _BLOCKS_IN_CHUNK]
        hit = ((bits & masks) == masks).all(axis=2) | ~right[which]
        return hit.any(axis=1), len(np.unique(row[~right]))

    def _ranges(self, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        if all(start >= self._tail_start for start in starts):
            return [
                self._tail[start - self._tail_start : start - self._tail_start + length]
                for start, length in zip(starts, lengths, strict=True)
            ]
        return self._store.read_ranges(self._path, starts, lengths)


def rows_of(part: FilterSlice, files: DataFiles) -> Positions:
    """Returns the row of each file in a slice, int64; -1 if it has none, or if the file is not the one described."""
    return rows_in(part.rows, files)


def rows_in(described: pa.Table, files: DataFiles) -> Positions:
    """Returns the row of each file in a table with ``path`` and the columns of `IDENTITY`; -1 as in `rows_of`."""
    found = pc.index_in(contiguous(files["path"]), value_set=contiguous(described.column("path")))
    same = [pc.equal(contiguous(files[name]), contiguous(described.column(name)).take(found)) for name in IDENTITY]
    agrees = pc.fill_null(reduce(pc.and_kleene, same), False)
    rows = pc.if_else(agrees, found.cast(pa.int64()), pa.scalar(-1, pa.int64()))
    positions: Positions = rows.to_numpy(zero_copy_only=False).copy()
    return positions


def checks_of(content: bytes) -> bytes:
    """Returns the checksum of each chunk of a filter, 8 bytes each."""
    padded = content.ljust(-(-len(content) // CHUNK_BYTES) * CHUNK_BYTES, b"\0")
    return _checksums(np.frombuffer(padded, np.uint8)).astype("<u8").tobytes()


def _checksums(chunks: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    words = chunks.view("<u8").reshape(-1, CHUNK_BYTES // 8)
    sums: npt.NDArray[np.uint64] = (words * _FACTORS).sum(axis=1, dtype=np.uint64)
    return sums


def _places(column: pa.StructArray, data_bytes: int) -> FilterPlaces:
    known = [pc.fill_null(column.field(name), _NONE) for name in ("offset", "size")]
    offset, size = (each.to_numpy(zero_copy_only=False) for each in known)
    size = np.where(pc.is_valid(column).to_numpy(zero_copy_only=False), size, _NONE)
    checks = pc.fill_null(column.field("checks"), b"")
    lengths = pc.binary_length(checks).to_numpy(zero_copy_only=False).astype(np.int64)
    content = b"".join(checks.to_pylist())
    chunks = -(-np.maximum(size, 0) // CHUNK_BYTES)
    fits = (size % BLOCK_BYTES == 0) & (offset >= 0) & (offset + size <= data_bytes) & (lengths == 8 * chunks)
    size = np.where((size >= 0) & ~fits, _NONE, size)
    first = (np.cumsum(lengths) - lengths) // 8
    return FilterPlaces(offset, size, np.frombuffer(content[: len(content) // 8 * 8], "<u8"), first)


def _header_of(content: bytes) -> bytes:
    length = int.from_bytes(content[-_LENGTH_BYTES:], "little")
    return content[-_LENGTH_BYTES - length : -_LENGTH_BYTES]


def _digest(header: bytes) -> str:
    return hashlib.blake2b(header, digest_size=8).hexdigest()
