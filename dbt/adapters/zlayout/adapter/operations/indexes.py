"""Adopts tables, and refreshes, builds and verifies indexes, for run-operations, post-hooks and tests."""

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
)
from dbt.adapters.zlayout.adapter.operations.each_table import report_on_names
from dbt.adapters.zlayout.adapter.operations.progress import progress_of, with_progress
from dbt.adapters.zlayout.adapter.output import json_text
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, name_of
from dbt.adapters.zlayout.config.known_keys import settings_among
from dbt.adapters.zlayout.config.settings import OWN_KEYS
from dbt.adapters.zlayout.errors import ConfigError, TableLostError, TableNotFoundError
from dbt.adapters.zlayout.index.verification import LOST_FILE, LOST_FILE_ADVICE
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.index.optional_indexes import ColumnSets
from dbt.adapters.zlayout.spark.index.refresh import Refreshed
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.zlayout.spark.index.optional_indexes import IndexBuilt

_LOG = AdapterLogger("Zlayout")
# The settings of a model that apply to a table which something else wrote.
_ADOPTED_WITH = tuple(name for name in inspect.signature(ZTable.adopt).parameters if name in OWN_KEYS)
_MOST_CELLS = 50
_VERIFYING = "comparing the indexes with the files"


def refresh_index(
    session: SparkSession, relation: ZlayoutRelation | str, take_orphans: bool, drop_missing: bool
) -> dict[str, Any]:
    """Refreshes the index of a table for a hook, and logs what was done."""
    table, done = _refreshed(session, name_of(relation), take_orphans, drop_missing, {})
    _LOG.info(refresh_line(table, done))
    return vars(done)


def adopt_report(session: SparkSession, name: str, config: Mapping[str, Any], manage: bool, as_json: bool) -> str:
    """Indexes a Parquet table of another tool, or takes it over, with the settings of its model.

    Raises:
        ConfigError: The table is given by its folder, or a setting does not fit it.
    """
    if is_path(name):
        raise ConfigError(["only a table of the catalog can be adopted; give schema.table, not a folder"], name)
    return adopted_text(_adopted(session, name, config, managed=manage), as_json=as_json)


def refresh_report(
    session: SparkSession,
    model: str | None,
    nodes: Nodes,
    sources: Nodes,
    *,
    take_orphans: bool,
    drop_missing: bool,
    as_json: bool,
) -> str:
    """Refreshes one index, or all in the project."""
    text = partial(refresh_text, as_json=as_json)
    if model is not None:
        name = table_of(model, nodes)
        table, done = _refreshed(session, name, take_orphans, drop_missing, config_of_table(name, nodes))
        return text({table: done})

    def refreshed(name: str) -> tuple[str, Refreshed]:
        table = ZTable.for_name(session, name)
        return table.name, table.refresh_index(take_orphans, drop_missing, progress=progress_of(table))

    return report_on_names(_tables_and_sources(nodes, sources), refreshed, text)


