"""Statistics aligned with the files or partitions that pruning evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.statistics.column_stats import COUNT_TYPE, stats_type
from dbt.adapters.zlayout.index.statistics.partitions import PartitionValues
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds


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
