"""Makes the layout report of one table, or of all tables of a project, for zlayout_report."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.zlayout.adapter.dbt_errors import one_line
from dbt.adapters.zlayout.adapter.node_lookup import Nodes, opened_table, table_of, tables_of
from dbt.adapters.zlayout.adapter.operations.advising import ProjectWorkload, table_advice
from dbt.adapters.zlayout.adapter.operations.linting import find_conditions
from dbt.adapters.zlayout.adapter.operations.progress import with_progress
from dbt.adapters.zlayout.adapter.output import write_whole
from dbt.adapters.zlayout.adapter.report_page.layout_page import (
    Section,
    Unreadable,
    most_files,
    report_json,
    report_page,
    report_text,
    vega_script,
    worst_first,
)
from dbt.adapters.zlayout.errors import ConfigError, TableNotFoundError, ZlayoutError
from dbt.adapters.zlayout.layout.table_verdict import Command, unreadable
from dbt.adapters.zlayout.predicate.literals import folded_name, plain_name
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.table.layout_report import TableReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.zlayout.config.workload import WeightedCondition
    from dbt.adapters.zlayout.table.ztable import ZTable

_LOG = AdapterLogger("Zlayout")
_MOST_CONDITIONS, _MOST_FINDINGS = 30, 20


def layout_report(
    session: SparkSession,
    title: str,
    model: str | Sequence[str] | None,
    nodes: Nodes,
    path: str | None,
    as_json: bool,
    *,
    target: Path | None = None,
    with_dbt: bool = True,
) -> str:
    """Writes the report to a file, and returns what is printed.

    Args:
        title: The subject of the report.
        model: A table or several; None for all tables of the project.
        path: The file; None if only JSON is wanted.
        as_json: Whether to print the report as JSON.
        target: The target folder of the project, with compiled SQL and the scan log; None without one.
        with_dbt: Whether commands in the report are run-operations; else those of ``zlayout``.

    Raises:
        ConfigError: There is neither a path nor JSON, or the file cannot be written.
        UnsupportedError: The plotting library is not installed.
    """
    if path is None and not as_json:
        raise ConfigError(["path: missing; add --args '{path: report.html}', or json: true for only the figures"])
    if path is not None:
        vega_script()  # if it is not installed, nothing is measured
    workload = ProjectWorkload(session, nodes, target)
    models = [model] if isinstance(model, str) else model
    tables = _reports(session, models, nodes, workload)
    written = None
    if path is not None:
        known = {each.name for each in tables if isinstance(each, TableReport)}
        sections = [_advice(session, sorted(known), workload, with_dbt), _lint(session, workload, target, known)]
        page = report_page(title, tables, dt.datetime.now(dt.timezone.utc), sections=sections, with_dbt=with_dbt)
        written = write_whole(Path(path), page)
    ordered = worst_first(tables)
    return report_json(ordered, path) if as_json else report_text(ordered, str(path), written or 0)


def _reports(
    session: SparkSession, models: Sequence[str] | None, nodes: Nodes, workload: ProjectWorkload
) -> list[TableReport | Unreadable]:
    names = tables_of(nodes) if models is None else [table_of(model, nodes) for model in models]
    most = most_files(len(names))
    named = with_progress(names, "measuring the tables", "table")
    found = [_report(session, name, workload, most, models is not None) for name in named]
    tables = [each for each in found if each is not None]
    if names and not tables:
        of_all = counted(len(names), "model")
        _LOG.warning(f"none of {of_all} of the project is a dbt-zlayout table in this catalog; build them first")
    return tables


def _report(
    session: SparkSession, name: str, workload: ProjectWorkload, most: int, asked: bool
) -> TableReport | Unreadable | None:
    """Returns the report of a table. None if it is not a table of this package, unless the user named it."""
    try:
        table = opened_table(session, name)
        return table.layout_report(_conditions(table, workload), most_files=most)
    except TableNotFoundError:
        if asked:
            raise
        return None
    except ZlayoutError as error:
        plain = plain_name(name)
        return Unreadable(plain, unreadable(plain, str(error)))


def _conditions(table: ZTable, workload: ProjectWorkload) -> Sequence[WeightedCondition]:
    try:
        return workload.foremost(table, _MOST_CONDITIONS)
    except ConfigError as error:
        _LOG.warning(f"{table.name}: the report is made without its workload: {one_line(error)}")
        return []


def _advice(session: SparkSession, tables: Sequence[str], workload: ProjectWorkload, with_dbt: bool) -> Section:
    """Returns what the workload of each table would gain by another layout."""
    lines = []
    for name in with_progress(tables, "advice", "table"):
        try:
            found = table_advice(table := opened_table(session, name), workload.of(table)).advice
        except ZlayoutError as error:
            lines.append((f"{name}: no advice: {one_line(error)}", ""))
            continue
        if found is None:
            continue
        reasons = [*([found.why] if found.rewrite_bytes else []), *(each.why for each in found.settings)]
        command = Command("advise", name).text(with_dbt=with_dbt)
        lines += [(f"{name}: {why}", command) for why in reasons]
    return Section("Advice", lines)


def _lint(session: SparkSession, workload: ProjectWorkload, target: Path | None, tables: Collection[str]) -> Section:
    """Returns the conditions of compiled queries that cannot skip files, those that cost most first."""
    folded = set(map(folded_name, tables))
    found = [each for each in find_conditions(session, workload.queries, target) if folded_name(each.table) in folded]
    lines = [
        (f"{each.path}:{each.line}: {each.condition} cannot skip files of {each.table}: {each.why}", "")
        for each in found[:_MOST_FINDINGS]
    ]
    return Section("Conditions that cannot skip files", lines)
