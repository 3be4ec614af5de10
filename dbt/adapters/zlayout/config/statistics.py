"""Statistics settings: the columns that the index keeps statistics of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt.adapters.zlayout.config.column_names import parse_column_list
from dbt.adapters.zlayout.config.scalars import as_integer, parse_integer
from dbt.adapters.zlayout.predicate.expr import ColumnPath

_DEFAULT_COLUMN_COUNT = 32
_MAX_COLUMN_COUNT = 100_000


@dataclass(frozen=True)
class StatisticsConfig:
    """Columns whose bounds and counts the index keeps; the clustering keys are always included.

    Attributes:
        columns: A number of leaf columns, counted from the start of the schema, or a list of columns.
    """

    columns: int | tuple[ColumnPath, ...] = _DEFAULT_COLUMN_COUNT


def parse_statistics(raw: Mapping[str, object], problems: list[str]) -> StatisticsConfig:
    """Reads ``stats_columns``: a number of leaf columns, or a list of columns."""
    value = raw.get("stats_columns")
    if value is None:
        return StatisticsConfig()
    if isinstance(value, int | float) or as_integer(value) is not None:
        count = parse_integer(
            "stats_columns", value, problems, default=_DEFAULT_COLUMN_COUNT, low=0, high=_MAX_COLUMN_COUNT
        )
        return StatisticsConfig(count)
    return StatisticsConfig(parse_column_list("stats_columns", value, problems))
