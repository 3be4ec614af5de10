"""Arrow columns by path, and batches in the exact types that files hold."""

from __future__ import annotations

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


def at_path(rows: pa.Table | pa.RecordBatch, path: ColumnPath) -> pa.ChunkedArray | pa.Array:
    """The values at a path; a struct field of a null struct is null."""
    column = rows.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column


def key_table(rows: pa.Table | pa.RecordBatch, paths: Sequence[ColumnPath]) -> pa.Table:
    """The keys as columns named '0', '1', … in their order, whatever they are called in the table."""
    return pa.table({str(number): _wide(at_path(rows, path)) for number, path in enumerate(paths)})


def short_decimal(kind: pa.DataType) -> pa.DataType:
    """The type of eight bytes for decimals that files hold as such; any other type as it is."""
    short = pa.types.is_decimal128(kind) and _DIGITS_OF_FOUR_BYTES < kind.precision <= DIGITS_OF_EIGHT_BYTES
    if short and _WRITES_SHORT_DECIMALS:
        return pa.decimal64(kind.precision, kind.scale)
    return kind


def lower_half(decimals: pa.Array) -> pa.Array:
    """Decimals of 16 bytes that fit into eight as decimals of eight: their lower halves, which is all of them."""
    if decimals.offset:
        decimals = pa.concat_arrays([decimals])
    halves = np.frombuffer(decimals.buffers()[1], np.int64, 2 * len(decimals))
    lower = np.ascontiguousarray(halves[0 if sys.byteorder == "little" else 1 :: 2])
    valid = decimals.buffers()[0] if decimals.null_count else None
    return pa.Array.from_buffers(short_decimal(decimals.type), len(decimals), [valid, pa.py_buffer(lower)])


def _wide(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """A key that was made short, in the type that curves are made for."""
    kind = column.type
    return column.cast(pa.decimal128(kind.precision, kind.scale)) if pa.types.is_decimal64(kind) else column


def typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch under the schema's names and in its types, column by column.

    Spark sends timestamps in the session's zone and may send large offsets.
    """
    if batch.schema.equals(schema):
        return batch
    columns = [in_type(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def in_type(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """A column in a type; what has it already is not touched."""
    if column.type.equals(kind):
        return column
    if pa.types.is_decimal64(kind) and pa.types.is_decimal128(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return pa.chunked_array([lower_half(chunk) for chunk in chunks], kind)
    return column.cast(kind)


def table_buffer(table: pa.Table | pa.RecordBatch) -> pa.Buffer:
    """An Arrow stream of the table, compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_LZ4) as writer:
        writer.write(table)
    return sink.getvalue()


def table_bytes(table: pa.Table) -> bytes:
    """The same as bytes."""
    content: bytes = table_buffer(table).to_pybytes()
    return content


def table_of(blob: bytes) -> pa.Table:
    """The table of an Arrow stream."""
    return pa.ipc.open_stream(blob).read_all()
