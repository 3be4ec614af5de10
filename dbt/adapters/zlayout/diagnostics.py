"""The adapter's methods that explain, for macros, tests and run-operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import available
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.node_lookup import table_of
from dbt.adapters.zlayout.relation import ZlayoutRelation
from dbt.adapters.zlayout.reports import explanation_report, information_report
from dbt.adapters.zlayout.session_holder import SessionHolder
from dbt.adapters.zlayout.sql_literals import string_literal
from dbt.adapters.zlayout.table import ZTable, explain_query

if TYPE_CHECKING:
    from dbt.adapters.zlayout.inspect import Explanation

_USAGE = "zlayout_explain wants {sql: '…'} or {model: …, predicate: '…'}"


class Diagnostics(SessionHolder):
    """Answers about tables; mixed into the adapter, which has the session."""

    @available.parse_none
    def explain_pruning(self, relation: ZlayoutRelation | str, predicate: str) -> dict[str, Any]:
        """Which files of a table a filter reads, and why: `Explanation.to_dict`."""
        with as_dbt_errors():
            found: dict[str, Any] = self._table(relation).explain(predicate).to_dict()
            return found

    @available.parse_list
    def explain_query(self, sql: str) -> list[dict[str, Any]]:
        """The same for each scan of a query."""
        return [explanation.to_dict() for explanation in self._explained(sql)]

    @available.parse_list
    def index_status(self, relation: ZlayoutRelation | str) -> list[dict[str, Any]]:
        """What is wrong with a table's index: ``path`` and ``reason``, empty when it is fresh."""
        if not isinstance(relation, ZlayoutRelation) and relation.lstrip().startswith("("):
            raise CompilationError("zlayout_index_fresh looks at a whole table; take its `where` (or `limit`) away")
        with as_dbt_errors():
            rows: list[dict[str, Any]] = self._table(relation).index_status().to_pylist()
            return rows

    @available.parse_none
    def explain_report(
        self, sql: str | None, table: str | None, predicate: str | None, as_json: bool, verbose: bool
    ) -> str:
        """What the run-operation zlayout_explain prints."""
        if (sql is None) == (table is None) or (table is None) != (predicate is None):
            raise CompilationError(_USAGE)
        with as_dbt_errors():
            found = self._explained(sql) if sql is not None else [self._table(str(table)).explain(str(predicate))]
            return explanation_report(found, as_json=as_json, verbose=verbose)

    @available.parse_none
    def information_report(self, table: str, as_json: bool) -> str:
        """What the run-operation zlayout_info prints."""
        with as_dbt_errors():
            return information_report(self._table(table).information(), as_json=as_json)

    @available.parse_none
    def table_named(self, name: str, nodes: Mapping[str, Mapping[str, Any]]) -> str:
        """The table of a model's name, or of ``schema.table``."""
        with as_dbt_errors():
            return table_of(name, nodes)

    @available
    def string_literal(self, text: object) -> str:
        """A string literal of Spark's SQL."""
        return string_literal(str(text))

    def _table(self, relation: ZlayoutRelation | str) -> ZTable:
        name = relation if isinstance(relation, str) else relation.catalog_name
        return ZTable.for_name(self.session(), name)

    def _explained(self, sql: str) -> list[Explanation]:
        with as_dbt_errors():
            return explain_query(self.session(), sql)
