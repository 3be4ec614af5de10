"""The adapter methods that explain and measure tables, for macros, tests and run-operations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.adapter.node_lookup import table_of
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, whole_table
from dbt.adapters.zlayout.adapter.reports.layout import depth_problem, problem_line, pruning_problem
from dbt.adapters.zlayout.adapter.reports.output import explanation_report, information_report
from dbt.adapters.zlayout.adapter.session.holder import SessionHolder
from dbt.adapters.zlayout.adapter.sql_literals import string_literal
from dbt.adapters.zlayout.config.scalars import as_number
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.table.ztable import ZTable, explain_query

if TYPE_CHECKING:
    from dbt.adapters.zlayout.table.explanation import Explanation
    from dbt.adapters.zlayout.table.measures import ClusteringInformation

_LOG = AdapterLogger("Zlayout")
Columns = Sequence[str] | str | None
Problem = dict[str, Any]
_USAGE = "zlayout_explain needs {sql: '…'} or {model: …, predicate: '…'}"


class Diagnostics(SessionHolder):
    """Explains and measures tables. A mixin of the adapter, which provides the session."""

    @available.parse_none
    def explain_pruning(self, relation: ZlayoutRelation | str, predicate: str) -> dict[str, Any]:
        """Which files of a table a filter reads, and why, as `Explanation.to_dict`."""
        with as_dbt_errors():
            found: dict[str, Any] = self._table(relation).explain(predicate).to_dict()
            return found

    @available.parse_list
    def explain_query(self, sql: str) -> list[dict[str, Any]]:
        """Which files each scan of a query reads, and why, as `Explanation.to_dict`."""
        return [explanation.to_dict() for explanation in self._explained(sql)]

    @available.parse_list
    def index_status(self, relation: ZlayoutRelation | str) -> list[dict[str, Any]]:
        """The problems of a table's index as ``path`` and ``reason``. Empty if the index is fresh."""
        with as_dbt_errors():
            table = self._table(whole_table(relation, "zlayout_index_fresh"))
            rows: list[dict[str, Any]] = table.index_status().to_pylist()
            return rows

    @available.parse_none
    def clustering_information(
        self, relation: ZlayoutRelation | str, columns: Columns = None, predicate: str | None = None
    ) -> dict[str, Any]:
        """How well a table is laid out, as `ClusteringInformation.to_dict`."""
        with as_dbt_errors():
            return self._table(relation).clustering_information(columns, predicate=predicate).to_dict()

    @available.parse_list
    def depth_problems(self, relation: ZlayoutRelation | str, most: object, columns: Columns = None) -> list[Problem]:
        """The rows of the test zlayout_depth_at_most: one if the average depth is above ``most``, otherwise none."""
        limit = _number_between(most, 1.0, None, "zlayout_depth_at_most: max")
        with as_dbt_errors():
            table = self._table(whole_table(relation, "zlayout_depth_at_most"))
            return _told(table, depth_problem(table.clustering_information(columns), limit))

    @available.parse_list
    def pruning_problems(self, relation: ZlayoutRelation | str, predicate: str, percent: object) -> list[Problem]:
        """The rows of the test zlayout_prunes_at_least: one if a condition skips fewer files, otherwise none."""
        least = _number_between(percent, 0.0, 100.0, "zlayout_prunes_at_least: percent")
        with as_dbt_errors():
            table = self._table(whole_table(relation, "zlayout_prunes_at_least"))
            return _told(table, pruning_problem(table.explain(predicate), predicate, least))

    @available.parse_none
    def explain_report(
        self, sql: str | None, table: str | None, predicate: str | None, as_json: bool, verbose: bool
    ) -> str:
        """The text that the run-operation zlayout_explain prints."""
        if (sql is None) == (table is None) or (table is None) != (predicate is None):
            raise CompilationError(_USAGE)
        with as_dbt_errors():
            found = self._explained(sql) if sql is not None else [self._table(str(table)).explain(str(predicate))]
            return explanation_report(found, as_json=as_json, verbose=verbose)

    @available.parse_none
    def information_report(self, table: str, columns: Columns, as_json: bool) -> str:
        """The text that the run-operation zlayout_info prints: a table's state, and its layout for some columns."""
        with as_dbt_errors():
            opened = self._table(table)
            return information_report(opened.information(), _layout(opened, columns), as_json=as_json)

    @available.parse_none
    def table_named(self, name: str, nodes: Mapping[str, Mapping[str, Any]]) -> str:
        """The table of a model, given the model's name or ``schema.table``."""
        with as_dbt_errors():
            return table_of(name, nodes)

    @available
    def string_literal(self, text: object) -> str:
        """The text as a string literal of Spark SQL."""
        return string_literal(str(text))

    def _table(self, relation: ZlayoutRelation | str) -> ZTable:
        name = relation if isinstance(relation, str) else relation.catalog_name
        return ZTable.for_name(self.session(), name)

    def _explained(self, sql: str) -> list[Explanation]:
        with as_dbt_errors():
            return explain_query(self.session(), sql)


def _number_between(value: object, least: float, most: float | None, name: str) -> float:
    """The number that a test was given. Jinja may have turned it into text.

    Raises:
        CompilationError: The value is not a number, or it is out of bounds.
    """
    number = as_number(value)
    if least <= number <= (math.inf if most is None else most):
        return number
    allowed = f"{least:g} or more" if most is None else f"{least:g} to {most:g}"
    raise CompilationError(f"{name} is {value!r}; write a number, {allowed}")


def _layout(table: ZTable, columns: Columns) -> ClusteringInformation | None:
    try:
        return table.clustering_information(columns)
    except ConfigError:
        if columns is not None:
            raise
        return None  # no column of the table has statistics


def _told(table: ZTable, problem: Problem | None) -> list[Problem]:
    if problem is None:
        return []
    _LOG.info(problem_line(table.name, problem))
    return [problem]
