"""Bloom filters of files and columns, and the table with which writers report them.

A filter is the split block Bloom filter of the Parquet specification: each value sets eight bits in one block of 32
bytes. A filter has any number of blocks. The upper half of a hash chooses the block, the lower half the bits.

Source: https://github.com/apache/parquet-format/blob/master/BloomFilter.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.index.bloom.hashing import Hashes, distinct, hashes_of
from dbt.adapters.zlayout.index.statistics.column_stats import column_paths, with_column_paths
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath

BLOCK_BYTES = 32
# Bits for each distinct value: one in a hundred absent values is found by mistake.
BITS_PER_VALUE = 11
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
_HALF = np.uint64(32)

Words = npt.NDArray[np.uint32]
"""Eight words of a block, in the last dimension."""
# A file with more distinct values than fit (three million) has no filter for the column.
MOST_FILTER_BYTES = 4 << 20
_TYPES_KEY = b"zlayout.bloom"
FILTER = pa.struct([("content", pa.binary()), ("refused", pa.bool_())])


def filter_bytes(distinct: int) -> int:
    """Returns the size of a filter for a number of distinct values.

    >>> filter_bytes(0), filter_bytes(1), filter_bytes(1_000_000)
    (0, 32, 1375008)
    """
    return -(-distinct * BITS_PER_VALUE // (8 * BLOCK_BYTES)) * BLOCK_BYTES


def filter_of(hashes: Hashes) -> bytes:
    """Returns the filter of distinct hashes; it is empty if there are none."""
    blocks = filter_bytes(len(hashes)) // BLOCK_BYTES
    if not blocks:
        return b""
    words = np.zeros((blocks, 8), np.uint32)
    at = blocks_of(hashes, np.uint64(blocks))
    masks = masks_of(hashes)
    for number in range(8):
        np.bitwise_or.at(words[:, number], at, masks[:, number])
    return words.astype("<u4").tobytes()


def held_by(content: bytes, hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Returns which of the hashes a whole filter may hold."""
    words = np.frombuffer(content, "<u4").reshape(-1, 8)
    if not len(words):
        return np.zeros(len(hashes), dtype=bool)
    masks = masks_of(hashes)
    held: npt.NDArray[np.bool_] = ((words[blocks_of(hashes, np.uint64(len(words)))] & masks) == masks).all(axis=1)
    return held


def blocks_of(hashes: Hashes, blocks: np.uint64 | npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Returns the number of the block of each hash, in filters with this many blocks. Both broadcast."""
    found: npt.NDArray[np.int64] = (((hashes >> _HALF) * blocks) >> _HALF).astype(np.int64)
    return found


def masks_of(hashes: Hashes) -> Words:
    """Returns the bits of each hash: uint32[n, 8]."""
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    masks: Words = np.uint32(1) << ((low[:, None] * _SALT) >> np.uint32(27))
    return masks


class FilterBuilder:
    """Collects the distinct values of one column of one file, as hashes, until they are too many for a filter.

    Args:
        column_type: The column's type, see `canonical_type`.
        most_bytes: The greatest size of a filter.
    """

    def __init__(self, column_type: pa.DataType, most_bytes: int = MOST_FILTER_BYTES) -> None:
        self._type = column_type
        self._most_values = 8 * most_bytes // BITS_PER_VALUE
        self._parts: list[Hashes] | None = []
        self._count = 0

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Adds values of the column, in any order. Values that are not of its type end the filter, not the write."""
        if self._parts is None:
            return
        try:
            self.add_hashes(hashes_of(values, self._type))
        except pa.ArrowException:
            self.add_hashes(None)

    def add_hashes(self, hashes: Hashes | None) -> None:
        """Adds the distinct hashes of some values; None ends the filter."""
        if self._parts is None or hashes is None:
            self._parts = None
            return
        self._parts.append(hashes)
        self._count += len(hashes)
        if self._count > 2 * self._most_values:
            self._merged()

    def _merged(self) -> Hashes | None:
        """Returns the distinct hashes so far; None if they are too many."""
        if self._parts is None:
            return None
        if len(self._parts) > 1:
            self._parts = [distinct(np.concatenate(self._parts))]
        whole = self._parts[0] if self._parts else np.empty(0, np.uint64)
        self._count = len(whole)
        if self._count > self._most_values:
            self._parts = None
            return None
        return whole

    def missing_in(self, content: bytes) -> int:
        """Returns how many of the values a filter lacks; 0 if there are too many to find out."""
        hashes = self._merged()
        return 0 if hashes is None else int(np.count_nonzero(~held_by(content, hashes)))

    def content(self) -> bytes | None:
        """Returns the filter; None if there are too many values."""
        hashes = self._merged()
        return None if hashes is None else filter_of(hashes)


def filter_table(
    paths: Sequence[str], columns: Sequence[TrackedColumn], filters: Mapping[ColumnPath, Sequence[bytes | None]]
) -> pa.Table:
    """Returns the filters of files.

    Args:
        paths: The files.
        columns: The columns that should have filters.
        filters: By column, one per file: the filter, or None if it would be too large. Columns that it lacks are
            unknown.

    Returns:
        ``path``, and a struct for each column: ``content`` (binary), ``refused`` (bool); null for unknown.
    """
    structs = []
    for column in columns:
        found = filters.get(column.path)
        if found is None:
            structs.append(pa.nulls(len(paths), FILTER))
        else:
            rows = [{"content": each, "refused": each is None} for each in found]
            structs.append(pa.array(rows, FILTER))
    names = [f"c{number}" for number in range(len(columns))]
    table = pa.Table.from_arrays([pa.array(paths, pa.string()), *structs], names=["path", *names])
    return with_types(table, {column.path: str(column.type) for column in columns})


def with_types(table: pa.Table, types: Mapping[ColumnPath, str]) -> pa.Table:
    """Returns the table with the paths of ``c0``, ``c1`` … and their types in its metadata."""
    named = with_column_paths(table, list(types))
    return named.replace_schema_metadata({**named.schema.metadata, _TYPES_KEY: json.dumps(list(types.values()))})


def column_types(schema: pa.Schema) -> dict[ColumnPath, str]:
    """Returns the type of each column, as text, in the order of the columns.

    Raises:
        CorruptError: The schema does not say it.
    """
    paths = column_paths(schema)
    try:
        types = [str(each) for each in json.loads(schema.metadata[_TYPES_KEY])]
        return dict(zip(paths, types, strict=True))
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptError("a slice of Bloom filters does not name the types of its columns") from error
