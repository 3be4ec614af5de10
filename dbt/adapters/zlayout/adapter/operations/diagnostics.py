"""Explains and measures tables for macros, tests and run-operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.node_lookup import opened_table
from dbt.adapters.zlayout.adapter.operations.arguments import number_between
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, whole_table
from dbt.adapters.zlayout.adapter.reports import diagnostics
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.layout.table_verdict import TableFigures, verdict_of
from dbt.adapters.zlayout.table.ztable import ZTable, explain_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.zlayout.table.measures import ClusteringInformation

_LOG = AdapterLogger("Zlayout")
Columns = Sequence[str] | str | None
Row = dict[str, Any]
_USAGE = "zlayout_explain needs {sql: '…'} or {model: …, predicate: '…'}"


def depth_problems(session: SparkSession, relation: ZlayoutRelation | str, most: object, columns: Columns) -> list[Row]:
    """Returns the rows of the test zlayout_depth_at_most: one if the average depth is above ``most``, else none."""
    limit = number_between("zlayout_depth_at_most: max", most, 1.0)
    table = opened_table(session, whole_table(relation, "zlayout_depth_at_most"))
    return _failure_rows(table, diagnostics.depth_problem(table.clustering_information(columns), limit))


def pruning_problems(
    session: SparkSession, relation: ZlayoutRelation | str, predicate: str, percent: object
) -> list[Row]:
    """Returns the rows of the test zlayout_prunes_at_least: one if a condition skips too few files, else none."""
    least = number_between("zlayout_prunes_at_least: percent", percent, 0.0, 100.0)
    table = opened_table(session, whole_table(relation, "zlayout_prunes_at_least"))
    return _failure_rows(table, diagnostics.pruning_problem(table.explain(predicate), predicate, least))


def explain_report(
    session: SparkSession, sql: str | None, table: str | None, predicate: str | None, as_json: bool, verbose: bool
) -> str:
    """Explains a query, or a condition on a table."""
    if (sql is None) == (table is None) or (table is None) != (predicate is None):
        raise CompilationError(_USAGE)
    if sql is not None:
        found = explain_query(session, sql)
    else:
        found = [opened_table(session, str(table)).explain(str(predicate))]
    return diagnostics.explanation_report(found, as_json=as_json, verbose=verbose)


def information_report(
    session: SparkSession,
    table: str,
    columns: Columns,
    as_json: bool,
    verbose: bool = False,
    *,
    with_dbt: bool = True,
) -> str:
    """Gives the verdict on a table, its state, and its layout for some columns."""
    opened = opened_table(session, table)
    information, layout = opened.information(), _layout(opened, columns)
    of_keys = layout if columns is None else _layout(opened, None)
    return diagnostics.information_report(
        information,
        layout if as_json or verbose or columns is not None else None,
        verdict_of(TableFigures.of_information(information), of_keys),
        as_json=as_json,
        verbose=verbose,
        with_dbt=with_dbt,
    )


def _layout(table: ZTable, columns: Columns) -> ClusteringInformation | None:
    try:
        return table.clustering_information(columns)
    except ConfigError:
        if columns is not None:
            raise
        return None  # no column of the table has statistics


def _failure_rows(table: ZTable, row: Row | None) -> list[Row]:
    """Returns the rows of a test: the one that describes its failure, which is also logged, or none."""
    if row is None:
        return []
    _LOG.info(diagnostics.problem_line(table.name, row))
    return [row]
