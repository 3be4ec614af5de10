"""A column as dbt sees it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.spark.column import SparkColumn

from dbt.adapters.zlayout.sql_literals import quoted_identifier


@dataclass(repr=False)
class ZlayoutColumn(SparkColumn):
    """A column; its name may hold any character."""

    @property
    def quoted(self) -> str:
        """The name in backquotes."""
        return quoted_identifier(self.column)
