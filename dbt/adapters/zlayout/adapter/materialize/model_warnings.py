"""Warnings about settings that are probably a mistake. Each is one sentence that ends with what to do."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.zlayout.adapter.materialize.model_write import ModelWrite, subject_of
from dbt.adapters.zlayout.config.known_keys import DBT_KEYS, meta_problems, near_misses, with_meta_settings
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.schema.types import fields_of

# Keys that only make sense for one table. Others, such as retain_hours, may be set for a whole folder of models.
_OF_FILES = ("zorder", "curve", "partition_by", "table_type", "ordering", "clustering")
# dbt-spark partitions tables of other formats too.
_OF_OTHER_FORMATS = ("partition_by",)
_BY_KEY = ("merge", "delete+insert")
_UTC_NAMES = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "UCT", "Zulu", "Z", "+00:00"})
_MANY_FILES, _FEW_ROWS = 100, 10


def model_warnings(wanted: ModelWrite) -> list[str]:
    """Warnings about the settings of a model, before it is written."""
    how = wanted.incremental
    if how.strategy not in _BY_KEY or how.unique_key:
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


def key_warning(wanted: ModelWrite, columns: Sequence[str]) -> str | None:
    """Returns a warning if the query lacks a column of ``unique_key``, because later runs would fail; otherwise None.

    Args:
        wanted: What the model asks for.
        columns: The columns of its query.
    """
    how = wanted.incremental
    known = {name.lower() for name in columns}
    missing = [name for name in how.unique_key if name.strip("`").lower() not in known]
    if how.strategy not in _BY_KEY or not missing:
        return None
    near = difflib.get_close_matches(missing[0].lower(), sorted(known), n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    are = "is not a column" if len(missing) == 1 else "are not columns"
    return (
        f"unique_key: {', '.join(map(repr, missing))} {are} of the query, which has {', '.join(columns)}{hint}."
        " This run builds the table, but the next one will fail until unique_key only names columns of the query"
    )


def partition_warning(wanted: ModelWrite, rows: int, files: int) -> str | None:
    """Returns a warning if partitioning leaves very few rows in each file; otherwise None.

    Args:
        wanted: What the model asks for.
        rows: The number of rows in the table.
        files: The number of its files.
    """
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
        partition_by: The partition columns.
        zone: The session's time zone.
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
