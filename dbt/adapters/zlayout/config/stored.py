"""The settings as a version of a table stores them: those that later writes need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.zlayout.config.clustering import ClusteringConfig
from dbt.adapters.zlayout.config.table_config import (
    FileSizingConfig,
    PartitioningConfig,
    RetentionConfig,
    StatisticsConfig,
    TableConfig,
    WritingConfig,
)
from dbt.adapters.zlayout.config.table_type import TableTypeConfig
from dbt.adapters.zlayout.predicate.expr import ColumnPath


def stored_settings(config: TableConfig) -> dict[str, Any]:
    """Returns the settings as a version stores them, for `read_stored`. Fields have the names of the dataclasses."""
    columns, table_type = config.statistics.columns, config.table_type
    merging = {"table_type": {**vars(table_type), "unique_key": list(table_type.unique_key)}}
    return {
        **(merging if table_type.merges_on_read else {}),
        "zorder": [list(path) for path in config.clustering.columns],
        "curve": config.clustering.curve,
        "sizing": dict(vars(config.file_sizing)),
        "stats_columns": columns if isinstance(columns, int) else [list(path) for path in columns],
        "compression": config.writing.compression,
        "writer": config.writing.writer,
        "retention": dict(vars(config.retention)),
    }


def read_stored(layout: Mapping[str, Any], partition_by: tuple[str, ...]) -> TableConfig:
    """Returns the settings that a version stores. Settings that it does not store have their defaults.

    Args:
        layout: From `stored_settings`. Further keys at its top are ignored.
        partition_by: The partition columns, which a version stores elsewhere.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: No release stores such a layout.
    """
    columns = layout.get("stats_columns", StatisticsConfig.columns)
    table_type = dict(layout.get("table_type") or {})
    if table_type:
        table_type["unique_key"] = tuple(table_type["unique_key"])
    writing = {key: layout[key] for key in ("compression", "writer") if key in layout}
    return TableConfig(
        clustering=ClusteringConfig(_paths(layout.get("zorder", [])), layout.get("curve", ClusteringConfig.curve)),
        partitioning=PartitioningConfig(partition_by),
        file_sizing=FileSizingConfig(**layout.get("sizing", {})),
        statistics=StatisticsConfig(columns if isinstance(columns, int) else _paths(columns)),
        retention=RetentionConfig(**layout.get("retention", {})),
        writing=WritingConfig(**writing),
        table_type=TableTypeConfig(**table_type),
    )


def _paths(listed: list[list[str]]) -> tuple[ColumnPath, ...]:
    return tuple(tuple(path) for path in listed)
