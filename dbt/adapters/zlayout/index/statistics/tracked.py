"""Tracked columns: the leaves of a schema that have statistics in the index, and their types."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.zlayout.config.column_names import parse_column_path
from dbt.adapters.zlayout.curve.keys import is_orderable
from dbt.adapters.zlayout.predicate.expr import ColumnPath

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class TrackedColumn:
    """A leaf with statistics.

    Attributes:
        path: The path of the leaf; never inside a list or a map.
        type: The Arrow type of its values in the table, see `canonical_type`.
        absent_is_null: Whether rows of a file without the column are read as null. False for a column that got a
            default after the file was written: Spark then fills in the default.
    """

    path: ColumnPath
    type: pa.DataType
    absent_is_null: bool = True


def canonical_type(column_type: pa.DataType) -> pa.DataType:
    """Returns the Arrow type that represents each Spark type: plain strings and binary, timestamps in microseconds."""
    kinds = pa.types
    if kinds.is_dictionary(column_type):
        return canonical_type(column_type.value_type)
    if kinds.is_timestamp(column_type):
        return pa.timestamp("us", tz=None if column_type.tz is None else "UTC")
    if kinds.is_large_string(column_type) or column_type == pa.string_view():
        return pa.string()
    if kinds.is_large_binary(column_type) or column_type == pa.binary_view():
        return pa.binary()
    return column_type


def tracked_columns(
    schema: pa.Schema,
    stats_columns: int | Sequence[str] | Sequence[ColumnPath],
    keys: Sequence[ColumnPath],
    partition_by: Collection[str] = (),
    *,
    defaulted: Collection[ColumnPath] = (),
) -> tuple[TrackedColumn, ...]:
    """Selects the leaves to track.

    Args:
        schema: Columns of the table; may include partition columns.
        stats_columns: A number of orderable leaves, counted from the start of the schema, or a list of columns (paths,
            or names such as ``a.b``); a struct selects all its leaves. Names that the schema lacks and leaves without
            an order are skipped.
        keys: Clustering keys; they are always tracked.
        partition_by: Partition columns; they are not tracked, as their values come from the path.
        defaulted: Columns that Spark fills with a default if a file lacks them.

    Returns:
        The keys first, then the others in the order of the schema.

    >>> schema = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string())), ("day", pa.date32())])
    >>> [column.path for column in tracked_columns(schema, 1, keys=[("day",)])]
    [('day',), ('id',)]
    """
    usable = {
        path: canonical_type(leaf_type)
        for path, leaf_type in _leaves(schema, ())
        if path[0] not in partition_by and is_orderable(canonical_type(leaf_type))
    }
    if isinstance(stats_columns, int):
        wanted = set(list(usable)[:stats_columns])
    else:
        named = [parse_column_path(each) if isinstance(each, str) else each for each in stats_columns]
        wanted = {path for path in usable if any(path[: len(name)] == name for name in named)}
    order = [path for path in dict.fromkeys(keys) if path in usable]
    order += [path for path in usable if path in wanted and path not in order]
    return tuple(TrackedColumn(path, usable[path], _absent_is_null(path, defaulted)) for path in order)


def _absent_is_null(path: ColumnPath, defaulted: Collection[ColumnPath]) -> bool:
    return not any(path[: len(each)] == each for each in defaulted)


def _leaves(fields: Iterable[pa.Field], prefix: ColumnPath) -> Iterable[tuple[ColumnPath, pa.DataType]]:
    """Yields the leaves that are not inside a list or a map, depth first."""
    for field in fields:
        path = (*prefix, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, path)
        elif not pa.types.is_nested(field.type):
            yield path, field.type


def decimal_type(word: str) -> pa.Decimal128Type | None:
    """Returns the Arrow type of a decimal that Spark or Iceberg spells; None for other types.

    >>> decimal_type("decimal(10, 2)"), decimal_type("date")
    (Decimal128Type(decimal128(10, 2)), None)
    """
    decimal = _DECIMAL.fullmatch(word)
    return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else None
