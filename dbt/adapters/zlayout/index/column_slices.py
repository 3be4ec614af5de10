"""Slices of columns: chunks of some thousand rows each, read in part, and a footer that says where they are.

The name of a slice has the digest of its footer, and the footer has the digest of each chunk.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.index.memory_budget import HELD
from dbt.adapters.zlayout.index.statistics.column_stats import column_paths, stats_type
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.timeline.files.bounded_parquet import most_memory

DIGEST_BYTES = 8
_DIGEST = re.compile(r"_([0-9a-f]{16})\.(parquet|stats)$")
Groups = npt.NDArray[np.int64]
Note = Callable[[str], None]
_CODEC = pa.Codec("zstd", compression_level=3)
_ALIGNED = 8
_NO_BUFFER = -1
# Files of a row group: a scan of one partition reads a chunk or two, a scan of all needs few for a million files.
GROUP_ROWS = 4096
# The footer of a slice of 100,000 files and 32 columns, and whole slices of small commits.
_LIKELY_BYTES = 24 << 10
_LENGTH_BYTES = 8
_GROUPS_KEY = b"zlayout.groups"
_PLACES = np.dtype([("size", "<u4"), ("plain", "<u4"), ("digest", f"V{DIGEST_BYTES}")])


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


@dataclass(frozen=True)
class Chunk:
    """An encoded chunk.

    Attributes:
        content: The compressed bytes.
        plain_bytes: Their size before compression.
    """

    content: bytes
    plain_bytes: int


def chunk_of(values: pa.Array) -> Chunk:
    """Encodes values of a flat type, or structs of flat fields. A null struct becomes a struct of nulls."""
    everything = pa.array(np.arange(len(values)))
    sizes: list[int] = []
    parts: list[bytes] = []
    for leaf in _leaves(values):
        # `take` copies the values into buffers that begin with the first of them, even for a slice of an array.
        own = leaf.take(everything)
        validity, *rest = own.buffers()
        for buffer in (validity if own.null_count else None, *rest):
            content = b"" if buffer is None else buffer.to_pybytes()
            sizes.append(_NO_BUFFER if buffer is None else len(content))
            parts.append(content.ljust(-(-len(content) // _ALIGNED) * _ALIGNED, b"\0"))
    plain = b"".join([np.array(sizes, "<i8").tobytes(), *parts])
    return Chunk(_CODEC.compress(plain, asbytes=True), len(plain))


def values_of(content: bytes, plain_bytes: int, kind: pa.DataType, row_count: int) -> pa.Array:
    """Decodes a chunk.

    Args:
        content: The encoded chunk.
        plain_bytes: Its size before compression.
        kind: The type of its values.
        row_count: The number of its values.

    Raises:
        CorruptError: It does not hold that many values of the type.
    """
    try:
        plain = _CODEC.decompress(content, decompressed_size=plain_bytes)
        types = [field.type for field in kind] if pa.types.is_struct(kind) else [kind]
        leaves = _arrays(plain, types, row_count)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptError(f"a chunk cannot be decoded: {error}") from error
    return pa.StructArray.from_arrays(leaves, fields=list(kind)) if pa.types.is_struct(kind) else leaves[0]


def _arrays(plain: pa.Buffer, types: Sequence[pa.DataType], row_count: int) -> list[pa.Array]:
    counts = [3 if _has_offsets(kind) else 2 for kind in types]
    at = 8 * sum(counts)
    sizes = iter(np.frombuffer(plain[:at], "<i8").tolist() if plain.size >= at else ())
    arrays = []
    for kind, count in zip(types, counts, strict=True):
        buffers: list[pa.Buffer | None] = []
        for _ in range(count):
            size = next(sizes, None)
            if size is None or size < _NO_BUFFER or at + size > plain.size:
                raise ValueError("a buffer extends past its end")
            buffers.append(None if size == _NO_BUFFER else plain.slice(at, size))
            at += -(-max(size, 0) // _ALIGNED) * _ALIGNED
        array = pa.Array.from_buffers(kind, row_count, buffers)
        array.validate(full=True)
        arrays.append(array)
    return arrays


def _is_flat(kind: pa.DataType) -> bool:
    """Returns whether values of a type are a bitmap of nulls, perhaps offsets, and bytes, as in the types of tables."""
    types = pa.types
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_temporal(kind)
        or types.is_fixed_size_binary(kind)
        or _has_offsets(kind)
    )


def _has_offsets(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind)
    )


def _leaves(values: pa.Array) -> Sequence[pa.Array]:
    return values.flatten() if pa.types.is_struct(values.type) else [values]


def slice_bytes(table: pa.Table, first_paths: bool, group_rows: int = GROUP_ROWS) -> bytes:
    """Returns a slice: its chunks, column by column, then the footer and the footer's length.

    Args:
        table: The rows; with ``first_paths`` sorted by ``path``.
        first_paths: Whether to write down the first path of each row group.
        group_rows: Most rows of a row group. A group ends with a folder of ``path`` where it would not be too small.
    """
    starts = _starts(table, group_rows) if first_paths else list(range(0, table.num_rows, group_rows))
    rows = np.diff([*starts, table.num_rows]).tolist()
    whole = [column.combine_chunks() for column in table.columns]
    chunks = [chunk_of(values.slice(start, n)) for values in whole for start, n in zip(starts, rows, strict=True)]
    groups = {
        "rows": rows,
        "first": table.column("path").take(pa.array(starts, pa.int64())).to_pylist() if first_paths else None,
    }
    fields = [pa.field(each.name, _bound_type(each.type)) for each in table.schema]
    schema = pa.schema(fields, {**(table.schema.metadata or {}), _GROUPS_KEY: json.dumps(groups).encode()})
    places = np.array([(len(each.content), each.plain_bytes, digest_of(each.content)) for each in chunks], _PLACES)
    types = schema.serialize().to_pybytes()
    footer = chunk_of(pa.array([types, places.tobytes()], pa.binary()))
    end = footer.plain_bytes.to_bytes(_LENGTH_BYTES, "little") + len(footer.content).to_bytes(_LENGTH_BYTES, "little")
    return b"".join([*(each.content for each in chunks), footer.content, end])


def _starts(table: pa.Table, group_rows: int) -> list[int]:
    """Returns the first row of each row group: where a folder begins, so that few groups have files of a partition."""
    folders = pc.replace_substring_regex(table.column("path").combine_chunks(), "/[^/]*$", "")
    begins = 1 + np.flatnonzero(pc.not_equal(folders[1:], folders[:-1]).to_numpy(zero_copy_only=False))
    starts, count = [0] if table.num_rows else [], table.num_rows
    while starts and count - starts[-1] > group_rows:
        end = starts[-1] + group_rows
        best = int(np.searchsorted(begins, end, side="right")) - 1
        starts.append(int(begins[best]) if best >= 0 and begins[best] > end - group_rows // 2 else end)
    return starts


def footer_of(content: bytes) -> bytes:
    """Returns the footer at the end of a slice, its lengths included."""
    return content[-2 * _LENGTH_BYTES - int.from_bytes(content[-_LENGTH_BYTES:], "little") :]


def _bound_type(kind: pa.DataType) -> pa.DataType:
    """Returns how a column's type is written down: statistics by the type of their bounds, in a list."""
    return pa.list_(kind.field("min").type) if pa.types.is_struct(kind) else kind


