"""The Spark schema of a table: checks and comments of columns, log columns, and the names of temporary columns."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
from pyspark.sql.types import StructType, TimestampNTZType

from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ
from dbt.adapters.zlayout.errors import ConfigError, UnsupportedError
from dbt.adapters.zlayout.predicate.literals import UNKNOWN_TYPE, backquoted
from dbt.adapters.zlayout.spark.schema.types import (
    columns_of,
    fields_of,
    raw_fields,
    schema_json_of,
    with_added_columns,
)
from dbt.adapters.zlayout.timeline.files.naming import new_group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Source: org.apache.spark.sql.catalyst.util.ResolveDefaultColumnsUtils.
_DEFAULTS = {"EXISTS_DEFAULT", "CURRENT_DEFAULT"}
# Source: org.apache.spark.sql.execution.datasources.parquet.ParquetUtils.
FIELD_ID = "parquet.field.id"

# Temporary columns: the file of a row, and the file group of that file.
FILE, GROUP = "__zl_file", "__zl_group"
# Temporary columns: the place of a row in files that are packed. Which new file, which of its files, which row of that.
PLACE = ("__zl_slot", "__zl_nth_file", "__zl_row_index")
# Temporary column: true for a row of a change feed that deletes the row with its key.
DELETED = "__zl_deleted"

_IS_SPARK_3 = pyspark.__version__.startswith("3.")
# From 4.1 on, Spark's Parquet files have arrays, maps and structs of NULL.
_HAS_NESTED_VOID = not pyspark.__version__.startswith(("3.", "4.0."))
_LOG_COLUMNS = {OP: "string", INSTANT: "long", SEQ: "long"}


def checked_schema(schema_json: str) -> pa.Schema:
    """Returns the columns as an Arrow schema, against which settings are checked.

    A type that Arrow lacks becomes a list, which cannot be a clustering key either.

    Raises:
        UnsupportedError: A column has a type that Parquet files cannot hold.
    """
    void = [name for name, kind in columns_of(schema_json) if _has_void(kind)]
    if void:
        raise UnsupportedError(
            f"columns without a type (NULL): {', '.join(void)}; Parquet cannot hold them: write cast(null as string) "
            "in SQL, and .astype('string') or another type in pandas"
        )
    fields = fields_of(schema_json)
    return pa.schema([pa.field(each.name, each.arrow_type or UNKNOWN_TYPE) for each in fields])


def _has_void(kind: Any) -> bool:
    """Returns whether a column of a type cannot be written or read by this version of Spark."""
    if not isinstance(kind, dict):
        return bool(kind == "void")
    parts: list[Any] = [each["type"] for each in kind.get("fields", ())]
    parts += [kind[name] for name in ("elementType", "keyType", "valueType") if name in kind]
    if not _HAS_NESTED_VOID:
        return any(map(_has_void, parts))
    return kind.get("keyType") == "void" or any(isinstance(each, dict) and _has_void(each) for each in parts)


def check_names_differ(names: Sequence[str], spark: SparkSession, subject: str) -> None:
    """Checks that all columns of a query have different names.

    Args:
        names: The column names.
        spark: The session, whose setting says whether names are case sensitive.
        subject: The table, for the error message.

    Raises:
        ConfigError: Two columns share a name.
    """
    exact = str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
    problems = [
        f"the query has {len(alike)} columns with the same name: {', '.join(map(backquoted, alike))}; column names must"
        " be unique"
        + (" even if case is ignored" if len(set(alike)) > 1 else "")
        + "; list the columns instead of *, or rename one with `as`"
        for alike in names_alike(names, exact=exact)
    ]
    if problems:
        raise ConfigError(problems, subject)


def names_alike(names: Iterable[str], *, exact: bool = False) -> list[list[str]]:
    """Returns the groups of two or more names that are the same, or differ by case only unless ``exact``."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name if exact else name.lower(), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def check_catalog_takes(
    frame: DataFrame, spark: SparkSession, subject: str, partition_by: Collection[str] = ()
) -> None:
    """Checks that a Hive metastore takes the columns of a query. Spark 3 takes no commas in names, for example.

    Source: org.apache.spark.sql.hive.HiveExternalCatalog.verifyDataSchema of Spark 3.5.

    Raises:
        ConfigError: The catalog would refuse the table after its files are written.
    """
    if not _IS_SPARK_3 or spark.conf.get("spark.sql.catalogImplementation") != "hive":
        return
    columns = frame.schema.fields
    refused = [each.name for each in columns if "," in each.name]
    nested = [each.dataType for each in columns if isinstance(each.dataType, StructType)]
    while nested:
        fields = nested.pop().fields
        refused += [each.name for each in fields if set(",:;") & set(each.name)]
        nested += [each.dataType for each in fields if isinstance(each.dataType, StructType)]
    problems = []
    if refused:
        names = ", ".join(map(backquoted, refused))
        problems.append(
            f"a Hive metastore of Spark 3 takes no ',' in names, nor ':' and ';' in fields: rename {names} with `as`"
        )
    folders = {name.lower() for name in partition_by}
    problems += [
        f"partition_by: column '{each.name}' has type timestamp_ntz, which a Hive metastore of Spark 3 does not take; "
        "partition by a date or a string"
        for each in columns
        if each.name.lower() in folders and isinstance(each.dataType, TimestampNTZType)
    ]
    if problems:
        raise ConfigError(problems, subject)


