"""The form of column statistics in Arrow: one struct column a tracked column, their paths in the schema's metadata."""

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
    """The struct for one column: ``min``, ``max``, whether each is exact, and the counts.

    ``min`` and ``max`` leave nulls and NaN out; null is unknown, or no value where the counts say so. ``value_count``
    counts all rows, nulls and NaN included.
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
    """A table of ``path``, ``examined`` and ``c0``, ``c1`` … for the columns, in their order.

    Args:
        row_paths: One file path a row.
        columns: What each struct column describes.
        structs: Arrays of `stats_type`, as long as ``row_paths``.
        examined: Whether the data of a file was read for what its footer leaves open, so that nobody need try again;
            false for all where it is not given.
    """
    flags = pa.repeat(False, len(row_paths)) if examined is None else pc.fill_null(examined, False)
    table = pa.table({"path": row_paths, EXAMINED: flags, **{f"c{i}": struct for i, struct in enumerate(structs)}})
    return with_column_paths(table, columns)


def with_column_paths(table: pa.Table, columns: Sequence[ColumnPath]) -> pa.Table:
    """The table with the paths of ``c0``, ``c1`` … in its metadata."""
    text = json.dumps({"format": _FORMAT, "columns": [list(path) for path in columns]})
    return table.replace_schema_metadata({_METADATA_KEY: text.encode()})


def column_paths(schema: pa.Schema) -> dict[ColumnPath, str]:
    """The struct column of each path.

    Raises:
        CorruptError: The schema does not say, or says it in a format of another version.
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
