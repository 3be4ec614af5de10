"""A relation as dbt sees it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.spark.relation import SparkRelation
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.sql_literals import quoted_identifier


@dataclass(frozen=True, eq=False, repr=False)
class ZlayoutRelation(SparkRelation):
    """A table or view."""

    @property
    def is_plain_table(self) -> bool:
        """Whether this is a table that belongs to no other table format."""
        return self.is_table and not (self.is_delta or self.is_iceberg or self.is_hudi)

    @property
    def catalog_name(self) -> str:
        """``schema.identifier`` in backquotes: always the table, even if dbt renders the relation as a subquery."""
        return ".".join(quoted_identifier(part) for part in (self.schema, self.identifier) if part)


def whole_table(relation: ZlayoutRelation | str, test: str) -> str:
    """The catalog name of the table that a test checks.

    Args:
        relation: A relation, or a name.
        test: The name of the test, for the message.

    Raises:
        CompilationError: The test has a ``where`` or ``limit``, so dbt passed a subquery.
    """
    if isinstance(relation, ZlayoutRelation):
        return relation.catalog_name
    if relation.lstrip().startswith("("):
        raise CompilationError(f"{test} checks a whole table; remove its `where` (or `limit`)")
    return relation