def index_report(
    session: SparkSession,
    model: str,
    nodes: Nodes,
    *,
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
        raise ConfigError(["drop: cannot be scheduled; leave out schedule and execute"], table.name)
    if drop and not (bloom or lookup or stats_expressions):
        nothing = "bloom, lookup, stats_expressions: all missing; name the columns or expressions to drop"
        raise ConfigError([nothing], table.name)
    given = {"bloom": bloom, "lookup": lookup, "stats_expressions": stats_expressions}
    if empty := [key for key, value in given.items() if isinstance(value, str) and not value.strip()]:
        raise ConfigError([f"{key}: is empty; name columns, or leave it out" for key in empty], table.name)
    change = table.drop_index if drop else partial(table.build_index, schedule=schedule, execute=execute)
    done = change(
        bloom=bloom or (), lookup=lookup or (), stats_expressions=stats_expressions or (), progress=progress_of(table)
    )
    return built_text(table.name, done, as_json=as_json)


def verify_report(
    session: SparkSession, model: str | None, nodes: Nodes, sources: Nodes, data: bool, as_json: bool
) -> str:
    """Verifies one index, or all in the project."""
    text = partial(verify_text, as_json=as_json)
    if model is not None:
        return text(verified(session, table_of(model, nodes), data))

    def wrong_cells(name: str) -> tuple[str, list[dict[str, Any]]]:
        table = ZTable.for_name(session, name)
        return table.name, table.verify(data).to_pylist()

    names = with_progress(_tables_and_sources(nodes, sources), _VERIFYING, "table")
    return report_on_names(names, wrong_cells, text)


def verified(session: SparkSession, name: str, data: bool) -> dict[str, list[dict[str, Any]]]:
    """Returns the wrong cells of one table's index, by table."""
    tables = with_progress([opened_table(session, name)], _VERIFYING, "table")
    return {table.name: table.verify(data).to_pylist() for table in tables}


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


def _tables_and_sources(nodes: Nodes, sources: Nodes) -> list[str]:
    loaded = [f"{backquoted(each['schema'])}.{backquoted(each['identifier'])}" for _, each in sorted(sources.items())]
    return list(dict.fromkeys([*tables_of(nodes), *loaded]))


def refresh_line(table: str, done: Refreshed) -> str:
    """Returns what a refresh did, in one line."""
    counts = {
        "added": done.files_added,
        "removed": done.files_removed,
        "changed": done.files_changed,
        "rebuilt": done.files_rebuilt,
    }
    parts = [f"{counted(count, 'file')} {word}" for word, count in counts.items() if count]
    parts += ["damaged slices replaced"] if done.repaired else []
    parts += (
        [f"{counted(done.filters_rebuilt, 'file')} read for Bloom filters and lookup indexes"]
        if done.filters_rebuilt
        else []
    )
    parts += [f"{_files(done.unreadable)} unreadable"] if done.unreadable else []
    if done.files_dropped:
        rows = counted(done.rows_dropped, "row")
        parts.append(
            f"{counted(done.files_dropped, 'missing file')} dropped from the table, and {rows}: a model that keeps its "
            "rows does not load them again without --full-refresh"
        )
    if done.missing:
        parts.append(f"{_files(done.missing)} MISSING from the folder: queries fail; {LOST_FILE_ADVICE}")
    if done.indexed_again:
        parts.append(
            "indexed again, because another tool has overwritten the table and its index; if a zordered_table model "
            f"writes it, build that model, or run `zlayout adopt {table} --manage`"
        )
    return f"{table}: index at version {done.version}; {', '.join(parts) or 'nothing to do'}"


def adopted_text(table: ZTable, *, as_json: bool) -> str:
    """Returns what a table is after it was adopted."""
    count = len(table.snapshot().files)
    if as_json:
        level = "managed" if table.is_managed else "indexed"
        return json_text({"table": table.name, "version": table.version, "files": count, "level": level})
    state = "only this package may write to it now" if table.is_managed else "other tools can keep writing to it"
    return f"{table.name}: version {table.version} indexes {counted(count, 'file')}; {state}"


def built_text(table: str, done: IndexBuilt, *, as_json: bool) -> str:
    """Returns which optional parts a table's index has after a change."""
    if as_json:
        return json_text({"table": table, **vars(done)})
    columns = [f"Bloom filters on {', '.join(done.bloom)}"] if done.bloom else []
    columns += [f"lookup indexes on {', '.join(done.lookup)}"] if done.lookup else []
    columns += [f"statistics of {', '.join(done.stats_expressions)}"] if done.stats_expressions else []
    parts = [f"{counted(done.files_read, 'file')} read"] if done.files_read else []
    if done.files_without:
        lack = "lacks" if done.files_without == 1 else "lack"
        parts.append(f"{counted(done.files_without, 'file')} that {lack} at least one of them")
    has = "; ".join(columns) or "no optional indexes"
    return f"{table}: version {done.version} has {has}{''.join(f', {part}' for part in parts)}"


def refresh_text(refreshed: Mapping[str, Refreshed], *, as_json: bool) -> str:
    """Returns what a refresh of some tables did, one line each."""
    if as_json:
        return json_text([{"table": table, **vars(done)} for table, done in refreshed.items()])
    lines = [refresh_line(table, done) for table, done in refreshed.items()]
    return "\n".join(lines) or "No table with a dbt-zlayout index."


def verify_text(found: Mapping[str, Sequence[Mapping[str, Any]]], *, as_json: bool) -> str:
    """Returns the wrong cells of some tables' indexes."""
    if as_json:
        return json_text([{"table": table, "wrong": list(cells)} for table, cells in found.items()])
    lines = []
    for table, cells in found.items():
        lines.append(f"{table}: " + (counted(len(cells), "wrong cell") if cells else "no wrong cells"))
        lines += [f"  {cell_text(cell)}" for cell in cells[:_MOST_CELLS]]
        if len(cells) > _MOST_CELLS:
            lines.append(f"  … and {len(cells) - _MOST_CELLS:,} more (JSON shows all)")
    return "\n".join(lines) or "No table with a dbt-zlayout index."


def _files(paths: Sequence[str]) -> str:
    """Returns the number of some files, with the first one as an example."""
    return f"{counted(len(paths), 'file')} ({paths[0]}{' …' if len(paths) > 1 else ''})"


def cell_text(cell: Mapping[str, Any]) -> str:
    """Returns a wrong cell as text."""
    if cell["cell"] == LOST_FILE:
        return f"{cell['path']}: {cell['stored']}, but {cell['found']}"
    name = f"{cell['column'] or '-'}.{cell['cell']}"
    return f"{cell['path']}  {name}: index: {cell['stored']}; file: {cell['found']}"
