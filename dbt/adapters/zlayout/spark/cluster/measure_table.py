"""Measures a table's layout from its index: how well its files are clustered by the chosen columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dbt.adapters.zlayout.config.column_names import format_column_path, parse_column_list
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.index.statistics.tracked import canonical_type
from dbt.adapters.zlayout.layout.measures.measures import Clustering, clustering_of
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.schema.types import arrow_schema, split_partition_columns
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

_MOST_NAMES = 20


def measure_table(opened: TableSnapshot, columns: Sequence[str] | str | None, subject: str) -> Clustering:
    """Measures the files of a version.

    Args:
        opened: The table. Of an indexed table, only files that the index knows are measured.
        columns: Names such as ``a`` and ``a.b``, in a list or separated by commas. None for the clustering keys or, in
            a table without keys, for all top-level columns with statistics.
        subject: Name of the table, for error messages.

    Raises:
        ConfigError: A column does not exist or has no statistics.
    """
    layout = _layout(opened)
    measurable = {each.path: each.type for each in layout.tracked}
    folders = arrow_schema(layout.partition_json)
    measurable |= {(name,): canonical_type(folders.field(name).type) for name in folders.names}
    wanted = _default(layout) if columns is None else _named(columns, measurable, subject)
    if not wanted:
        raise ConfigError(["columns: none is named; " + _choice(measurable)], subject)
    keys = layout.keys
    model = layout.stored_model(opened.store, opened.snapshot) if opened.managed and wanted == keys else None
    types = {path: measurable[path] for path in wanted}
    statistics = opened.statistics.statistics(opened.files, list(types))
    return clustering_of(opened.files, statistics, types, opened.partition_of_file, model)


def _layout(opened: TableSnapshot) -> TableLayout:
    snapshot = opened.snapshot
    data_json, partition_json = split_partition_columns(snapshot.schema_json, snapshot.partition_by)
    return TableLayout(config_of(snapshot), data_json, partition_json)


def _default(layout: TableLayout) -> tuple[ColumnPath, ...]:
    return layout.keys or tuple(each.path for each in layout.tracked if len(each.path) == 1)


def _named(
    columns: Sequence[str] | str, measurable: dict[ColumnPath, pa.DataType], subject: str
) -> tuple[ColumnPath, ...]:
    problems: list[str] = []
    found = []
    for path in parse_column_list("columns", columns, problems):
        folded = _folded(path)
        alike = [path] if path in measurable else [each for each in measurable if _folded(each) == folded]
        if len(alike) == 1:
            found.append(alike[0])
        else:
            problems.append(f"columns: '{format_column_path(path)}' has no statistics here; {_choice(measurable)}")
    if problems:
        raise ConfigError(problems, subject)
    return tuple(dict.fromkeys(found))


def _folded(path: ColumnPath) -> ColumnPath:
    return tuple(name.lower() for name in path)


def _choice(measurable: dict[ColumnPath, pa.DataType]) -> str:
    names = [format_column_path(path) for path in measurable]
    if not names:
        return "no column has any: list columns in stats_columns and build the table, or refresh its index"
    more = f" … and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"choose among {', '.join(names[:_MOST_NAMES])}{more}, or list the column in stats_columns"