def defaulted_columns(schema_json: str) -> tuple[tuple[str], ...]:
    """Returns the columns that Spark fills with a default instead of null in files that lack them."""
    return tuple((each["name"],) for each in raw_fields(schema_json) if _DEFAULTS & set(each.get("metadata") or {}))


def described(schema_json: str, comments: Mapping[str, str]) -> str:
    """Returns the schema with comments on its top-level columns, without what source tables say of their own files.

    These are the defaults of columns that a file lacks, and the ids by which Spark may find columns in files.
    Everything can be null, as in tables that Spark makes from a query: a later query may bring nulls.
    """
    fields = _nullable(json.loads(schema_json, object_hook=_without_field_id))["fields"]
    for each in fields:
        each["metadata"] = {k: value for k, value in (each.get("metadata") or {}).items() if k not in _DEFAULTS}
        if each["name"] in comments:
            each["metadata"]["comment"] = comments[each["name"]]
    return schema_json_of(fields)


def nullable(schema_json: str) -> str:
    """Returns the schema with columns, fields, elements and values of maps that can all be null.

    Earlier releases stored what the first query said of nulls.
    """
    before = json.loads(schema_json)
    after = _nullable(before)
    return schema_json if after == before else schema_json_of(after["fields"])


def _nullable(kind: Any) -> Any:
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "struct":
        fields = [{**each, "type": _nullable(each["type"]), "nullable": True} for each in kind["fields"]]
        return {**kind, "fields": fields}
    if kind["type"] == "array":
        return {**kind, "elementType": _nullable(kind["elementType"]), "containsNull": True}
    if kind["type"] == "map":
        parts = {name: _nullable(kind[name]) for name in ("keyType", "valueType")}
        return {**kind, **parts, "valueContainsNull": True}
    return kind


def _without_field_id(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key != FIELD_ID}


def type_at(schema: pa.Schema, path: tuple[str, ...]) -> pa.DataType:
    """Returns the type at a column path."""
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind


def joined(data_json: str, partition_json: str) -> str:
    """Joins the columns of the files and the partition columns into one schema, partition columns last."""
    return schema_json_of([*raw_fields(data_json), *raw_fields(partition_json)])


def string_literal(text: str) -> str:
    """Returns a string literal that Spark reads back as the same text."""
    # Spark does not join adjacent literals, and unescapes backslashes unless spark.sql.parser.escapedStringLiterals is
    # on. It substitutes variables such as "${env:NAME}" before it parses the statement, even inside literals.
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "$\\{") + "'"


def new_group_of(part: str) -> str:
    """Returns SQL for a new file group in each partition. A file group never spans partitions.

    Args:
        part: SQL for a text that identifies the partition.
    """
    return f"substr(sha2(concat('{new_group()}', {part}), 256), 1, 16)"


def with_log_columns(schema_json: str, partition_by: Collection[str] = ()) -> str:
    """Returns the columns of base and log files together: the user's columns, log columns, partition columns."""
    fields = [each for each in raw_fields(schema_json) if each["name"] not in _LOG_COLUMNS]
    log_fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _LOG_COLUMNS.items()]
    return with_added_columns(fields, log_fields, partition_by)
