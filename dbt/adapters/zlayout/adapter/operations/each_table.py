"""Runs an operation on each table that it applies to. A table that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import click
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.zlayout.adapter.dbt_errors import one_line
from dbt.adapters.zlayout.adapter.node_lookup import Nodes, opened_table, table_of, tables_of
from dbt.adapters.zlayout.adapter.operations.progress import with_progress
from dbt.adapters.zlayout.errors import CancelledError, TableLostError, TableNotFoundError
from dbt.adapters.zlayout.predicate.literals import plain_name
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = TypeVar("_T")


def report_on_tables(
    session: SparkSession,
    model: str | None,
    nodes: Nodes,
    work: Callable[[ZTable], _T],
    text: Callable[[Mapping[str, _T]], str],
    fits: Callable[[ZTable], bool] = lambda table: table.is_managed,
) -> str:
    """Runs an operation on the table of a model or, without a model, on all tables of the project that it fits.

    Args:
        session: The session whose catalog knows the tables.
        model: As in `table_of`.
        nodes: The nodes of the project.
        work: The operation on one table.
        text: Returns the report on the outcomes, by table.
        fits: Whether an operation without a model includes a table.

    Returns:
        The report.

    Raises:
        DbtRuntimeError: Tables failed. The message names them. The report on the others is printed.
    """
    if model is not None:
        table = opened_table(session, table_of(model, nodes))
        return text({table.name: work(table)})

    def outcome(name: str) -> tuple[str, _T] | None:
        table = ZTable.for_name(session, name)
        return (table.name, work(table)) if fits(table) else None

    return report_on_names(tables_of(nodes), outcome, text)


def report_on_names(
    names: Iterable[str], work: Callable[[str], tuple[str, _T] | None], text: Callable[[Mapping[str, _T]], str]
) -> str:
    """Runs an operation on tables, given by their names. Tables that do not exist or have no index are left out.

    Args:
        names: Names of tables.
        work: Returns the table's name and the outcome. None if the operation is not for this table.
        text: Returns the report on the outcomes, by table.

    Returns:
        The report.

    Raises:
        DbtRuntimeError: Tables failed. The message names them. The report on the others is printed.
    """
    done: dict[str, _T] = {}
    failed: list[str] = []

    def work_on(name: str) -> None:
        try:
            outcome = work(name)
        except CancelledError:
            raise
        except Exception as error:  # the other tables may be sound
            if isinstance(error, TableNotFoundError) and not isinstance(error, TableLostError):
                return  # a project also has views, tables of other formats, and models that were never built
            failed.append(f"  {plain_name(name)}: {one_line(error)}")
        else:
            done.update([outcome] if outcome is not None else [])

    for name in with_progress(list(names), "done", "table"):
        work_on(name)
    if not failed:
        return text(done)
    if done:
        click.echo(text(done))
    raise DbtRuntimeError("\n".join([f"{counted(len(failed), 'table')} failed:", *failed]))
