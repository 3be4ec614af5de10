"""Statistics from the data of a file, where its footer is incomplete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.index.footers.footer import ColumnFooter, FooterStatistics, file_leaves
from dbt.adapters.zlayout.index.footers.parquet_values import (
    DAY_US,
    FIRST_SAFE_DAY,
    Bounds,
    WriterRules,
    bounds_decoder,
    writer_rules,
)
from dbt.adapters.zlayout.index.statistics.column_stats import COUNT_TYPE, stats_type
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath

_JAVA_WRITER = "parquet-mr"
# With spark.sql.parquet.int96TimestampConversion Spark shifts such timestamps of other writers by the session's zone;
# no zone was ever farther from UTC than 16 hours.
_ZONE_US = DAY_US
_LARGEST = (1 << 63) - 1


def columns_to_read(
    metadata: pq.FileMetaData, columns: Sequence[TrackedColumn], found: FooterStatistics
) -> tuple[TrackedColumn, ...]:
    """Returns the columns whose statistics are incomplete in the footer but available from the data.

    Args:
        metadata: The file's footer.
        columns: Columns of the table.
        found: Their footer statistics.
    """
    incomplete = [each for each, entry in zip(columns, found.columns, strict=True) if not _is_complete(entry)]
    return readable_columns(metadata, incomplete)


def readable_columns(metadata: pq.FileMetaData, columns: Sequence[TrackedColumn]) -> tuple[TrackedColumn, ...]:
    """Returns the columns whose values in a file are the same for all versions of Spark.

    Columns that the file spells differently, or stores in a type that versions of Spark read differently, are excluded:
    they stay unknown.
    """
    leaves = _leaves_by_path(metadata)
    return tuple(
        column
        for column in columns
        if (leaf := leaves.get(column.path)) is not None
        and (_is_int96(leaf, column) or bounds_decoder(leaf, column.type, _TRUSTED) is not None)
    )


def _is_complete(entry: ColumnFooter) -> bool:
    """Returns whether a column's statistics are complete: counts are known, and so are bounds if there is a value."""
    if entry.null_count is None or entry.nan_count is None or entry.value_count is None:
        return False
    return entry.bounds is not None or entry.null_count + entry.nan_count == entry.value_count


def completed(
    metadata: pq.FileMetaData,
    columns: Sequence[TrackedColumn],
    found: FooterStatistics,
    seen: Mapping[ColumnPath, ColumnFooter],
) -> FooterStatistics:
    """Returns the statistics of a file completed from its data, for columns that every reader reads alike.

    Args:
        metadata: The file's footer.
        columns: Columns of the table.
        found: Their footer statistics.
        seen: Statistics of some of them from a full read.
    """
    leaves = _leaves_by_path(metadata)
    rules = writer_rules(metadata.created_by or "", metadata.metadata or {})
    entries = []
    for column, entry in zip(columns, found.columns, strict=True):
        read = seen.get(column.path)
        if read is not None and read.value_count == found.row_count:
            shifted = _is_int96(leaves[column.path], column)
            bounds = read.bounds and _times(read.bounds, column, rules, metadata.created_by or "", int96=shifted)
            entries.append(replace(read, bounds=bounds))
        else:
            entries.append(entry)
    return replace(found, columns=tuple(entries))


def stats_of_values(values: pa.Array, column_type: pa.DataType) -> pa.StructArray:
    """Returns the statistics of values as one row of `stats_type`; bounds exclude NaN and null."""
    values = values.cast(column_type)
    nan_count = 0
    numbers = values
    if pa.types.is_floating(column_type):
        nan = pc.fill_null(pc.is_nan(values), False)
        nan_count = int(pc.sum(nan).as_py() or 0)
        numbers = values.filter(pc.invert(nan)) if nan_count else values
    if pa.types.is_duration(column_type):
        numbers = numbers.view(pa.int64())  # Arrow finds no extremes of intervals
    bounds = pc.min_max(numbers)
    known = bounds["min"].is_valid
    fields = [
        *(pa.array([bounds[side]], numbers.type).view(column_type) for side in ("min", "max")),
        *(pa.array([known], pa.bool_()) for _ in ("min", "max")),
        *(pa.array([count], COUNT_TYPE) for count in (values.null_count, nan_count, len(values))),
    ]
    return pa.StructArray.from_arrays(fields, fields=list(stats_type(column_type)))


def entries_of(stats: pa.StructArray) -> Iterator[ColumnFooter]:
    """Yields rows of `stats_type` as plain values like those of a footer; strings that are not UTF-8 have no bounds."""
    kind = stats.type.field("min").type
    lows, highs = (_plain(stats.field(side), kind) for side in ("min", "max"))
    counts = [stats.field(name).to_pylist() for name in ("null_count", "nan_count", "value_count")]
    for low, high, *counted in zip(lows, highs, *counts, strict=True):
        yield ColumnFooter(None if low is None or high is None else Bounds(low, high), *counted)


def _plain(bound: pa.Array, kind: pa.DataType) -> list[object]:
    if pa.types.is_date32(kind):
        return list(bound.cast(pa.int32()).to_pylist())
    if pa.types.is_temporal(kind):
        return list(bound.view(pa.int64()).to_pylist())
    if pa.types.is_string(kind):
        return [_text(each) for each in bound.cast(pa.binary()).to_pylist()]
    return list(bound.to_pylist())


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return None


def _times(bounds: Bounds, column: TrackedColumn, rules: WriterRules, created_by: str, *, int96: bool) -> Bounds | None:
    """Returns bounds of dates and times that hold in any calendar and zone that a reader may use; others unchanged."""
    is_date, is_time = pa.types.is_date32(column.type), pa.types.is_timestamp(column.type)
    if not (is_date or is_time):
        return bounds
    first_safe = FIRST_SAFE_DAY if is_date else FIRST_SAFE_DAY * DAY_US
    if int96 and _JAVA_WRITER not in created_by:
        low, high = bounds.minimum - _ZONE_US, bounds.maximum + _ZONE_US
        bounds = Bounds(low, high, minimum_exact=False, maximum_exact=False)
        if high > _LARGEST:
            return None
    if bounds.minimum < first_safe and not (rules.old_int96 if int96 else rules.old_dates):
        return None
    return bounds if bounds.minimum >= -_LARGEST else None


def _leaves_by_path(metadata: pq.FileMetaData) -> dict[ColumnPath, pq.ColumnSchema]:
    leaves = file_leaves(metadata) or ()
    return {path: metadata.schema.column(i) for i, (path, inside_list) in enumerate(leaves) if not inside_list}


def _is_int96(leaf: pq.ColumnSchema, column: TrackedColumn) -> bool:
    is_zoned = pa.types.is_timestamp(column.type) and column.type.tz is not None
    return bool(leaf.physical_type == "INT96" and is_zoned)


_TRUSTED = WriterRules(text_bounds=True, text_exact=True, old_dates=True, old_int96=True, nan_drops_bounds=True)
