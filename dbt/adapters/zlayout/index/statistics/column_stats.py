"""Column statistics in Arrow: one struct column per tracked column, with the column paths in the schema's metadata.

Tables of different files are stacked, whatever columns each has. Pruning reads them aligned with files or partitions.

Bounds of long strings and binary are cut so that they remain valid bounds. Bounds of several files are
distinguished by the bytes in which they differ from their neighbours, so these are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.curve.keys import common_bytes, is_text, large_binary
from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.index.statistics.partitions import PartitionValues
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous

COUNT_TYPE = pa.int64()
EXAMINED = "examined"
_METADATA_KEY = b"zlayout.index"
_FORMAT = 1
SHORT_BOUND_BYTES = 64
MOST_BOUND_BYTES = 1024
_BYTES_BEYOND = 16
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


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


@dataclass(frozen=True)
class AlignedStatistics:
    """Statistics of n files or n partitions, in their order.

    Attributes:
        row_count: int64, length n; null where unknown.
        columns: Bounds and counts of each known column, arrays of length n.
    """

    row_count: pa.Array
    columns: Mapping[ColumnPath, ColumnBounds]

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        """Returns the column's statistics; None if nothing is known about it."""
        return self.columns.get(path)


def bounds_of_stats(stats: pa.StructArray) -> ColumnBounds:
    """Converts the struct of a slice to bounds; null rows become unknown."""
    low, high = stats.field("min"), stats.field("max")
    return ColumnBounds(
        type=low.type,
        minimum=low,
        maximum=high,
        minimum_exact=pc.fill_null(stats.field("min_exact"), False),
        maximum_exact=pc.fill_null(stats.field("max_exact"), False),
        null_count=stats.field("null_count"),
        nan_count=stats.field("nan_count"),
    )


def bounds_of_partition(values: PartitionValues, row_count: pa.Array) -> ColumnBounds:
    """Returns a partition column as statistics: all rows of a file have the same value."""
    kind = values.values.type
    present = pc.is_valid(values.values)
    nan = pc.and_(present, pc.is_nan(values.values)) if pa.types.is_floating(kind) else pa.repeat(False, len(present))
    nan = pc.fill_null(nan, False)
    unknown, zero = pa.scalar(None, COUNT_TYPE), pa.scalar(0, COUNT_TYPE)
    bound = pc.if_else(nan, pa.scalar(None, kind), values.values)
    exact = pc.is_valid(bound)
    nulls = pc.if_else(present, zero, pc.if_else(values.known, row_count, unknown))
    nans = pc.if_else(values.known, pc.if_else(nan, row_count, zero), unknown)
    return ColumnBounds(kind, bound, bound, exact, exact, nulls, nans)


def cast_stats(stats: pa.StructArray, column_type: pa.DataType) -> pa.StructArray:
    """Converts the bounds to another type; bounds that the type cannot represent exactly become unknown."""
    if stats.type.field("min").type == column_type:
        return stats
    try:
        low, high = (stats.field(side).cast(column_type) for side in ("min", "max"))
    except pa.ArrowException:
        low = high = pa.nulls(len(stats), column_type)
    rest = [stats.field(name) for name in ("min_exact", "max_exact", "null_count", "nan_count", "value_count")]
    return pa.StructArray.from_arrays([low, high, *rest], fields=list(stats_type(column_type)))


def stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """Returns the rows of several tables of column statistics as one table.

    Args:
        tables: As returned by `footer_table`, each of other files; if they disagree on a column's type, that of the
            last table that has the column is used.

    Returns:
        One such table with the columns of all tables; columns that a table lacks are unknown for its files.
    """
    names = [column_paths(each.schema) for each in tables]
    paths = list(dict.fromkeys(path for each in names for path in each))
    structs = []
    for path in paths:
        holder = max(number for number, each in enumerate(names) if path in each)
        kind = tables[holder].schema.field(names[holder][path]).type
        parts = [
            cast_stats(contiguous(table.column(known[path])), kind.field("min").type)
            if path in known
            else pa.nulls(table.num_rows, kind)
            for table, known in zip(tables, names, strict=True)
        ]
        structs.append(pa.concat_arrays(parts))
    row_paths, examined = (
        pa.concat_arrays([contiguous(each.column(name)) for each in tables]) for name in ("path", EXAMINED)
    )
    return column_stats_table(row_paths, paths, structs, examined)


def with_null_columns(
    column_stats: pa.Table, paths: pa.Array, row_counts: pa.Array, columns: Sequence[TrackedColumn]
) -> pa.Table:
    """Adds columns that are null in every row of every file.

    Args:
        column_stats: Statistics of some of the files.
        paths: All files.
        row_counts: Rows of each file.
        columns: Columns that the files lack.
    """
    found = pc.index_in(paths, value_set=contiguous(column_stats.column("path")))
    known = column_paths(column_stats.schema)
    structs = {path: contiguous(column_stats.column(name)).take(found) for path, name in known.items()}
    zeros = pa.repeat(pa.scalar(0, COUNT_TYPE), len(paths))
    for column in columns:
        kind = stats_type(column.type)
        bound, exact = pa.nulls(len(paths), column.type), pa.repeat(False, len(paths))
        fields = [bound, bound, exact, exact, row_counts, zeros, row_counts]
        structs[column.path] = pa.StructArray.from_arrays(fields, fields=list(kind))
    examined = contiguous(column_stats.column(EXAMINED)).take(found)
    return column_stats_table(paths, list(structs), list(structs.values()), examined)


