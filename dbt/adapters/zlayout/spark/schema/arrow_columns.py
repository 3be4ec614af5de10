"""Reads Arrow columns by path, and converts batches to the exact types of the files."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.expr import ColumnPath

_WRITES_SHORT_DECIMALS = int(pa.__version__.split(".")[0]) >= 22
_DIGITS_OF_FOUR_BYTES = 9
DIGITS_OF_EIGHT_BYTES = 18

_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


def keep_freed_memory() -> None:
    """Makes Arrow in this process, a worker, allocate with jemalloc, unless the user has chosen an allocator.

    A task allocates and frees tables of a hundred megabytes over and over. Arrow's own choice, mimalloc, gives freed
    memory back at once, and to get it again costs an eighth of a rewrite's processor time.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        with contextlib.suppress(NotImplementedError):  # this pyarrow was built without it
            pa.set_memory_pool(pa.jemalloc_memory_pool())


def at_path(rows: pa.Table | pa.RecordBatch, path: ColumnPath) -> pa.ChunkedArray | pa.Array:
    """Returns the values at a path; a struct field of a null struct is null."""
    column = rows.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column


def key_table(rows: pa.Table | pa.RecordBatch, paths: Sequence[ColumnPath]) -> pa.Table:
    """Returns the keys as columns named '0', '1', … in order, whatever the table calls them."""
    return pa.table({str(number): _wide(at_path(rows, path)) for number, path in enumerate(paths)})


def short_decimal(kind: pa.DataType) -> pa.DataType:
    """Returns the eight-byte type for decimals that files store in eight bytes; any other type unchanged."""
    short = pa.types.is_decimal128(kind) and _DIGITS_OF_FOUR_BYTES < kind.precision <= DIGITS_OF_EIGHT_BYTES
    if short and _WRITES_SHORT_DECIMALS:
        return pa.decimal64(kind.precision, kind.scale)
    return kind


def lower_half(decimals: pa.Array) -> pa.Array:
    """Converts 16-byte decimals that fit into eight bytes to 8-byte decimals, by taking their lower halves."""
    if decimals.offset:
        decimals = pa.concat_arrays([decimals])
    halves = np.frombuffer(decimals.buffers()[1], np.int64, 2 * len(decimals))
    lower = np.ascontiguousarray(halves[0 if sys.byteorder == "little" else 1 :: 2])
    valid = decimals.buffers()[0] if decimals.null_count else None
    return pa.Array.from_buffers(short_decimal(decimals.type), len(decimals), [valid, pa.py_buffer(lower)])


def _wide(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Returns an 8-byte decimal key in the 16-byte type that curves are made for; other keys unchanged."""
    kind = column.type
    return column.cast(pa.decimal128(kind.precision, kind.scale)) if pa.types.is_decimal64(kind) else column


def typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Converts a batch, column by column, to the names and types of a schema.

    Spark sends timestamps in the session's time zone and may send large offsets.
    """
    if batch.schema.equals(schema):
        return batch
    columns = [in_type(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def in_type(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """Converts a column to a type. A column that already has the type is returned unchanged."""
    if column.type.equals(kind):
        return column
    if pa.types.is_decimal64(kind) and pa.types.is_decimal128(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return pa.chunked_array([lower_half(chunk) for chunk in chunks], kind)
    return column.cast(kind)


def table_buffer(table: pa.Table | pa.RecordBatch) -> pa.Buffer:
    """Returns a compressed Arrow stream of the table as a buffer."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_LZ4) as writer:
        writer.write(table)
    return sink.getvalue()


def table_bytes(table: pa.Table) -> bytes:
    """Returns a compressed Arrow stream of the table as bytes."""
    content: bytes = table_buffer(table).to_pybytes()
    return content


def table_of(blob: bytes) -> pa.Table:
    """Reads the table from an Arrow stream."""
    return pa.ipc.open_stream(blob).read_all()
