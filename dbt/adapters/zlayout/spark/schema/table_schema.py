"""Spark's schema of a table: checked, described, and taken apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.zlayout.errors import ConfigError, UnsupportedError
from dbt.adapters.zlayout.spark.schema.types import fields_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Source: org.apache.spark.sql.catalyst.util.ResolveDefaultColumnsUtils.
_DEFAULTS = {"EXISTS_DEFAULT", "CURRENT_DEFAULT"}


def checked_schema(schema_json: str) -> pa.Schema:
    """The columns for the check of the settings; a type that Arrow lacks stands as a list, which is no key either.

    Raises:
        UnsupportedError: A column has a type that Parquet files cannot hold.
    """
    fields = fields_of(schema_json)
    void = [each.name for each in fields if each.spark_type == "void"]
    if void:
        raise UnsupportedError(
            f"columns without a type (NULL): {', '.join(void)}; Parquet cannot hold them: write cast(null as string)"
        )
    return pa.schema([pa.field(each.name, each.arrow_type or pa.list_(pa.null())) for each in fields])


def check_names_differ(names: Sequence[str], spark: SparkSession, subject: str) -> None:
    """Checks that a query gives each of its columns a name of its own.

    Args:
        names: Its columns.
        spark: Whose setting says whether upper and lower case differ.
        subject: The table, for the error.

    Raises:
        ConfigError: Two columns share a name.
    """
    by_name: dict[str, list[str]] = {}
    exact = str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
    for name in names:
        by_name.setdefault(name if exact else name.lower(), []).append(name)
    problems = [
        f"the query has {len(alike)} columns of one name: {', '.join(map(quoted, alike))}; a table has each name once,"
        + (" whether in upper or lower case" if len(set(alike)) > 1 else "")
        + "; list the columns instead of *, or rename one with `as`"
        for alike in by_name.values()
        if len(alike) > 1
    ]
    if problems:
        raise ConfigError(problems, subject)


def defaulted_columns(schema_json: str) -> tuple[tuple[str], ...]:
    """Columns that Spark fills with a default, and not with null, where a file lacks them."""
    fields = json.loads(schema_json)["fields"]
    return tuple((each["name"],) for each in fields if _DEFAULTS & set(each.get("metadata") or {}))


def described(schema_json: str, comments: Mapping[str, str]) -> str:
    """The schema with comments on its top-level columns, and without the defaults of the tables that they come from."""
    schema = json.loads(schema_json)
    for each in schema["fields"]:
        each["nullable"] = True
        each["metadata"] = {k: value for k, value in (each.get("metadata") or {}).items() if k not in _DEFAULTS}
        if each["name"] in comments:
            each["metadata"] = {**(each.get("metadata") or {}), "comment": comments[each["name"]]}
    return json.dumps(schema, ensure_ascii=False)


def type_at(schema: pa.Schema, path: tuple[str, ...]) -> pa.DataType:
    """The type at a column path."""
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind


def joined(data_json: str, partition_json: str) -> str:
    """One schema of the columns in the files and those in the folders, which come last."""
    fields = json.loads(data_json)["fields"] + json.loads(partition_json)["fields"]
    return json.dumps({"type": "struct", "fields": fields}, ensure_ascii=False)


def quoted(name: str) -> str:
    """A column's name for SQL."""
    return "`" + name.replace("`", "``") + "`"


def string_literal(text: str) -> str:
    """A string literal that Spark reads back as the same text."""
    # Spark joins no adjacent literals and unescapes backslashes unless spark.sql.parser.escapedStringLiterals is on.
    # "${env:NAME}" would become a variable of the process before the statement is parsed, in a literal too.
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "$\\{") + "'"
