"""Clustering settings: the key columns and the curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from dbt.adapters.zlayout.config.column_names import format_column_path, parse_column_list
from dbt.adapters.zlayout.config.scalars import parse_choice
from dbt.adapters.zlayout.predicate.expr import ColumnPath

CurveName = Literal["zorder", "hilbert", "linear"]

MAX_ZORDER_COLUMNS = 8


@dataclass(frozen=True)
class ClusteringConfig:
    """The clustering of a table.

    Attributes:
        columns: The keys, most important first; empty for a table that is not clustered.
        curve: The order of the cells that the keys span.
    """

    columns: tuple[ColumnPath, ...] = ()
    curve: CurveName = "zorder"


def parse_clustering(raw: Mapping[str, object], problems: list[str]) -> ClusteringConfig:
    """Reads ``zorder`` and ``curve``; ``zorder`` is required for ``materialized='zordered_table'``."""
    columns = parse_column_list("zorder", raw.get("zorder"), problems)
    if not raw.get("zorder") and raw.get("materialized") == "zordered_table":
        problems.append("zorder: missing; a zordered_table needs the columns to cluster by, such as zorder=['a', 'b']")
    if len(columns) > MAX_ZORDER_COLUMNS:
        listed = ", ".join(map(format_column_path, columns))
        problems.append(f"zorder: {len(columns)} columns ({listed}); at most {MAX_ZORDER_COLUMNS} are allowed")
    curve = parse_choice("curve", raw.get("curve"), problems, default="zorder", allowed=get_args(CurveName))
    return ClusteringConfig(columns, cast(CurveName, curve))
