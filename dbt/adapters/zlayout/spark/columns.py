"""Arrow columns by path, and batches in the exact types that files hold."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.expr import ColumnPath


def at_path(rows: pa.Table | pa.RecordBatch, path: ColumnPath) -> pa.ChunkedArray | pa.Array:
    """The values at a path; a struct field of a null struct is null."""
    column = rows.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column


def key_table(rows: pa.Table | pa.RecordBatch, paths: Sequence[ColumnPath]) -> pa.Table:
    """The keys as columns named '0', '1', … in their order, whatever they are called in the table."""
    return pa.table({str(number): at_path(rows, path) for number, path in enumerate(paths)})


def typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch under the schema's names and in its types, column by column.

    Spark sends timestamps in the session's zone and may send large offsets.
    """
    if batch.schema.equals(schema):
        return batch
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
