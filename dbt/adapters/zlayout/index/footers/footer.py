"""Footer statistics of a data file, merged over row groups; values that a footer does not prove are unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.index.footers.parquet_values import Bounds, Decoder, WriterRules, bounds_decoder, writer_rules
from dbt.adapters.zlayout.index.statistics.column_stats import COUNT_TYPE, column_stats_table, stats_type
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.store import Store

_ARROW_SCHEMA = b"ARROW:schema"
_LIKELY_BYTES = 64 << 10


@dataclass(frozen=True)
class ColumnFooter:
    """The statistics of one column of one file; None means unknown.

    Attributes:
        bounds: Smallest and largest value; also None if there is no value, as the counts then show.
        null_count: Rows that are null.
        nan_count: Rows that are NaN; 0 for types without NaN.
        value_count: Rows, including nulls and NaN.
    """

    bounds: Bounds | None
    null_count: int | None
    nan_count: int | None
    value_count: int | None


@dataclass(frozen=True)
class FooterStatistics:
    """The statistics of one file: plain values, small to pickle from a Spark task.

    Attributes:
        row_count: Rows of the file.
        columns: One entry for each tracked column, in the same order.
    """

    row_count: int
    columns: tuple[ColumnFooter, ...]


def footer_in(store: Store, path: str) -> pq.FileMetaData:
    """Reads the footer of a Parquet file by its last bytes.

    Raises:
        pa.ArrowException: The file is no Parquet file, or its footer is damaged.
        StoreError: It cannot be read.
    """
    tail = store.read_tail(path, _LIKELY_BYTES)
    # A file ends with the footer, the footer's length (4 bytes, little endian) and the letters PAR1.
    footer_bytes = int.from_bytes(tail[-8:-4], "little") + 8
    if footer_bytes > len(tail) == _LIKELY_BYTES:
        tail = store.read_tail(path, footer_bytes)
    return pq.read_metadata(pa.BufferReader(tail))


def footer_statistics(metadata: pq.FileMetaData, columns: Sequence[TrackedColumn]) -> FooterStatistics:
    """Reads the statistics of one file.

    Args:
        metadata: The file's footer.
        columns: Columns to read, with the table's types.
    """
    leaves = file_leaves(metadata)
    positions = {path: number for number, (path, inside_list) in enumerate(leaves or ()) if not inside_list}
    folded_paths = {tuple(name.lower() for name in path) for path, _ in leaves or ()}
    rules = writer_rules(metadata.created_by or "", metadata.metadata or {})
    if rules.text_exact and _has_dictionaries(metadata):
        # Arrow takes bounds from the whole dictionary of a column, also from values that no row has.
        rules = replace(rules, text_exact=False)
    found: list[ColumnFooter] = []
    for column in columns:
        position = positions.get(column.path)
        if position is not None:
            leaf = metadata.schema.column(position)
            decoder = bounds_decoder(leaf, column.type, rules)
            merged = _merged(metadata, position, decoder, leaf.max_definition_level == 0)
            found.append(_with_nan_count(merged, column, rules))
        elif leaves is not None and column.absent_is_null and not _resembles(column.path, folded_paths):
            found.append(ColumnFooter(None, metadata.num_rows, 0, metadata.num_rows))
        else:
            found.append(ColumnFooter(None, None, None, metadata.num_rows))
    return FooterStatistics(metadata.num_rows, tuple(found))


def _has_dictionaries(metadata: pq.FileMetaData) -> bool:
    """Returns whether a file was written from Arrow's dictionaries, as far as it keeps Arrow's schema."""
    if _ARROW_SCHEMA not in (metadata.metadata or {}):
        return False
    try:
        schema = metadata.schema.to_arrow_schema()
    except (pa.ArrowException, ValueError):
        return True
    return any(_is_or_has_dictionary(each.type) for each in schema)


def _is_or_has_dictionary(kind: pa.DataType) -> bool:
    fields = (kind.field(number).type for number in range(kind.num_fields))
    return bool(pa.types.is_dictionary(kind)) or any(map(_is_or_has_dictionary, fields))


def footer_table(
    paths: Sequence[str], statistics: Sequence[FooterStatistics], columns: Sequence[TrackedColumn]
) -> pa.Table:
    """Converts the statistics of many files to the form of the ``column_stats`` slice.

    Args:
        paths: The files, relative to the table.
        statistics: One entry per file, over the same columns.
        columns: The columns that were read.

    Returns:
        ``path`` and one struct column for each tracked column.
    """
    structs = [_struct_array([each.columns[i] for each in statistics], column) for i, column in enumerate(columns)]
    return column_stats_table(pa.array(paths, pa.string()), [column.path for column in columns], structs)


def file_leaves(metadata: pq.FileMetaData) -> list[tuple[ColumnPath, bool]] | None:
    """Returns the path of each leaf and whether it is inside a list or map; None if the schema has no Arrow form."""
    try:
        leaves = list(_leaves(metadata.schema.to_arrow_schema(), (), inside_list=False))
    except (pa.ArrowException, ValueError):
        return None
    # Paths in a footer join names with dots, so `a.b` and a.b look the same there; the order of leaves is unambiguous.
    return leaves if len(leaves) == metadata.num_columns else None


def _leaves(fields: Iterable[pa.Field], prefix: ColumnPath, *, inside_list: bool) -> Iterable[tuple[ColumnPath, bool]]:
    for field in fields:
        path = (*prefix, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, path, inside_list=inside_list)
        elif pa.types.is_nested(field.type):
            children = [field.type.field(number) for number in range(field.type.num_fields)]
            yield from _leaves(children, path, inside_list=True)
        else:
            yield path, inside_list


def _resembles(path: ColumnPath, folded_paths: Iterable[ColumnPath]) -> bool:
    """Returns whether the file has this name in another case or shape, so that a reader may find values there."""
    folded = tuple(name.lower() for name in path)
    return any(folded[: len(each)] == each[: len(folded)] for each in folded_paths)


def _merged(metadata: pq.FileMetaData, position: int, decoder: Decoder | None, required: bool) -> ColumnFooter:
    null_count: int | None = 0
    bounds: list[Bounds] = []
    bounds_known = decoder is not None
    value_count = 0
    for number in range(metadata.num_row_groups):
        chunk = metadata.row_group(number).column(position)
        chunk_nulls, chunk_bounds = _chunk(chunk, decoder, required)
        value_count += chunk.num_values
        null_count = None if null_count is None or chunk_nulls is None else null_count + chunk_nulls
        if chunk_bounds is not None:
            bounds.append(chunk_bounds)
        elif chunk_nulls != chunk.num_values:
            bounds_known = False
    return ColumnFooter(_hull(bounds) if bounds_known and bounds else None, null_count, None, value_count)


def _with_nan_count(found: ColumnFooter, column: TrackedColumn, rules: WriterRules) -> ColumnFooter:
    """Footers do not count NaN: a float column has none where the writer would have dropped its bounds for one."""
    nulls, values = found.null_count, found.value_count
    without_nan = not pa.types.is_floating(column.type) or (rules.nan_drops_bounds and found.bounds is not None)
    contradictory = nulls is not None and values is not None and nulls > values
    all_null = nulls is not None and nulls == values
    return replace(found, nan_count=0 if (without_nan or all_null) and not contradictory else None)


def _chunk(chunk: Any, decoder: Decoder | None, required: bool) -> tuple[int | None, Bounds | None]:
    """Returns null count and bounds of one column chunk; contradictory statistics are ignored completely."""
    statistics = chunk.statistics
    if statistics is None:
        return (0 if required or not chunk.num_values else None), None
    nulls = 0 if required else statistics.null_count if statistics.has_null_count else None
    if nulls is not None and not 0 <= nulls <= chunk.num_values:
        return None, None
    if not statistics.has_min_max:
        return nulls, None
    if nulls is not None and nulls == chunk.num_values:
        return None, None
    bounds = None if decoder is None else decoder(statistics.min_raw, statistics.max_raw)
    if bounds is not None and _key(bounds.minimum) > _key(bounds.maximum):
        return None, None
    return nulls, bounds


def _key(value: Any) -> Any:
    """Returns strings as UTF-8 bytes; Python's code point order is the same, but this states the order explicitly."""
    return value.encode() if isinstance(value, str) else value


def _hull(bounds: Sequence[Bounds]) -> Bounds:
    low = min(bounds, key=lambda each: (_key(each.minimum), not each.minimum_exact))
    high = max(bounds, key=lambda each: (_key(each.maximum), each.maximum_exact))
    return Bounds(low.minimum, high.maximum, low.minimum_exact, high.maximum_exact)


def _struct_array(entries: Sequence[ColumnFooter], column: TrackedColumn) -> pa.StructArray:
    bounds = [each.bounds for each in entries]
    fields = [
        pa.array([each and each.minimum for each in bounds], column.type),
        pa.array([each and each.maximum for each in bounds], column.type),
        pa.array([each is not None and each.minimum_exact for each in bounds], pa.bool_()),
        pa.array([each is not None and each.maximum_exact for each in bounds], pa.bool_()),
        pa.array([each.null_count for each in entries], COUNT_TYPE),
        pa.array([each.nan_count for each in entries], COUNT_TYPE),
        pa.array([each.value_count for each in entries], COUNT_TYPE),
    ]
    return pa.StructArray.from_arrays(fields, fields=list(stats_type(column.type)))
