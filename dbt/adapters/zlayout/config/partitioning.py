"""Partitioning settings: the columns that become ``key=value`` folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt.adapters.zlayout.config.column_names import format_column_path, parse_column_list


@dataclass(frozen=True)
class PartitioningConfig:
    """The partition columns of a table.

    Attributes:
        columns: Top-level columns, outermost folder first; empty for a table without partitions.
    """

    columns: tuple[str, ...] = ()


def parse_partitioning(raw: Mapping[str, object], problems: list[str]) -> PartitioningConfig:
    """Reads ``partition_by``: one column or a list of columns."""
    columns: list[str] = []
    for path in parse_column_list("partition_by", raw.get("partition_by"), problems):
        if len(path) == 1:
            columns.append(path[0])
        else:
            spelled = format_column_path(path)
            problems.append(
                f"partition_by: '{spelled}' is a field of a struct; only top-level columns can be folders"
                f" (a column whose name has a dot is written `{'.'.join(path)}` in backquotes)"
            )
    return PartitioningConfig(tuple(columns))
