"""Reports, rolls back and cleans older versions for run-operations, and gives models a relation that reads one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.relation import Path
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.node_lookup import Nodes, opened_table
from dbt.adapters.zlayout.adapter.operations.arguments import number_between, whole_number
from dbt.adapters.zlayout.adapter.operations.each_table import report_on_tables
from dbt.adapters.zlayout.adapter.output import json_text
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, view_name
from dbt.adapters.zlayout.quantities import aligned_lines, counted, size_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.zlayout.spark.commit.after_commit import CommitSummary
    from dbt.adapters.zlayout.table.ztable import ZTable
    from dbt.adapters.zlayout.timeline.retention.cleaning import CleanResult

_PERSISTENT = ("view", "materialized_view")
_HISTORY = (
    "version",
    "committed at",
    "operation",
    "rows",
    "+rows",
    "~rows",
    "-rows",
    "+files",
    "-files",
    "bytes added",
)
_NUMBERS = (0, 3, 4, 5, 6, 7, 8, 9)
_FIGURES = ("rows", "rows_inserted", "rows_updated", "rows_deleted", "files_added", "files_removed", "bytes_added")


def relation_at(
    session: SparkSession,
    relation: ZlayoutRelation | str,
    model: Mapping[str, Any],
    version: object,
    instant: object,
    timestamp: object,
) -> ZlayoutRelation:
    """Returns a version of a table as a temporary view.

    Raises:
        CompilationError: The calling node is itself a view, or not exactly one of the three arguments is given.
        VersionNotFoundError: The version does not exist.
    """
    _check_node(model)
    past = _past_version(version, instant, timestamp)
    if not past:
        raise CompilationError("zlayout_at needs version, instant or timestamp")
    table = opened_table(session, relation)
    found = table.version_at(**past)
    name = view_name("zlayout_at", table.name, f"{table.name} {table.location}", f"v{found}")
    table.read(version=found).createOrReplaceTempView(name)
    if isinstance(relation, str):
        return ZlayoutRelation.create(identifier=name)
    return replace(relation, path=Path(identifier=name))


def history_report(session: SparkSession, table: str, limit: object, as_json: bool) -> str:
    """Lists the versions of a table."""
    found = opened_table(session, table)
    rows = found.history(None if limit is None else whole_number("limit", limit, least=1)).to_pylist()
    return history_text(found.name, rows, as_json=as_json)


def rollback_report(
    session: SparkSession, table: str, version: object, instant: object, timestamp: object, as_json: bool
) -> str:
    """Rolls a table back."""
    past = _past_version(version, instant, timestamp)
    found = opened_table(session, table)
    if not past:
        raise CompilationError("zlayout_rollback needs version, instant or timestamp")
    to_version = found.version_at(**past)
    return rollback_text(found.name, to_version, found.rollback(to_version), as_json=as_json)


def clean_report(
    session: SparkSession,
    model: str | None,
    nodes: Nodes,
    *,
    dry_run: bool,
    retain_versions: object,
    retain_hours: object,
    as_json: bool,
) -> str:
    """Cleans one table, or all managed tables of the project."""
    versions = None if retain_versions is None else whole_number("retain_versions", retain_versions, least=1)
    hours = None if retain_hours is None else number_between("retain_hours", retain_hours, 0.0)

    def cleaned(table: ZTable) -> CleanResult:
        return table.clean(dry_run, retain_versions=versions, retain_hours=hours)

    return report_on_tables(session, model, nodes, cleaned, partial(clean_text, dry_run=dry_run, as_json=as_json))


def _past_version(version: object, instant: object, timestamp: object) -> dict[str, Any]:
    """Returns the version that an operation names, as keywords of ``ZTable.read``. Empty if it names none.

    Raises:
        CompilationError: The version is not a whole number.
    """
    # dbt passes variables as text, and YAML parses the digits of an instant as a number.
    present = {
        "version": None if version is None else whole_number("version", version, least=0),
        "instant": None if instant is None else str(instant),
        "timestamp": timestamp,
    }
    return {name: value for name, value in present.items() if value is not None}


def _check_node(model: Mapping[str, Any]) -> None:
    config = model.get("config") or {}
    kept_as = config.get("store_failures_as") if model.get("resource_type") == "test" else config.get("materialized")
    if kept_as in _PERSISTENT:
        raise CompilationError(
            f"{model.get('unique_id')}: zlayout_at returns a temporary view, which a persistent {kept_as} cannot read. "
            "Make this a table, incremental or zordered_table"
        )


def history_text(table: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> str:
    """Returns the versions of a table, with times in UTC."""
    if as_json:
        return json_text([{**row, "committed_at": _utc(row["committed_at"])} for row in rows])
    cells = [
        (
            str(row["version"]),
            _utc(row["committed_at"]),
            row["operation"],
            *(_number(row[name]) for name in _FIGURES),
        )
        for row in rows
    ]
    return "\n".join([table, *aligned_lines([_HISTORY, *cells], right=_NUMBERS)])


def rollback_text(table: str, to_version: int, done: CommitSummary, *, as_json: bool) -> str:
    """Returns what a rollback did."""
    if as_json:
        return json_text({"table": table, "to_version": to_version, **done.to_dict()})
    return (
        f"{table}: version {done.version} restores version {to_version}: {counted(done.rows, 'row')}, "
        f"{counted(done.files_added, 'file')} restored, {counted(done.files_removed, 'file')} removed"
    )


def clean_text(cleaned: Mapping[str, CleanResult], *, dry_run: bool, as_json: bool) -> str:
    """Returns what a clean of some tables deleted or would delete."""
    if as_json:
        return json_text([{"table": table, "dry_run": dry_run, **vars(result)} for table, result in cleaned.items()])
    if not cleaned:
        return "No dbt-zlayout table to clean."
    verb = "would delete" if dry_run else "deleted"
    lines = []
    for table, result in cleaned.items():
        oldest = "" if result.oldest_version is None else f"; the oldest readable version is {result.oldest_version}"
        lines.append(f"{table}: {verb} {counted(result.files, 'file')} ({size_text(result.bytes)}){oldest}")
        lines += [f"  not deleted: {problem}" for problem in result.failed]
        if dry_run:
            lines += [f"  {path}" for path in result.paths]
    return "\n".join(lines)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _utc(moment: dt.datetime) -> str:
    """Returns the time to the millisecond, in the form that ``zlayout_at(timestamp=…)`` accepts."""
    return f"{moment.astimezone(dt.timezone.utc):%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC"
