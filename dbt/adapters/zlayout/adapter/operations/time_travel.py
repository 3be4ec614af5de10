"""The adapter methods for older versions: reports and rollback for run-operations, and a relation for models."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.contracts.relation import Path
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.adapter.node_lookup import table_of, tables_of
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation
from dbt.adapters.zlayout.adapter.reports.history import clean_report, history_report, rollback_report
from dbt.adapters.zlayout.adapter.session.holder import SessionHolder
from dbt.adapters.zlayout.table.ztable import ZTable

_PERSISTENT = ("view", "materialized_view")


class TimeTravel(SessionHolder):
    """Older versions of tables. A mixin of the adapter, which provides the session."""

    @available.parse_none
    def relation_at(
        self,
        relation: ZlayoutRelation | str,
        model: Mapping[str, Any],
        version: int | str | None,
        instant: int | str | None,
        timestamp: Any,
    ) -> ZlayoutRelation:
        """A version of a table as a temporary view. Limits on the relation (``--empty``) also apply to the view.

        Raises:
            CompilationError: The calling node is itself a view, or not exactly one of the three arguments is given.
            DbtRuntimeError: The version does not exist.
        """
        _check_node(model)
        past = _past(version, instant, timestamp)
        if not past:
            raise CompilationError("zlayout_at needs version, instant or timestamp")
        with as_dbt_errors():
            spark = self.session()
            table = ZTable.for_name(spark, relation if isinstance(relation, str) else relation.catalog_name)
            found = table.version_at(**past)
            name = _view_name(table.name, table.location, found)
            table.read(version=found).createOrReplaceTempView(name)
        if isinstance(relation, str):
            return ZlayoutRelation.create(identifier=name)
        return replace(relation, path=Path(identifier=name))

    @available.parse_none
    def history_report(self, table: str, limit: int | str | None, as_json: bool) -> str:
        """The text that the run-operation zlayout_history prints."""
        with as_dbt_errors():
            found = ZTable.for_name(self.session(), table)
            rows = found.history(_whole("limit", limit, least=1)).to_pylist()
            return history_report(found.name, rows, as_json=as_json)

    @available.parse_none
    def rollback_report(
        self, table: str, version: int | str | None, instant: int | str | None, timestamp: Any, as_json: bool
    ) -> str:
        """Rolls a table back. Returns the text that the run-operation zlayout_rollback prints."""
        past = _past(version, instant, timestamp)
        with as_dbt_errors():
            found = ZTable.for_name(self.session(), table)
            if not past:
                raise CompilationError("zlayout_rollback needs {model: …, version: …}, or instant or timestamp")
            to_version = found.version_at(**past)
            return rollback_report(found.name, to_version, found.rollback(to_version), as_json=as_json)

    @available.parse_none
    def clean_report(
        self,
        model: str | None,
        nodes: Mapping[str, Mapping[str, Any]],
        dry_run: bool,
        retain_versions: int | str | None,
        retain_hours: float | str | None,
        as_json: bool,
    ) -> str:
        """Cleans one table, or all managed tables of the project. Returns the text that zlayout_clean prints."""
        versions = _whole("retain_versions", retain_versions, least=1)
        hours = None if retain_hours is None else float(retain_hours)
        with as_dbt_errors():
            if model is not None:
                tables = [ZTable.for_name(self.session(), table_of(model, nodes))]
            else:
                tables = [table for table in self.tables_with_index(tables_of(nodes)) if table.is_managed]
            cleaned = {
                table.name: table.clean(dry_run, retain_versions=versions, retain_hours=hours) for table in tables
            }
            return clean_report(cleaned, dry_run=dry_run, as_json=as_json)


def _check_node(model: Mapping[str, Any]) -> None:
    config = model.get("config") or {}
    kept_as = config.get("store_failures_as") if model.get("resource_type") == "test" else config.get("materialized")
    if kept_as in _PERSISTENT:
        raise CompilationError(
            f"{model.get('unique_id')}: zlayout_at returns a temporary view, which a persistent {kept_as} cannot read. "
            "Make this a table, incremental or zordered_table"
        )


def _past(version: int | str | None, instant: int | str | None, timestamp: Any) -> dict[str, Any]:
    # dbt passes variables as text, and YAML parses the digits of an instant as a number.
    asked = {
        "version": _whole("version", version, least=0),
        "instant": None if instant is None else str(instant),
        "timestamp": timestamp,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _whole(name: str, value: int | str | None, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not str(value).isdecimal() or int(value) < least:
        raise CompilationError(f"{name}: {value!r} is not a whole number of at least {least}")
    return int(value)


def _view_name(table: str, location: str, version: int) -> str:
    digest = hashlib.blake2b(f"{table} {location}".encode(), digest_size=4).hexdigest()
    word = re.sub(r"\W+", "_", table, flags=re.ASCII).strip("_").lower()
    return f"zlayout_at_{word}_v{version}_{digest}"
