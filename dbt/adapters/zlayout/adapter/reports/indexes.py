"""The output of the run-operations on indexes: text for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.reports import json_text
from dbt.adapters.zlayout.index.verification import LOST_FILE, LOST_FILE_ADVICE
from dbt.adapters.zlayout.quantities import counted

if TYPE_CHECKING:
    from dbt.adapters.zlayout.spark.index.optional_indexes import IndexBuilt
    from dbt.adapters.zlayout.spark.index.refresh import Refreshed
    from dbt.adapters.zlayout.table.ztable import ZTable

_MOST_CELLS = 50


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
    parts += [f"{counted(done.files_dropped, 'missing file')} dropped from the table"] if done.files_dropped else []
    if done.missing:
        parts.append(f"{_files(done.missing)} MISSING from the folder: queries fail; {LOST_FILE_ADVICE}")
    if done.indexed_again:
        parts.append(
            "indexed again, because another tool has overwritten the table and its index; if a zordered_table model "
            f"writes it, build that model, or run `zlayout adopt {table} --manage`"
        )
    return f"{table}: index at version {done.version}; {', '.join(parts) or 'nothing to do'}"


def adopted_report(table: ZTable, *, as_json: bool) -> str:
    """Returns what a table is after it was adopted."""
    count = len(table.snapshot().files)
    if as_json:
        level = "managed" if table.is_managed else "indexed"
        return json_text({"table": table.name, "version": table.version, "files": count, "level": level})
    state = "only this package may write to it now" if table.is_managed else "other tools may go on writing to it"
    return f"{table.name}: version {table.version} indexes {counted(count, 'file')}; {state}"


def built_report(table: str, done: IndexBuilt, *, as_json: bool) -> str:
    """Returns which optional parts a table's index has after a change."""
    if as_json:
        return json_text({"table": table, **vars(done)})
    columns = [f"Bloom filters of {', '.join(done.bloom)}"] if done.bloom else []
    columns += [f"lookup indexes of {', '.join(done.lookup)}"] if done.lookup else []
    columns += [f"statistics of {', '.join(done.stats_expressions)}"] if done.stats_expressions else []
    parts = [f"{counted(done.files_read, 'file')} read"] if done.files_read else []
    if done.files_without:
        parts.append(
            f"{counted(done.files_without, 'file')} that {'lacks' if done.files_without == 1 else 'lack'} some of it"
        )
    has = " and ".join(columns) or "no optional indexes"
    return f"{table}: version {done.version} has {has}{''.join(f', {part}' for part in parts)}"


def refresh_report(refreshed: Mapping[str, Refreshed], *, as_json: bool) -> str:
    """Returns what a refresh of some tables did, one line each."""
    if as_json:
        return json_text([{"table": table, **vars(done)} for table, done in refreshed.items()])
    lines = [refresh_line(table, done) for table, done in refreshed.items()]
    return "\n".join(lines) or "No table with a dbt-zlayout index."


def verify_report(found: Mapping[str, Sequence[Mapping[str, Any]]], *, as_json: bool) -> str:
    """Returns the wrong cells of some tables' indexes."""
    if as_json:
        return json_text([{"table": table, "wrong": list(cells)} for table, cells in found.items()])
    lines = []
    for table, cells in found.items():
        lines.append(f"{table}: " + (counted(len(cells), "wrong cell") if cells else "every cell is right"))
        lines += map(_cell_line, cells[:_MOST_CELLS])
        if len(cells) > _MOST_CELLS:
            lines.append(f"  … and {len(cells) - _MOST_CELLS:,} more (json: true shows all)")
    return "\n".join(lines) or "No table with a dbt-zlayout index."


def _files(paths: Sequence[str]) -> str:
    """Returns the number of some files, with the first one as an example."""
    return f"{counted(len(paths), 'file')} ({paths[0]}{' …' if len(paths) > 1 else ''})"


def _cell_line(cell: Mapping[str, Any]) -> str:
    if cell["cell"] == LOST_FILE:
        return f"  {cell['path']}: {cell['stored']}, but {cell['found']}"
    name = f"{cell['column'] or '-'}.{cell['cell']}"
    return f"  {cell['path']}  {name}: the index has {cell['stored']}, the file {cell['found']}"