def _column_type(kind: pa.DataType) -> pa.DataType:
    is_stats = pa.types.is_list(kind)
    inner = kind.value_type if is_stats else kind
    if not _is_flat(inner):
        raise CorruptError(f"an index slice has a column of type {kind}, which no statistics have")
    return stats_type(inner) if is_stats else inner


class RangedSlice:
    """A slice of chunks; only its footer is read when it is opened.

    Args:
        store: The table's folder.
        path: Path of the slice.

    Raises:
        CorruptError: Its footer is damaged.
        StoreError: It cannot be read.
    """

    def __init__(self, store: SliceStore, path: str) -> None:
        self._store, self._path = store, path
        self._lock = Lock()
        tail = store.read_tail(path, _LIKELY_BYTES)
        length = int.from_bytes(tail[-_LENGTH_BYTES:], "little") + 2 * _LENGTH_BYTES
        if len(tail) < length <= most_memory(0) and len(tail) == _LIKELY_BYTES:
            tail = store.read_tail(path, length)
        footer = footer_of(tail)
        if digest_of(footer).hex() != digest_in(path):
            raise CorruptError(f"index slice {path} is damaged: its footer does not have the digest in its name")
        self._read_footer(footer)
        self._tail = tail[: len(tail) - len(footer)]
        self._tail_start = self._data_bytes - len(self._tail)
        first = 0 if self._first is None else sum(100 + len(each) for each in self._first)
        self.size_bytes = len(self._tail) + 32 * self._size.size + 1000 * len(self.types) + first
        self._chunks: dict[str, dict[int, bytes | None]] = {}

    def _read_footer(self, footer: bytes) -> None:
        plain_bytes = int.from_bytes(footer[-2 * _LENGTH_BYTES : -_LENGTH_BYTES], "little")
        if plain_bytes > most_memory(len(footer)):
            raise CorruptError(f"index slice {self._path} has a footer of {plain_bytes:,} bytes")
        try:
            packed = values_of(footer[: -2 * _LENGTH_BYTES], plain_bytes, pa.binary(), 2)
            schema = pa.ipc.read_schema(packed[0].as_buffer())
            groups = json.loads((schema.metadata or {})[_GROUPS_KEY])
            places = np.frombuffer(packed[1].as_buffer(), _PLACES).reshape(len(schema), len(groups["rows"]))
            self.group_rows: Groups = np.array(groups["rows"], np.int64)
            first = groups["first"]
            self._first = None if first is None else np.array(list(map(str, first)), object)
        except (CorruptError, KeyError, TypeError, ValueError, OverflowError, OSError, pa.ArrowException) as error:
            raise CorruptError(f"index slice {self._path} has a footer that cannot be read: {error}") from error
        self.paths = column_paths(schema)
        self.types = {each.name: _column_type(each.type) for each in schema}
        self.row_count = int(self.group_rows.sum())
        self._number = {name: number for number, name in enumerate(schema.names)}
        sizes = places["size"].astype(np.int64)
        self._size, self._plain, self._digests = sizes, places["plain"].astype(np.int64), places["digest"]
        ends = np.cumsum(sizes.reshape(-1))
        self._start = (ends - sizes.reshape(-1)).reshape(sizes.shape)
        self._data_bytes = int(ends[-1]) if len(ends) else 0
        self._check()

    def _check(self) -> None:
        lacks = [name for name in self.paths.values() if not pa.types.is_struct(self.types.get(name, pa.null()))]
        grouped = self._first is None or len(self._first) == len(self.group_rows)
        if lacks or not grouped or len(self._number) != len(self._size) or (self.group_rows <= 0).any():
            raise CorruptError(f"index slice {self._path} has a footer that contradicts itself")
        most = most_memory(self._data_bytes)
        if (self._plain.sum(axis=1) > most).any() or self.row_count > most:
            raise CorruptError(f"index slice {self._path} has {self._data_bytes:,} bytes and would take over {most:,}")

    def groups_of(self, paths: npt.NDArray[np.object_]) -> Groups:
        """Returns the row groups that may have rows of some files, ascending; the others have none."""
        if self._first is None:
            return np.arange(len(self.group_rows))
        found = np.unique(np.searchsorted(self._first, paths, side="right") - 1)
        return found[found >= 0].astype(np.int64)

    def load(self, names: Collection[str], groups: Groups | None = None) -> None:
        """Reads columns that are not in memory, of some row groups or of all, at once."""
        self._fetched([name for name in names if name in self.types], groups)

    def forget(self, name: Hashable) -> None:
        """Drops what was read of a column."""
        # Without the lock: others call this while they hold their own.
        self._chunks.pop(str(name), None)

    def column(self, name: str, note: Note, groups: Groups | None = None) -> pa.Array:
        """Returns a column's rows of some row groups, one group after the other, or all rows."""
        if name not in self.types:
            raise CorruptError(f"index slice {self._path} lacks the column {name}")
        chunks = self._fetched([name], groups)[name]
        parts = [self._decoded(name, group, content, note) for group, content in chunks.items()]
        return pa.concat_arrays(parts) if parts else pa.array([], self.types[name])

    def _fetched(self, names: Sequence[str], groups: Groups | None) -> dict[str, dict[int, bytes | None]]:
        """Returns the chunks of columns by row group; None for a damaged one."""
        wanted = range(len(self.group_rows)) if groups is None else groups.tolist()
        with self._lock:
            known = {name: dict(self._chunks.get(name, {})) for name in names}
            missing = [
                (int(self._start[self._number[name], group]), name, group)
                for name in names
                for group in wanted
                if group not in known[name]
            ]
            missing.sort()
            lengths = [int(self._size[self._number[name], group]) for _, name, group in missing]
            contents = self._ranges([start for start, _, _ in missing], lengths)
            for (_, name, group), content in zip(missing, contents, strict=True):
                sound = digest_of(content) == self._digests[self._number[name], group].tobytes()
                known[name][group] = content if sound else None
            self._chunks |= known
        for name in dict.fromkeys(name for _, name, _ in missing):
            HELD.keep(self, name, sum(100 + len(each or b"") for each in known[name].values()))
        HELD.use(self, names)
        return {name: {group: known[name][group] for group in wanted} for name in names}

    def _decoded(self, name: str, group: int, content: bytes | None, note: Note) -> pa.Array:
        number, rows = self._number[name], int(self.group_rows[group])
        if content is not None:
            try:
                return values_of(content, int(self._plain[number, group]), self.types[name], rows)
            except CorruptError as error:
                problem = str(error)
        else:
            problem = "it does not have the digest in the footer"
        note(f"index slice {self._path} is damaged in column {name}, row group {group}, {rows:,} rows: {problem}")
        return pa.nulls(rows, self.types[name])

    def _ranges(self, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Reads parts, in ascending order; adjacent ones as one."""
        if not starts:
            return []
        if starts[0] >= self._tail_start:
            whole = [self._tail[start - self._tail_start :] for start in starts]
            return [each[:length] for each, length in zip(whole, lengths, strict=True)]
        run_starts: list[int] = []
        run_lengths: list[int] = []
        for start, length in zip(starts, lengths, strict=True):
            if run_starts and run_starts[-1] + run_lengths[-1] == start:
                run_lengths[-1] += length
            else:
                run_starts.append(start)
                run_lengths.append(length)
        runs = self._store.read_ranges(self._path, run_starts, run_lengths)
        found = {start: memoryview(run) for start, run in zip(run_starts, runs, strict=True)}
        parts, at = [], 0
        for start, length in zip(starts, lengths, strict=True):
            if at + 1 < len(run_starts) and start >= run_starts[at + 1]:
                at += 1
            inside = start - run_starts[at]
            parts.append(bytes(found[run_starts[at]][inside : inside + length]))
        return parts
