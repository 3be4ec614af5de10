"""Relations and columns as dbt sees them. A merge-on-read table is one relation, although the catalog has three."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.base.column import Column
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.relation import SparkRelation
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.session_catalog import TABLE_ID_PROPERTY, TableName
from dbt.adapters.zlayout.spark.read.record_tables import BASE_ROWS_PROPERTY, files_name


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


_BASE_ROWS_OF, _TABLE_ID = (
    re.compile(rf"^Table Properties: \[.*\b{re.escape(each)}=([\w-]+)", re.MULTILINE)
    for each in (BASE_ROWS_PROPERTY, TABLE_ID_PROPERTY)
)


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
        return ".".join(backquoted(part) for part in (self.schema, self.identifier) if part)


def name_of(relation: ZlayoutRelation | str) -> str:
    """Returns the catalog name of a relation. A name stays as it is."""
    return relation if isinstance(relation, str) else relation.catalog_name


def whole_table(relation: ZlayoutRelation | str, test: str) -> str:
    """Returns the catalog name of the table that a test checks.

    Args:
        test: The name of the test, for the message.

    Raises:
        CompilationError: The test has a ``where`` or ``limit``, so dbt passed a subquery.
    """
    if isinstance(relation, ZlayoutRelation):
        return relation.catalog_name
    if relation.lstrip().startswith("("):
        raise CompilationError(f"{test} checks a whole table; remove its `where` (or `limit`)")
    return relation


def view_name(macro: str, table: str, identity: str, *words: str) -> str:
    """Returns the name of the temporary view that a macro creates for a table. It is the same from run to run.

    Args:
        identity: What distinguishes views with the same words.
        words: Further parts of the name.

    >>> view_name("zlayout_at", "`shop`.`orders`", "in /lake", "v3")
    'zlayout_at_shop_orders_v3_5a6f15e4'
    """
    digest = hashlib.blake2b(identity.encode(), digest_size=4).hexdigest()
    word = re.sub(r"\W+", "_", table, flags=re.ASCII).strip("_").lower()
    return "_".join([macro, word, *words, digest])


def as_dbt_relations(relations: Sequence[Any]) -> list[BaseRelation]:
    """Returns the relations of one schema, with each merge-on-read table listed once, as a table.

    Temporary views are left out: Spark lists them in every schema, and they are in none.

    Args:
        relations: The relations as dbt-spark lists them. ``information`` holds the catalog's description of each.
    """
    relations = [each for each in relations if each.schema]
    ids = {each.identifier: _property(each, _TABLE_ID) for each in relations}
    merging = {each.identifier: ids[each.identifier] for each in relations if each.is_view and ids[each.identifier]}
    stored_in = {(files_name(TableName("", name)).identifier, table_id) for name, table_id in merging.items()}
    return [
        each.incorporate(type=RelationType.Table) if each.identifier in merging else each
        for each in relations
        if (each.identifier, ids[each.identifier]) not in stored_in
        and _property(each, _BASE_ROWS_OF) not in merging.values()
    ]


def _property(relation: Any, pattern: re.Pattern[str]) -> str | None:
    found = pattern.search(relation.information or "")
    return found[1] if found else None
