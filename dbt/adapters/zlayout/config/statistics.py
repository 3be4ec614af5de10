"""Which columns get statistics in the index."""

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
    """Columns whose bounds and counts the index keeps; the clustering keys always are among them.

    Attributes:
        columns: The first so many leaves of the schema, or these columns.
    """

    columns: int | tuple[ColumnPath, ...] = _DEFAULT_COLUMN_COUNT


def parse_statistics(raw: Mapping[str, object], problems: list[str]) -> StatisticsConfig:
    """Reads ``stats_columns``: a number of leaves, or a list of columns."""
    value = raw.get("stats_columns")
    if value is None:
        return StatisticsConfig()
    if isinstance(value, int | float) or as_integer(value) is not None:
        count = parse_integer(
            "stats_columns", value, problems, default=_DEFAULT_COLUMN_COUNT, low=0, high=_MAX_COLUMN_COUNT
        )
        return StatisticsConfig(count)
    return StatisticsConfig(parse_column_list("stats_columns", value, problems))
