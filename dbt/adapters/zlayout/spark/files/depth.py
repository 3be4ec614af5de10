"""Computes the overlap depth of written files from their statistics."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.index.statistics.column_stats import AlignedStatistics, bounds_of_stats, column_paths
from dbt.adapters.zlayout.index.statistics.merge import fields_of
from dbt.adapters.zlayout.layout.measures.depth import box_overlap
from dbt.adapters.zlayout.layout.measures.spans import spans_of, validated
from dbt.adapters.zlayout.predicate.expr import ColumnPath


def depth_of(column_stats: pa.Table, keys: Sequence[ColumnPath], partitions: Sequence[Hashable]) -> float:
    """Returns the average number of files that share a point of the key space with a file.

    Args:
        column_stats: One row per file, as the index stores it.
        keys: The clustering keys.
        partitions: Partition of each file. Files of different partitions never overlap.
    """
    names = column_paths(column_stats.schema)
    numbers: dict[Hashable, int] = {}
    partition = np.array([numbers.setdefault(each, len(numbers)) for each in partitions], dtype=np.int64)
    stats = {key: column_stats.column(names[key]).combine_chunks() for key in keys if key in names}
    spans = []
    for key, each in stats.items():
        bounds = bounds_of_stats(fields_of(each))
        facts = validated(AlignedStatistics(each.field("value_count"), {key: bounds}), {key: bounds.type})
        spans.append(spans_of(facts[key], bounds.type, len(each)))
    return box_overlap([each.low for each in spans], [each.high for each in spans], partition).average_depth
