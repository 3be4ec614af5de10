"""Stacking: combines column statistics of different files, whatever columns each of them has."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.statistics.aligned import cast_stats
from dbt.adapters.zlayout.index.statistics.column_stats import (
    COUNT_TYPE,
    EXAMINED,
    column_paths,
    column_stats_table,
    stats_type,
)
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous


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
