"""Bounded reads of small Parquet metadata files: refuses files that would take far too much memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.lazy import cached_property

_MOST_BYTES = 64 << 20
_MOST_MEMORY_PER_BYTE = 100
_VALUE_BYTES = 8
# What Arrow holds about each column chunk of an open file, measured on slices of 15 to 1,400 leaf columns.
_CHUNK_BYTES = 2_700
# From this many rows on, values repeat often enough for dictionaries.
_DICTIONARY_ROWS = 1_000
_TEXTS = frozenset({"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})
# The only encodings that our writer uses; some others can repeat long strings in few bytes.
_ENCODINGS = frozenset({"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "BIT_PACKED"})


def most_memory(size_bytes: int) -> int:
    """Returns how many bytes a metadata file may take in memory.

    Each such file has paths of data files, or hashes of them, which compress by less than a factor of 100.

    Args:
        size_bytes: The size of the file.
    """
    return _MOST_BYTES + _MOST_MEMORY_PER_BYTE * size_bytes


class BoundedParquet:
    """A Parquet file in memory whose columns are decoded on demand.

    Args:
        content: The file.

    Raises:
        CorruptError: It is not a Parquet file.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._most_bytes = most_memory(len(content))
        try:
            self._file = pq.ParquetFile(pa.BufferReader(content))
            self.schema: pa.Schema = self._file.schema_arrow
        except (pa.ArrowException, OSError, ValueError) as error:
            raise CorruptError(f"it is not a Parquet file: {error}") from error
        self._metadata: Any = self._file.metadata
        self.row_count: int = self._metadata.num_rows

    @property
    def open_bytes(self) -> int:
        """Memory of the open file: its content, and what Arrow holds about each column chunk, which is often more."""
        return len(self._content) + _CHUNK_BYTES * int(self._metadata.num_row_groups * self._metadata.num_columns)

    def read(self, columns: Sequence[str] | None = None, *, use_threads: bool = True) -> pa.Table:
        """Reads whole columns; all columns if no names are given.

        Raises:
            CorruptError: They cannot be decoded, or would take far more memory than the file's size explains.
        """
        try:
            if not self._is_small():
                self._check_columns(columns)
            return self._file.read(columns=None if columns is None else list(columns), use_threads=use_threads)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise CorruptError(f"it cannot be decoded: {error}") from error

    def _is_small(self) -> bool:
        """Returns whether the file fits even if a string fills each column chunk and is repeated in every row."""
        groups = [self._metadata.row_group(number) for number in range(self._metadata.num_row_groups)]
        texts = sum(abs(group.total_byte_size) * (1 + abs(group.num_rows)) for group in groups)
        return bool(texts + abs(self.row_count) * self._metadata.num_columns * _VALUE_BYTES <= self._most_bytes)

    @cached_property
    def _chunks(self) -> list[tuple[int, str, Any]]:
        """The row group, path and metadata of each column chunk."""
        groups = [self._metadata.row_group(number) for number in range(self._metadata.num_row_groups)]
        chunks = [(number, group.column(i)) for number, group in enumerate(groups) for i in range(group.num_columns)]
        return [(number, chunk.path_in_schema, chunk) for number, chunk in chunks]

    def _check_columns(self, columns: Sequence[str] | None) -> None:
        left = self._most_bytes
        starts = None if columns is None else tuple(f"{name}." for name in columns)
        for group, path, chunk in self._chunks:
            if starts is None or f"{path}.".startswith(starts):
                left -= self._decoded_bytes(group, chunk, left)
            if left < 0:
                raise CorruptError(
                    f"it has {len(self._content):,} bytes and would take more than {self._most_bytes:,} in memory"
                )

    def _decoded_bytes(self, group: int, chunk: Any, left: int) -> int:
        if min(chunk.total_uncompressed_size, chunk.num_values) < 0:
            raise CorruptError(f"column {chunk.path_in_schema} says that its size is negative")
        plain = int(chunk.total_uncompressed_size) + _VALUE_BYTES * int(chunk.num_values)
        if chunk.physical_type not in _TEXTS or plain * (1 + int(chunk.num_values)) <= left:
            return plain
        if not _ENCODINGS.issuperset(chunk.encodings):
            raise CorruptError(f"column {chunk.path_in_schema} has an encoding that no index or checkpoint has")
        return plain + (self._repeated_bytes(group, chunk, left) if chunk.has_dictionary_page else 0)

    def _repeated_bytes(self, group: int, chunk: Any, left: int) -> int:
        """Bytes of strings that a dictionary holds once and rows repeat."""
        path = chunk.path_in_schema
        file = pq.ParquetFile(pa.BufferReader(self._content), read_dictionary=[path])
        # Reading one row also reads the whole dictionary.
        first = next(file.iter_batches(batch_size=1, row_groups=[group], columns=[path]), None)
        if first is None:
            return 0
        longest = pc.max(_lengths(_leaf(first.column(0)))).as_py() or 0
        most = int(chunk.num_values) * int(longest)
        if most <= left:
            return most
        column = file.read_row_group(group, columns=[path]).column(0)
        return sum(
            int(pc.sum(_lengths(leaf).take(leaf.indices), min_count=0).as_py()) for leaf in map(_leaf, column.chunks)
        )


def parquet_bytes(table: pa.Table) -> bytes:
    """Returns a table as a small Parquet file, for `BoundedParquet` to read."""
    sink = pa.BufferOutputStream()
    # A small file is mostly footer, with one entry per column: leave out statistics, the Arrow schema (Parquet's own
    # schema restores the same types) and dictionaries.
    options: dict[str, Any] = {"write_statistics": False, "store_schema": False}
    options["use_dictionary"] = table.num_rows >= _DICTIONARY_ROWS
    with pq.ParquetWriter(sink, table.schema, compression="zstd", **options) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(table.schema.metadata or {})
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _leaf(array: pa.Array) -> pa.DictionaryArray:
    while pa.types.is_struct(array.type):
        array = array.field(0)
    return array


def _lengths(array: pa.DictionaryArray) -> pa.Array:
    return pc.binary_length(array.dictionary).cast(pa.int64())
