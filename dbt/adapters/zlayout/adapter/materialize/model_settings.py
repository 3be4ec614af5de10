"""Reads and checks the settings of a dbt model, and warns about likely mistakes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from dbt.adapters.zlayout.config.clustering import CLUSTER_SETTINGS
from dbt.adapters.zlayout.config.column_names import spelled_as
from dbt.adapters.zlayout.config.incremental import IncrementalConfig, parse_incremental
from dbt.adapters.zlayout.config.known_keys import (
    DBT_KEYS,
    meta_problems,
    near_misses,
    settings_among,
    with_meta_settings,
)
from dbt.adapters.zlayout.config.settings import SKIP_UNCHANGED
from dbt.adapters.zlayout.config.table_config import TableConfig, read_table_config
from dbt.adapters.zlayout.config.table_type import asks_for_merge_on_read
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.schema.types import fields_of

_UNSUPPORTED = {
    "clustered_by": "tables have no buckets; use zorder instead",
    "buckets": "tables have no buckets; use zorder instead",
    "options": "Spark's writer options are not used; use compression and row_group_rows instead",
}
_INCREMENTAL = ("incremental", "zordered_table")
# Keys that only make sense for one table. Others, such as retain_hours, may be set for a whole folder of models.
_OF_FILES = ("zorder", "curve", "partition_by", "table_type", "ordering", "clustering")
# dbt-spark partitions tables of other formats too.
_OF_OTHER_FORMATS = ("partition_by",)
_UTC_NAMES = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Zulu", "Z", "+00:00"})
_MANY_FILES, _FEW_ROWS = 100, 10


@dataclass(frozen=True)
class ModelSettings:
    """How to write the rows of a model: its settings, parsed.

    Attributes:
        comment: The table's comment; None unless ``persist_docs`` asks for it.
        column_comments: Comments by the column name in the model's properties.
        properties: ``tblproperties``.
        not_null: The not-null columns of an enforced contract.
        keeps_rows: Whether a run keeps the rows of earlier runs.
        incremental: How new rows are written, for a model that keeps its rows.
        column_names: The columns in the model's properties.
        exact_names: The columns in the properties whose names are case-sensitive: those with ``quote: true``.
        table_config: The settings of the table. The profile gives the ``location_root`` if the model does not.
        cluster_settings: How the table is clustered after a write, as keywords of ``ZTable.cluster``.
        skip_unchanged: Whether a run writes nothing if nothing has changed since the last one; and whether files of
            other tools are listed for that where it takes long.
    """

    comment: str | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    not_null: Sequence[str] = ()
    keeps_rows: bool = False
    incremental: IncrementalConfig = field(default_factory=IncrementalConfig)
    column_names: tuple[str, ...] = ()
    exact_names: frozenset[str] = frozenset()
    table_config: TableConfig = field(default_factory=TableConfig)
    cluster_settings: Mapping[str, Any] = field(default_factory=dict)
    skip_unchanged: bool = False


@dataclass(frozen=True)
class _ModelConfig:
    """A model's config. Two are equal if their text is."""

    text: str
    values: Mapping[str, Any] = field(compare=False)


def read_model(model: Mapping[str, Any], schema_root: str | None) -> ModelSettings:
    """Reads and checks a node.

    Args:
        model: The node, as Jinja has it.
        schema_root: The folder that the profile sets for the tables of the model's schema, or None.

    Raises:
        ConfigError: A setting is wrong. The message names every wrong one.
    """
    config = with_meta_settings(model["config"])
    table_config, incremental, problems = _parsed(_ModelConfig(repr(config), config))
    if problems:
        raise ConfigError(problems, subject_of(model))
    writing = replace(table_config.writing, location_root=table_config.writing.location_root or schema_root)
    columns: Mapping[str, Any] = model.get("columns") or {}
    persisted: Mapping[str, Any] = config.get("persist_docs") or {}
    return ModelSettings(
        comment=(model.get("description") or None) if persisted.get("relation") else None,
        column_comments=_descriptions(columns) if persisted.get("columns") else {},
        column_names=tuple(columns),
        exact_names=frozenset(name for name, column in columns.items() if column.get("quote")),
        properties={str(key): str(value) for key, value in (config.get("tblproperties") or {}).items()},
        not_null=_not_null(model, columns) if contract_is_enforced(config) else (),
        keeps_rows=keeps_rows(config),
        incremental=incremental,
        table_config=replace(table_config, writing=writing),
        cluster_settings=cluster_settings(config),
        skip_unchanged=SKIP_UNCHANGED.read(config, []),
    )


