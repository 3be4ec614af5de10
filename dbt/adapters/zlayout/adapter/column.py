"""A column as dbt sees it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.base.column import Column
from dbt.adapters.spark.column import SparkColumn

from dbt.adapters.zlayout.predicate.literals import backquoted


@dataclass(repr=False)
class ZlayoutColumn(SparkColumn):
    """A column. Its name may contain any character."""

    @property
    def quoted(self) -> str:
        """The name in backquotes."""
        return backquoted(self.column)

    def is_string(self) -> bool:
        """Returns whether the column holds text."""
        return self._kind in ("string", "varchar", "char")

    def is_integer(self) -> bool:
        """Returns whether the column holds whole numbers."""
        return self._kind in ("tinyint", "smallint", "int", "bigint")

    def is_numeric(self) -> bool:
        """Returns whether the column holds decimals."""
        return self._kind == "decimal"

    def can_expand_to(self, other_column: Column) -> bool:  # noqa: ARG002 # dbt's signature
        """Always False: Spark's strings have no maximum length to expand."""
        return False

    @property
    def _kind(self) -> str:
        return self.dtype.lower().split("(", 1)[0]
