"""Refreshes and verifies indexes for run-operations, post-hooks and tests."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.zlayout.adapter.node_lookup import (
    Nodes,
    config_of_table,
    is_path,
    opened_table,
    table_of,
    tables_of,
    tables_with_index,
)
from dbt.adapters.zlayout.adapter.operations.progress import progress_of, with_progress
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, name_of
from dbt.adapters.zlayout.adapter.reports import indexes
from dbt.adapters.zlayout.config.known_keys import settings_among
from dbt.adapters.zlayout.config.settings import OWN_KEYS
from dbt.adapters.zlayout.errors import ConfigError, TableLostError, TableNotFoundError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.index.optional_indexes import ColumnSets
from dbt.adapters.zlayout.spark.index.refresh import Refreshed
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = AdapterLogger("Zlayout")
# The settings of a model that apply to a table which something else wrote.
_ADOPTED_WITH = tuple(name for name in inspect.signature(ZTable.adopt).parameters if name in OWN_KEYS)


def refresh_index(
    session: SparkSession, relation: ZlayoutRelation | str, take_orphans: bool, drop_missing: bool
) -> dict[str, Any]:
    """Refreshes the index of a table for a hook, and logs what was done."""
    table, done = _refreshed(session, name_of(relation), take_orphans, drop_missing, {})
    _LOG.info(indexes.refresh_line(table, done))
    return vars(done)


def adopt_report(session: SparkSession, name: str, config: Mapping[str, Any], manage: bool, as_json: bool) -> str:
    """Indexes a Parquet table of another tool, or takes it over, with the settings of its model.

    Raises:
        ConfigError: The table is given by its folder, or a setting does not fit it.
    """
    if is_path(name):
        raise ConfigError(["only a table of the catalog can be adopted; give schema.table, not a folder"], name)
    return indexes.adopted_report(_adopted(session, name, config, managed=manage), as_json=as_json)


def refresh_report(
    session: SparkSession,
    model: str | None,
    nodes: Nodes,
    sources: Nodes,
    take_orphans: bool,
    drop_missing: bool,
    as_json: bool,
) -> str:
    """Refreshes one index, or all in the project."""
    names = [table.name for table in _indexed(session, nodes, sources)] if model is None else [table_of(model, nodes)]
    done = dict(_refreshed(session, name, take_orphans, drop_missing, config_of_table(name, nodes)) for name in names)
    return indexes.refresh_report(done, as_json=as_json)


def index_report(
    session: SparkSession,
    model: str,
    nodes: Nodes,
    bloom: Sequence[str] | str | None,
    lookup: ColumnSets | None,
    stats_expressions: Sequence[str] | str | None,
    drop: bool,
    schedule: bool,
    execute: bool,
    as_json: bool,
) -> str:
    """Adds optional parts of the index to a table, or takes them away; without any, adds what files lack."""
    table = opened_table(session, table_of(model, nodes))
    if drop and (schedule or execute):
        raise ConfigError(["drop: is one step; leave out schedule and execute"], table.name)
    if drop and not (bloom or lookup or stats_expressions):
        nothing = "bloom, lookup, stats_expressions: nothing is given; name the columns or expressions to drop"
        raise ConfigError([nothing], table.name)
    change = table.drop_index if drop else partial(table.build_index, schedule=schedule, execute=execute)
    done = change(
        bloom=bloom or (), lookup=lookup or (), stats_expressions=stats_expressions or (), progress=progress_of(table)
    )
    return indexes.built_report(table.name, done, as_json=as_json)


def verify_report(
    session: SparkSession, model: str | None, nodes: Nodes, sources: Nodes, data: bool, as_json: bool
) -> str:
    """Verifies one index, or all in the project."""
    tables = _indexed(session, nodes, sources) if model is None else [opened_table(session, table_of(model, nodes))]
    return indexes.verify_report(verified(tables, data), as_json=as_json)


def verified(tables: Sequence[ZTable], data: bool) -> dict[str, list[dict[str, Any]]]:
    """Returns the wrong cells of some tables' indexes, by table."""
    named = with_progress(tables, "comparing the indexes with the files", "table")
    return {table.name: table.verify(data).to_pylist() for table in named}


def _adopted(session: SparkSession, name: str, config: Mapping[str, Any], *, managed: bool) -> ZTable:
    return ZTable.adopt(session, name, managed=managed, **settings_among(_ADOPTED_WITH, config))


def _refreshed(
    session: SparkSession, name: str, take_orphans: bool, drop_missing: bool, config: Mapping[str, Any]
) -> tuple[str, Refreshed]:
    try:
        table = opened_table(session, name)
    except TableNotFoundError as error:
        if is_path(name):
            raise
        # A Parquet table gets an index. For anything else `adopt` raises an error that says why it cannot.
        table = _adopted(session, name, config, managed=False)
        overwritten = isinstance(error, TableLostError)
        return table.name, Refreshed(table.version, files_added=len(table.snapshot().files), indexed_again=overwritten)
    return table.name, table.refresh_index(take_orphans, drop_missing, progress=progress_of(table))


def _indexed(session: SparkSession, nodes: Nodes, sources: Nodes) -> list[ZTable]:
    loaded = [f"{backquoted(each['schema'])}.{backquoted(each['identifier'])}" for _, each in sorted(sources.items())]
    return tables_with_index(session, dict.fromkeys([*tables_of(nodes), *loaded]))
