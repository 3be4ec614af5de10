"""Schema check: the columns that the settings name must be in the model and have suitable types."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow as pa

from dbt.adapters.zlayout.config.column_names import ColumnSet, as_columns, folded_path, format_column_path
from dbt.adapters.zlayout.config.table_config import TableConfig, partition_keys_in_zorder
from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ
from dbt.adapters.zlayout.curve.keys import is_orderable
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.expr import EXPRESSION, ColumnPath
from dbt.adapters.zlayout.predicate.literals import type_name

SortColumns = tuple[tuple[ColumnPath, ...], list[str]]
_NO_FOLDER = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_time,
    pa.types.is_duration,
)
_ORDERABLE = "integers, floats, decimals, dates, timestamps, times, day-time intervals, strings, binary and booleans"


def check_against_schema(config: TableConfig, schema: pa.Schema, *, subject: str = "") -> TableConfig:
    """Resolves the columns of the settings against a model's schema.

    Args:
        config: From `parse_table_config`.
        schema: The model's columns.
        subject: Whose settings these are, for the first line of the error.

    Returns:
        The same settings with every column spelled as in the schema; the settings may differ in case, as in Spark.

    Raises:
        ConfigError: With one sentence for each column that is missing, ambiguous or of an unsuitable type.
    """
    problems: list[str] = []
    known = dict(_paths(schema))
    zorder = _resolve("zorder", config.clustering.columns, known, problems, _unfit_key)
    partition_paths = [(name,) for name in config.partitioning.columns]
    partitions = tuple(path[0] for path in _resolve("partition_by", partition_paths, known, problems, _unfit_folder))
    problems += [
        f"partition_by: {first!r} and {second!r} differ only in case, and Hive's catalog cannot hold both; rename one"
        for first, second in itertools.combinations(partitions, 2)
        if first.lower() == second.lower()
    ]
    wanted = config.statistics.columns
    if not isinstance(wanted, int):
        wanted = _resolve("stats_columns", wanted, known, problems, _always_fit)
    bloom = config.indexes.bloom
    if bloom is not None:
        bloom = _indexed("bloom", bloom, known, problems)
    lookup = config.indexes.lookup
    if lookup is not None:
        resolved_sets = [_indexed("lookup", columns, known, problems) for columns in lookup]
        lookup = tuple({frozenset(each): each for each in resolved_sets if each}.values())
        problems += [
            f"lookup: {path[1]!r} is an expression, and an index of several columns takes columns only; "
            "list the expression by itself, or compute it as a column of the model"
            for columns in lookup
            for path in columns
            if path[0] == EXPRESSION and len(columns) > 1
        ]
    table_type = config.table_type
    keys = _resolve("unique_key", [(name,) for name in table_type.unique_key], known, problems, _unfit_key)
    ordering = [(table_type.ordering,)] if table_type.ordering is not None else []
    ordering_paths = _resolve("ordering", ordering, known, problems, _unfit_key)
    if table_type.merges_on_read:
        problems += [
            f"{name}: log files have a column of this name; rename it"
            for name in (OP, INSTANT, SEQ)
            if (name,) in known
        ]
        # The view's query is text that is parsed on every read; backquotes do not prevent variable substitution.
        problems += [
            f"column '{name}': Spark would read '${{' in the query of the table's view as a variable; rename it"
            for name in schema.names
            if "${" in name
        ]
    resolved = replace(
        config,
        table_type=replace(
            table_type,
            unique_key=tuple(path[0] for path in keys),
            ordering=ordering_paths[0][0] if ordering_paths else None,
        ),
        clustering=replace(config.clustering, columns=zorder),
        partitioning=replace(config.partitioning, columns=partitions),
        statistics=replace(config.statistics, columns=wanted),
        indexes=replace(config.indexes, bloom=bloom, lookup=lookup),
    )
    # Parsing has checked the names as written; here only names that differ in case can still clash.
    problems += partition_keys_in_zorder(resolved.clustering, resolved.partitioning)
    problems += resolved.indexes.partition_problems(resolved.partitioning.columns)
    if resolved.table_type.ordering in resolved.partitioning.columns:
        problems.append(
            f"ordering: {resolved.table_type.ordering!r} is a partition column too, so a late delete would take its "
            "ordering value from the row that it finds; order by a column that is not a partition column"
        )
    if partitions and len(partitions) == len(schema.names):
        problems.append("partition_by: names every column of the model; at least one column must stay in the files")
    if problems:
        raise ConfigError(problems, subject)
    return resolved


def sort_columns(columns: Iterable[ColumnPath], schema: pa.Schema, partition_by: Iterable[str]) -> SortColumns:
    """Resolves the columns of ``sort_by`` against a table's schema.

    Args:
        columns: From `parse_strategy`.
        schema: The table's columns, partition columns included.

    Returns:
        The columns as the schema spells them, and a sentence for each that is missing, ambiguous, listed twice or a
        partition column. Types are not checked.
    """
    problems: list[str] = []
    found = _resolve("sort_by", columns, dict(_paths(schema)), problems, _always_fit)
    problems += [
        f"sort_by: '{format_column_path(path)}' is a partition column: each file has one value of it; leave it out"
        for path in found
        if path[0] in set(partition_by)
    ]
    return found, problems


def _paths(fields: Iterable[pa.Field], prefix: ColumnPath = ()) -> Iterable[tuple[ColumnPath, pa.DataType]]:
    """Yields every column and struct field with its type, including the structs themselves."""
    for field in fields:
        path = (*prefix, field.name)
        yield path, field.type
        if pa.types.is_struct(field.type):
            yield from _paths(field.type, path)


def _resolve(
    key: str,
    wanted: Iterable[ColumnPath],
    known: dict[ColumnPath, pa.DataType],
    problems: list[str],
    unfit: Callable[[pa.DataType], str | None],
) -> tuple[ColumnPath, ...]:
    by_folded: dict[ColumnPath, list[ColumnPath]] = {}
    for path in known:
        by_folded.setdefault(folded_path(path), []).append(path)
    found: list[ColumnPath] = []
    for path in wanted:
        spelled = format_column_path(path)
        matches = [path] if path in known else by_folded.get(folded_path(path), [])
        if len(matches) != 1:
            problems.append(f"{key}: {_missing(path, known) if not matches else _ambiguous(path, matches)}")
        elif matches[0] in found:
            problems.append(f"{key}: column '{spelled}' is listed twice")
        elif (why := unfit(known[matches[0]])) is not None:
            problems.append(f"{key}: column '{spelled}' has type {type_name(known[matches[0]])}; {why}")
        else:
            found.append(matches[0])
    return tuple(found)


def _indexed(
    key: str, wanted: ColumnSet, known: dict[ColumnPath, pa.DataType], problems: list[str]
) -> tuple[ColumnPath, ...]:
    """Returns the columns of a setting as the schema spells them, then its expressions, which Spark checks later."""
    named = as_columns(wanted, known)
    columns = [path for path in named if path[0] != EXPRESSION]
    expressions = [path for path in named if path[0] == EXPRESSION]
    found = _resolve(key, columns, known, problems, _unfit_key)
    if len(found) < len(columns) and any(re.search(r"\W", part) for path in columns for part in path):
        problems.append(f"{key}: put an expression in parentheses, such as (id % 10)")
    return (*found, *expressions)


def _missing(path: ColumnPath, known: dict[ColumnPath, pa.DataType]) -> str:
    # Without backquotes, a name with a dot is close to the path it was mistaken for.
    spellings = {".".join(candidate).lower(): format_column_path(candidate) for candidate in known}
    near = difflib.get_close_matches(".".join(path).lower(), spellings, n=1, cutoff=0.6)
    hint = f" (did you mean '{spellings[near[0]]}'?)" if near else ""
    return f"column '{format_column_path(path)}' is not in the model{hint}"


def _ambiguous(path: ColumnPath, matches: list[ColumnPath]) -> str:
    candidates = ", ".join(f"'{format_column_path(match)}'" for match in matches)
    return f"column '{format_column_path(path)}' matches {candidates}; write it in the case of one of them"


def _unfit_key(column_type: pa.DataType) -> str | None:
    return None if is_orderable(column_type) else f"allowed are {_ORDERABLE}"


def _unfit_folder(column_type: pa.DataType) -> str | None:
    # Folder names are text, in which bytes that are not UTF-8, times and intervals would not survive the round trip.
    if is_orderable(column_type) and not any(each(column_type) for each in _NO_FOLDER):
        return None
    return "allowed are integers, floats, decimals, dates, timestamps, strings and booleans"


def _always_fit(_: pa.DataType) -> str | None:
    return None
