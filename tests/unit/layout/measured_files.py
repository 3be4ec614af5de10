"""Statistics of made-up files, as the index gives them."""

import pyarrow as pa

from dbt.adapters.zlayout.index.statistics.column_stats import AlignedStatistics
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

ROWS = 100


def bounds(kind, spans, *, nulls=0, nans=0, exact=True, rows=ROWS):
    """A column's statistics from ``(low, high)`` a file; ``'null'`` is a file of nulls, ``'nan'`` one of NaN."""
    some = [each if isinstance(each, tuple) else (None, None) for each in spans]
    yes = pa.repeat(exact, len(spans))
    counts = [rows if each == "null" else nulls for each in spans]
    nan_counts = [rows if each == "nan" else nans for each in spans]
    low, high = (pa.array([each[side] for each in some], kind) for side in (0, 1))
    return ColumnBounds(kind, low, high, yes, yes, pa.array(counts, pa.int64()), pa.array(nan_counts, pa.int64()))


def statistics(columns, count, rows=ROWS):
    return AlignedStatistics(pa.repeat(pa.scalar(rows, pa.int64()), count), columns)


def files(row_counts):
    count = len(row_counts)
    return DataFiles.from_columns(
        (),
        path=[f"f{number}.parquet" for number in range(count)],
        partition_values=[],
        row_count=row_counts,
        size_bytes=[10] * count,
        modified_ms=[0] * count,
        group=[f"g{number}" for number in range(count)],
    )