def cut_bounds(stats: pa.StructArray, limit: int = SHORT_BOUND_BYTES, most: int = MOST_BOUND_BYTES) -> pa.StructArray:
    """Shortens the bounds of one column's statistics; types other than string and binary are unchanged.

    A bound that begins like another one for long, as URLs do, keeps 16 bytes from where they differ.

    Args:
        stats: Array of `stats_type`.
        limit: Most bytes of a bound that differs from all others within fewer bytes.
        most: Most bytes of any bound.

    Returns:
        The statistics with no bound longer than that. A shortened bound is no longer exact; a maximum that has no
        upper bound within its limit becomes unknown.
    """
    kind = stats.type.field("min").type
    if not is_text(kind):
        return stats
    # Fields of a null are null, whatever lies below it.
    fields = dict(zip((field.name for field in stats.type), stats.flatten(), strict=True))
    sides = [fields[side] for side in ("min", "max")]
    if not any(pc.any(pc.greater(pc.binary_length(each), limit)).as_py() for each in sides):
        return stats
    limits = _Limits.of(sides, limit, most)
    floor, ceiling = (text_floor, text_ceiling) if pa.types.is_string(kind) else (binary_floor, binary_ceiling)
    low, low_exact = _cut(sides[0], fields["min_exact"], limits, floor)
    high, high_exact = _cut(sides[1], fields["max_exact"], limits, ceiling)
    rest = [fields[name] for name in ("null_count", "nan_count", "value_count")]
    return pa.StructArray.from_arrays([low, high, low_exact, high_exact, *rest], fields=list(stats.type))


@dataclass(frozen=True)
class _Limits:
    """Most bytes of each bound.

    Attributes:
        bounds: The distinct bounds, as large binary.
        most_bytes: int64, for each of them.
    """

    bounds: pa.Array
    most_bytes: pa.Array

    @classmethod
    def of(cls, sides: Sequence[pa.Array], limit: int, most: int) -> _Limits:
        distinct = pc.unique(pa.concat_arrays([large_binary(each) for each in sides])).drop_null()
        ordered = distinct.take(pc.sort_indices(distinct))
        alike = np.zeros(len(ordered) + 1, np.int64)
        alike[1:-1] = common_bytes(ordered[:-1], ordered[1:])
        telling = np.maximum(alike[:-1], alike[1:]) + _BYTES_BEYOND
        return cls(ordered, pa.array(np.minimum(np.maximum(telling, limit), max(limit, most))))

    def for_each(self, values: pa.Array) -> pa.Array:
        """Returns the limit of each value, int64; null for null."""
        return self.most_bytes.take(pc.index_in(large_binary(values), value_set=self.bounds))


def text_floor(value: str, limit: int) -> str:
    """Returns the longest prefix within the limit that does not split a code point."""
    return value.encode()[:limit].decode(errors="ignore")


def text_ceiling(value: str, limit: int) -> str | None:
    """Returns a string within the limit that is above every string that starts like the value; None if there is none.

    >>> text_ceiling("Bonn am Rhein", limit=4), text_ceiling("né", limit=2)
    ('Bono', 'o')
    """
    prefix = text_floor(value, limit)
    while prefix:
        successor = _next_code_point(ord(prefix[-1]))
        prefix = prefix[:-1]
        if successor is not None and len((candidate := prefix + chr(successor)).encode()) <= limit:
            return candidate
    return None


def binary_floor(value: bytes, limit: int) -> bytes:
    """Returns the first bytes, up to the limit."""
    return value[:limit]


def binary_ceiling(value: bytes, limit: int) -> bytes | None:
    """Returns bytes within the limit above all that start like the value; None if the prefix is all 0xFF."""
    prefix = value[:limit].rstrip(b"\xff")
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None


def _next_code_point(code_point: int) -> int | None:
    if code_point == _LAST_CODE_POINT:
        return None
    return _SURROGATES.stop if code_point + 1 in _SURROGATES else code_point + 1


def _cut(
    bound: pa.Array, exact: pa.Array, limits: _Limits, shorten: Callable[..., str | bytes | None]
) -> tuple[pa.Array, pa.Array]:
    # Bounds repeat over files (constant prefixes, defaults), so each distinct one is cut only once.
    distinct = pc.unique(bound).drop_null()
    allowed = limits.for_each(distinct)
    is_long = pc.greater(pc.binary_length(distinct), allowed)
    distinct, allowed = distinct.filter(is_long), allowed.filter(is_long)
    too_long = pc.and_(pc.is_valid(bound), pc.is_in(bound, value_set=distinct))
    pairs = zip(distinct.to_pylist(), allowed.to_pylist(), strict=True)
    cut = pa.array([shorten(value, most) for value, most in pairs], bound.type)
    replaced = cut.take(pc.index_in(bound.filter(too_long), value_set=distinct))
    return pc.replace_with_mask(bound, too_long, replaced), pc.and_(exact, pc.invert(too_long))
