"""The overlap depth of written files, from the statistics that came with them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.curve.keys import comparable
from dbt.adapters.zlayout.index.column_stats import column_paths
from dbt.adapters.zlayout.layout.depth import overlap_depth
from dbt.adapters.zlayout.predicate.expr import ColumnPath


def depth_of(column_stats: pa.Table, keys: Sequence[ColumnPath], partitions: Sequence[Hashable]) -> float:
    """Average number of files that share a point of the key space with a file.

    Args:
        column_stats: A row a file, as the index keeps it.
        keys: The clustering keys.
        partitions: The partition of each file; files of different ones share nothing.
    """
    names = column_paths(column_stats.schema)
    unknown = np.zeros(column_stats.num_rows, dtype=bool)
    numbers: dict[Hashable, int] = {}
    partition = np.array([numbers.setdefault(each, len(numbers)) for each in partitions], dtype=np.int64)
    lows, highs = [], []
    for key in keys:
        if key not in names:
            continue
        stats = column_stats.column(names[key]).combine_chunks()
        low, high = comparable(stats.field("min")), comparable(stats.field("max"))
        unknown |= low.nulls | high.nulls
        lows.append(low.values)
        highs.append(high.values)
    return overlap_depth(lows, highs, unknown, partition)