def keeps_rows(config: Mapping[str, Any]) -> bool:
    """Returns whether a model keeps its rows from run to run."""
    with_strategy = config.get("incremental_strategy") is not None
    materialized = config.get("materialized")
    return materialized == "incremental" or (materialized == "zordered_table" and with_strategy)


def cluster_settings(config: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns the keywords of ``ZTable.cluster`` from a model's config. Keywords in ``given`` override them.

    Args:
        config: A mapping, or the object that dbt passes to hooks, which only has ``get``.
        given: Keywords of the call.
    """
    found = settings_among(CLUSTER_SETTINGS, config)
    found |= {key: value for key, value in (given or {}).items() if value is not None}
    if "cluster_max_bytes" in found:
        found.setdefault("max_bytes", found["cluster_max_bytes"])
        del found["cluster_max_bytes"]
    return found


def subject_of(model: Mapping[str, Any]) -> str:
    """Returns the name of a node in errors and warnings, such as 'model orders'."""
    return f"{model.get('resource_type', 'model')} {model['name']}"


# dbt checks a model and later writes it, in two calls that pass nothing on. Both need the parsed settings.
@lru_cache(maxsize=64)
def _parsed(config: _ModelConfig) -> tuple[TableConfig, IncrementalConfig, Sequence[str]]:
    problems: list[str] = []
    table_config, incremental = read_table_config(config.values, problems), IncrementalConfig()
    problems += [*meta_problems(config.values), *_dbt_problems(config.values)]
    SKIP_UNCHANGED.read(config.values, problems)
    if config.values.get("materialized") in _INCREMENTAL:
        incremental = parse_incremental(config.values, problems)
    return table_config, incremental, tuple(problems)


def _dbt_problems(config: Mapping[str, Any]) -> list[str]:
    problems = [f"{key}: {why}" for key, why in _UNSUPPORTED.items() if config.get(key)]
    file_format = config.get("file_format")
    if file_format is not None and str(file_format).lower() != "parquet":
        problems.append(f"file_format: {file_format!r} is not supported here; write 'parquet', or leave it out")
    materialized = config.get("materialized")
    if asks_for_merge_on_read(config) and materialized not in _INCREMENTAL:
        problems.append(
            f"table_type: 'merge_on_read' does not fit materialized={materialized!r}; set materialized to"
            f" {' or '.join(_INCREMENTAL)}, or leave table_type out"
        )
    if config.get("deleted_when") is not None and materialized not in _INCREMENTAL:
        problems.append(
            f"deleted_when: {config['deleted_when']!r} does not fit materialized={materialized!r}, which keeps no row"
            " to delete; filter out such rows in the query, or use materialized='incremental' with"
            " incremental_strategy='merge'"
        )
    submission = config.get("submission_method")
    if submission not in (None, "session"):
        problems.append(
            f"submission_method: {submission!r} is not supported; use 'session', where this adapter runs every model"
        )
    return problems


def contract_is_enforced(config: Mapping[str, Any]) -> bool:
    """Returns whether dbt enforces the contract of a node."""
    contract = config.get("contract") or {}
    return bool(contract.get("enforced"))


def _descriptions(columns: Mapping[str, Any]) -> dict[str, str]:
    return {name: column["description"] for name, column in columns.items() if column.get("description")}


def _not_null(model: Mapping[str, Any], columns: Mapping[str, Any]) -> tuple[str, ...]:
    named = [name for name, column in columns.items() if _has_not_null(column.get("constraints"))]
    for constraint in model.get("constraints") or ():
        if constraint["type"] == "not_null":
            named += constraint.get("columns") or ()
    return tuple(dict.fromkeys(named))


def _has_not_null(constraints: Sequence[Mapping[str, Any]] | None) -> bool:
    return any(constraint["type"] == "not_null" for constraint in constraints or ())


def model_warnings(wanted: ModelSettings) -> list[str]:
    """Warnings about the settings of a model, before it is written."""
    how = wanted.incremental
    if how.strategy == "append" or not how.only_adds:
        return []
    return [
        (
            f"incremental_strategy '{how.strategy}' without unique_key adds every row, even rows that the table already"
            " has; set unique_key to the columns that identify a row, or use incremental_strategy='append' if"
            " duplicates are fine"
        )
    ]


def unused_settings(model: Mapping[str, Any]) -> list[str]:
    """Warnings about table settings on a model that this adapter does not write.

    Args:
        model: The node of a view, or of a table in one of dbt-spark's formats.

    Raises:
        ConfigError: A key looks like a misspelling of one of this adapter's keys, or ``meta.zlayout`` has another key.
    """
    config = with_meta_settings(model["config"])
    problems = [*near_misses((key for key in config if config[key] is not None), DBT_KEYS), *meta_problems(config)]
    if problems:
        raise ConfigError(problems, subject_of(model))
    is_view = config.get("materialized") == "view"
    what = "a view, which has no files" if is_view else f"a table with file_format {config.get('file_format')!r}"
    change = "materialized to 'table', 'incremental' or 'zordered_table'" if is_view else "file_format to 'parquet'"
    without = () if is_view else _OF_OTHER_FORMATS
    return [
        f"{key} {config[key]!r} has no effect on {what}; set {change}, or leave {key} out"
        for key in _OF_FILES
        if config.get(key) and key not in without
    ]


def key_warning(wanted: ModelSettings, columns: Sequence[str]) -> str | None:
    """Returns a warning if the query lacks a column of ``unique_key``, because later runs would fail; otherwise None.

    Args:
        columns: The columns of its query.
    """
    how = wanted.incremental
    known = {name.lower() for name in columns}
    spelled = zip(how.unique_key, spelled_as(columns, how.unique_key), strict=True)
    missing = [name for name, column in spelled if column is None]
    # A merge-on-read table needs the key in its first run, which fails with the same words.
    if not how.is_by_key or not missing or wanted.table_config.table_type.merges_on_read:
        return None
    near = difflib.get_close_matches(missing[0].lower(), sorted(known), n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    are = "is not a column" if len(missing) == 1 else "are not columns"
    return (
        f"unique_key: {', '.join(map(repr, missing))} {are} of the query, which has {', '.join(columns)}{hint}."
        " This run builds the table, but the next one will fail until unique_key only names columns of the query"
    )


def partition_warning(wanted: ModelSettings, rows: int, files: int) -> str | None:
    """Returns a warning if partitioning leaves very few rows in each file; otherwise None."""
    columns = wanted.table_config.partitioning.columns
    if not columns or files < _MANY_FILES or rows >= _FEW_ROWS * files:
        return None
    named = ", ".join(columns)
    return (
        f"partition_by {named} spreads {counted(rows, 'row')} over {files:,} files, {counted(rows / files, 'row')} per"
        f" file; partition by columns with few values, or set zorder to {named} instead, which also skips files"
    )


def zone_warning(schema_json: str, partition_by: Sequence[str], zone: str) -> str | None:
    """Returns a warning if partition folders contain timestamps in local time; otherwise None.

    Args:
        schema_json: The table's columns as Spark's JSON.
    """
    instants = [
        backquoted(each.name)
        for each in fields_of(schema_json)
        if each.name in partition_by and each.spark_type == "timestamp"
    ]
    if not instants or zone in _UTC_NAMES:
        return None
    return (
        f"partition column {', '.join(instants)} is stored in local time ({zone}), so sessions in another time"
        " zone read different times; partition by a date or by text, or set spark.sql.session.timeZone to UTC"
    )
