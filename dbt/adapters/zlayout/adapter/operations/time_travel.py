"""Reports, rolls back and cleans older versions for run-operations, and gives models a relation that reads one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.relation import Path
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.node_lookup import Nodes, chosen_tables, opened_table
from dbt.adapters.zlayout.adapter.operations.arguments import number_between, whole_number
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, view_name
from dbt.adapters.zlayout.adapter.reports import history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PERSISTENT = ("view", "materialized_view")


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
    return history.history_report(found.name, rows, as_json=as_json)


def rollback_report(
    session: SparkSession, table: str, version: object, instant: object, timestamp: object, as_json: bool
) -> str:
    """Rolls a table back."""
    past = _past_version(version, instant, timestamp)
    found = opened_table(session, table)
    if not past:
        raise CompilationError("zlayout_rollback needs {model: …, version: …}, or instant or timestamp")
    to_version = found.version_at(**past)
    return history.rollback_report(found.name, to_version, found.rollback(to_version), as_json=as_json)


def clean_report(
    session: SparkSession,
    model: str | None,
    nodes: Nodes,
    dry_run: bool,
    retain_versions: object,
    retain_hours: object,
    as_json: bool,
) -> str:
    """Cleans one table, or all managed tables of the project."""
    versions = None if retain_versions is None else whole_number("retain_versions", retain_versions, least=1)
    hours = None if retain_hours is None else number_between("retain_hours", retain_hours, 0.0)
    tables = chosen_tables(session, model, nodes, lambda table: table.is_managed)
    cleaned = {table.name: table.clean(dry_run, retain_versions=versions, retain_hours=hours) for table in tables}
    return history.clean_report(cleaned, dry_run=dry_run, as_json=as_json)


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
