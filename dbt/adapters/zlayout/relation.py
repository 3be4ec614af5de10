"""A relation as dbt sees it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.spark.relation import SparkRelation

from dbt.adapters.zlayout.sql_literals import quoted_identifier


@dataclass(frozen=True, eq=False, repr=False)
class ZlayoutRelation(SparkRelation):
    """A table or view."""

    @property
    def is_plain_table(self) -> bool:
        """Whether it is a table that no table format looks after."""
        return self.is_table and not (self.is_delta or self.is_iceberg or self.is_hudi)

    @property
    def catalog_name(self) -> str:
        """``schema.identifier`` in backquotes: the table itself, also where dbt renders a limited subquery of it."""
        return ".".join(quoted_identifier(part) for part in (self.schema, self.identifier) if part)
