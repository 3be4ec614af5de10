"""Column statistics in Arrow: one struct column per tracked column, with the column paths in the schema's metadata."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.predicate.expr import ColumnPath

COUNT_TYPE = pa.int64()
EXAMINED = "examined"
_METADATA_KEY = b"zlayout.index"
_FORMAT = 1


def stats_type(column_type: pa.DataType) -> pa.StructType:
    """Returns the struct type for one column: ``min``, ``max``, whether each is exact, and the counts.

    ``min`` and ``max`` exclude nulls and NaN; null means unknown, or no value if the counts say so. ``value_count``
    counts all rows, including nulls and NaN.
    """
    return pa.struct(
        [
            ("min", column_type),
            ("max", column_type),
            ("min_exact", pa.bool_()),
            ("max_exact", pa.bool_()),
            ("null_count", COUNT_TYPE),
            ("nan_count", COUNT_TYPE),
            ("value_count", COUNT_TYPE),
        ]
    )


def column_stats_table(
    row_paths: pa.Array,
    columns: Sequence[ColumnPath],
    structs: Sequence[pa.StructArray],
    examined: pa.Array | None = None,
) -> pa.Table:
    """Returns a table of ``path``, ``examined`` and ``c0``, ``c1`` … for the columns, in their order.

    Args:
        row_paths: One file path per row.
        columns: The column that each struct describes.
        structs: Arrays of `stats_type`, as long as ``row_paths``.
        examined: Whether the data of a file was read to complete its footer statistics, so that this is not repeated;
            false for all if it is not given.
    """
    flags = pa.repeat(False, len(row_paths)) if examined is None else pc.fill_null(examined, False)
    table = pa.table({"path": row_paths, EXAMINED: flags, **{f"c{i}": struct for i, struct in enumerate(structs)}})
    return with_column_paths(table, columns)


def with_column_paths(table: pa.Table, columns: Sequence[ColumnPath]) -> pa.Table:
    """Returns the table with the paths of ``c0``, ``c1`` … in its metadata."""
    text = json.dumps({"format": _FORMAT, "columns": [list(path) for path in columns]})
    return table.replace_schema_metadata({_METADATA_KEY: text.encode()})


def column_paths(schema: pa.Schema) -> dict[ColumnPath, str]:
    """Returns the name of the struct column of each path.

    Raises:
        CorruptError: The schema has no such metadata, or has it in another format.
    """
    try:
        stored = json.loads((schema.metadata or {})[_METADATA_KEY])
        paths = [tuple(map(str, path)) for path in stored["columns"]]
        version = stored["format"]
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptError("an index slice does not name its columns") from error
    if version != _FORMAT:
        raise CorruptError(f"an index slice has format {version}; this version reads format {_FORMAT}")
    return {path: f"c{number}" for number, path in enumerate(paths)}
