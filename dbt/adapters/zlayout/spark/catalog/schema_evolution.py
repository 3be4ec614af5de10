"""Schema evolution: what happens when incoming rows have other columns than the table (dbt's ``on_schema_change``)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions
from pyspark.sql.types import StructField, StructType

from dbt.adapters.zlayout.errors import ConfigError, WriteError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.session_catalog import DECLARED_TYPE, Catalog
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.spark.schema.table_schema import names_alike, nullable
from dbt.adapters.zlayout.spark.schema.types import raw_fields, schema_json_of, type_word, with_added_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Up-casts of Spark that round large whole numbers, or that depend on the session's time zone.
_INEXACT = frozenset(
    (
        *(("integer", "float"), ("long", "float"), ("long", "double")),
        *(("timestamp", "timestamp_ntz"), ("timestamp_ntz", "timestamp"), ("date", "timestamp")),
    )
)
_SAME_FIELDS = "select the fields that the table has, or rebuild with --full-refresh"
_LIMITED_TEXT = re.compile(r"(char|varchar)\((\d+)\)")
_GO_ON = "set on_schema_change to append_new_columns or sync_all_columns to go on, or rebuild with --full-refresh"


class OnSchemaChange(str, Enum):
    """What to do when the columns differ."""

    IGNORE = "ignore"  # new columns are dropped; a missing column raises an error
    FAIL = "fail"
    APPEND_NEW_COLUMNS = "append_new_columns"  # new columns are added; missing columns become null
    SYNC_ALL_COLUMNS = "sync_all_columns"  # the table takes over the columns, and wider types, of the rows


@dataclass(frozen=True)
class SchemaPlan:
    """The columns that the table will have.

    Attributes:
        schema_json: Spark's JSON of the columns, partition columns last.
        added: Columns that older rows lack.
        dropped: Columns that are dropped.
        retyped: Columns whose type changes for older rows.
        described: Columns of older rows that get another comment.
        allows_nulls: Whether fields, elements or values of maps may become null that could not be null before.
    """

    schema_json: str
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()
    described: tuple[str, ...] = ()
    allows_nulls: bool = False

    @property
    def changes(self) -> bool:
        """Whether the table's columns or their comments change at all."""
        return bool(self.added or self.dropped or self.retyped or self.described or self.allows_nulls)

    def with_comments(self, comments: Mapping[str, str]) -> SchemaPlan:
        """Returns the same columns, with the comments in place of others. A column that is not named keeps its own.

        Args:
            comments: By the name of a column, in any case.
        """
        any_case = {name.lower(): comment for name, comment in comments.items()}
        fields, described = raw_fields(self.schema_json), []
        for each in fields:
            comment = any_case.get(each["name"].lower())
            if comment is None or (each.get("metadata") or {}).get("comment") == comment:
                continue
            each["metadata"] = {**(each.get("metadata") or {}), "comment": comment}
            described.append(each["name"])
        if not described:
            return self
        return replace(self, schema_json=schema_json_of(fields), described=tuple(described))


def plan_schema(
    catalog: Catalog,
    table_json: str,
    frame_json: str,
    policy: OnSchemaChange,
    partition_by: tuple[str, ...],
    subject: str,
) -> SchemaPlan:
    """Decides which columns the table will have.

    Args:
        catalog: The session's catalog, which says which types can be cast up to which others.
        table_json: Spark's JSON of the table's columns, `nullable`.
        frame_json: Spark's JSON of the columns of the incoming rows.
        policy: What to do if they differ.
        partition_by: Partition columns, which cannot be dropped or changed.
        subject: The table, for error messages.

    Raises:
        ConfigError: The columns differ in a way that the policy does not allow.
    """
    _check_case(table_json, frame_json, subject)
    table, frame = _by_name(table_json), _by_name(frame_json)
    new = [each["name"] for key, each in frame.items() if key not in table]
    missing = [each["name"] for key, each in table.items() if key not in frame]
    other = [each["name"] for key, each in table.items() if key in frame and frame[key]["type"] != each["type"]]

    def without_fields(these: Mapping[str, Any], those: Mapping[str, Any]) -> list[str]:
        """Returns a sentence for each column whose structs lack fields that the others have."""
        lacking = [name for name in other if not _has_fields(these[name.lower()]["type"], those[name.lower()]["type"])]
        return [f"{_types(name, table, frame)}; {_SAME_FIELDS}" for name in lacking]

    if policy is OnSchemaChange.IGNORE:
        if missing:
            raise ConfigError([f"the query lacks {_listed(missing)}, which the table has; {_GO_ON}"], subject)
        _fail_if([], [], without_fields(frame, table), subject)
        return SchemaPlan(table_json)
    if policy is OnSchemaChange.FAIL:
        unfit = [name for name in other if not holds(catalog, *(each[name.lower()]["type"] for each in (frame, table)))]
        _fail_if(new, missing, [_type_problem(catalog, name, table, frame) for name in unfit], subject)
        return SchemaPlan(table_json)
    if policy is OnSchemaChange.APPEND_NEW_COLUMNS:
        _fail_if([], [], without_fields(table, frame), subject)
        return SchemaPlan(_columns(table_json, (), {}, [frame[name.lower()] for name in new], partition_by), tuple(new))
    return _synced(catalog, table_json, frame, new, missing, partition_by, subject)


def _check_case(table_json: str, frame_json: str, subject: str) -> None:
    """Checks that incoming columns that differ by case only are columns of the table."""
    stored = {each["name"] for each in raw_fields(table_json)}
    for alike in names_alike(each["name"] for each in raw_fields(frame_json)):
        if not stored.issuperset(alike):
            raise ConfigError(
                [f"the query has {_listed(alike)}, of which the table has only one or none; rename one with `as`"],
                subject,
            )


def widened(catalog: Catalog, table_json: str, frame_json: str, partition_by: tuple[str, ...]) -> str | None:
    """Returns the columns of a table and of incoming rows together, in types that hold the values of both.

    Returns:
        Spark's JSON of the columns. None if no column of the table has to become wider; then the rows fit as they are,
        or not at all.
    """
    table_json = nullable(table_json)
    table, frame = _by_name(table_json), _by_name(frame_json)
    wider, _ = _wider_types(catalog, table, frame, partition_by)
    new = [each for key, each in frame.items() if key not in table]
    return _columns(table_json, (), wider, new, partition_by) if wider else None


def aligned(frame: DataFrame, schema_json: str, subject: str) -> DataFrame:
    """Returns the rows with the columns of the table, in its order and types. A missing column is null.

    Values are converted as in Spark's INSERT: numbers change their type if they fit; text does not become a number.

    Raises:
        WriteError: A column cannot be stored in the table's type.
    """
    schema = StructType.fromJson(json.loads(schema_json))
    frame = _spelled_as(frame, schema.names)
    try:
        return _within_lengths(frame, schema).to(schema)
    except AnalysisException as error:
        problems = [_unstorable(frame, field) for field in schema.fields]
        reasons = "; ".join(each for each in problems if each) or short_message(error)
        raise WriteError(f"{subject}: {reasons}; the table is unchanged") from error


def _spelled_as(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Returns the rows with columns spelled as in the table, which a case-sensitive session would not find."""
    by_name = {name.lower(): name for name in names}
    given = set(frame.columns)
    renamed = {
        name: by_name[name.lower()]
        for name in frame.columns
        if name not in names and name.lower() in by_name and by_name[name.lower()] not in given
    }
    return frame.withColumnsRenamed(renamed) if renamed else frame


def _within_lengths(frame: DataFrame, schema: StructType) -> DataFrame:
    """Returns the rows with texts of CHAR and VARCHAR columns as Spark's INSERT stores them.

    Blanks at the end are cut off if there are too many, and those of CHAR are padded. A text that is longer without
    them is an error when the query runs. With ``spark.sql.legacy.charVarcharAsString``, such columns are plain texts.
    """
    found = {}
    if frame.sparkSession.conf.get("spark.sql.legacy.charVarcharAsString", "false") == "true":
        return frame
    for field in schema.fields:
        declared = _LIMITED_TEXT.fullmatch(str(field.metadata.get(DECLARED_TYPE, "")))
        if declared is not None and field.name in frame.columns:
            kind, most = declared[1], int(declared[2])
            text = functions.col(backquoted(field.name))
            error = functions.raise_error(f"a text in column `{field.name}` is longer than {declared[0]} allows")
            too_long = functions.length(functions.rtrim(text)) > most
            stored = functions.when(too_long, error).otherwise(functions.substring(text, 1, most))
            found[field.name] = functions.rpad(stored, most, " ") if kind == "char" else stored
    return frame.withColumns(found) if found else frame


def _unstorable(frame: DataFrame, field: StructField) -> str | None:
    """Returns why the rows cannot be stored in a column of the table; None if they can, or if they lack the column."""
    given = [each for each in frame.schema.fields if each.name.lower() == field.name.lower()]
    if len(given) != 1:
        return None
    try:
        frame.select(backquoted(given[0].name)).to(StructType([field]))
    except AnalysisException:
        then, now = field.dataType.simpleString(), given[0].dataType.simpleString()
        return (
            f"column `{field.name}` is {then} in the table and {now} in the query; cast it to {then} in the query, set"
            " on_schema_change to sync_all_columns where the new type holds the old values, or rebuild with"
            " --full-refresh"
        )
    return None


def cast_to(frame: DataFrame, schema_json: str) -> DataFrame:
    """Returns the rows of an older version with the columns of a newer version."""
    return frame.to(StructType.fromJson(json.loads(schema_json)))


def _synced(
    catalog: Catalog,
    table_json: str,
    frame: Mapping[str, Any],
    new: list[str],
    missing: list[str],
    partition_by: tuple[str, ...],
    subject: str,
) -> SchemaPlan:
    table = _by_name(table_json)
    fixed = {name.lower() for name in partition_by}
    problems = [
        f"partition column `{name}` is not in the query; rebuild the table with --full-refresh"
        for name in missing
        if name.lower() in fixed
    ]
    wider, unfit = _wider_types(catalog, table, frame, partition_by)
    for name in unfit:
        why = "" if name.lower() in fixed else ", which cannot hold all of its values"
        cast = f"cast it to {type_word(table[name.lower()]['type'])} in the query"
        problems.append(f"{_types(name, table, frame)}{why}; {cast}, or rebuild the table with --full-refresh")
    if problems:
        raise ConfigError(problems, subject)
    added = [frame[name.lower()] for name in new]
    schema_json = _columns(table_json, {name.lower() for name in missing}, wider, added, partition_by)
    return SchemaPlan(schema_json, tuple(new), tuple(missing), tuple(table[key]["name"] for key in wider))


def _wider_types(
    catalog: Catalog, table: Mapping[str, Any], frame: Mapping[str, Any], partition_by: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """Returns the columns of a table that take over a wider type from incoming rows, by their names in lower case.

    Returns:
        These columns with the wider type, and the names of those that cannot take over the type of their values.
    """
    fixed = {name.lower() for name in partition_by}
    wider, unfit = {}, []
    for key, then in table.items():
        now = frame.get(key, then)
        if holds(catalog, now["type"], then["type"]):
            continue
        if key not in fixed and holds(catalog, then["type"], now["type"], exactly=True):
            wider[key] = {**then, "type": now["type"]}
        else:
            unfit.append(then["name"])
    return wider, unfit


def _fail_if(new: list[str], missing: list[str], other: list[str], subject: str) -> None:
    problems = [f"the query has {_listed(new)}, which the table lacks"] if new else []
    problems += [f"the query lacks {_listed(missing)}, which the table has"] if missing else []
    problems = [f"{each}; {_GO_ON}" for each in problems] + other
    if problems:
        raise ConfigError(problems, subject)


def _columns(
    table_json: str, dropped: Any, retyped: Mapping[str, Any], added: list[Any], partition_by: tuple[str, ...]
) -> str:
    fields = raw_fields(table_json)
    kept = [retyped.get(each["name"].lower(), each) for each in fields if each["name"].lower() not in dropped]
    return with_added_columns(kept, [{**each, "nullable": True} for each in added], partition_by)


def holds(catalog: Catalog, narrow: Any, wide: Any, *, exactly: bool = False) -> bool:
    """Returns whether a type can hold every value of another type, by Spark's own rules for up-casts.

    Structs must have the same field names, because values are matched by name, not position.

    Args:
        exactly: Whether no value may be rounded, as whole numbers are in floats, or moved by a time zone.
    """
    if narrow == wide:
        return True
    if isinstance(narrow, dict) and isinstance(wide, dict) and narrow.get("type") == wide.get("type") != "udt":
        parts = [_parts_of(each) for each in (narrow, wide)]
        return parts[0].keys() == parts[1].keys() and all(
            holds(catalog, kind, parts[1][name][0], exactly=exactly) and (parts[1][name][1] or not nullable)
            for name, (kind, nullable) in parts[0].items()
        )
    if exactly and isinstance(narrow, str) and isinstance(wide, str) and (narrow, wide) in _INEXACT:
        return False
    cast = catalog.jvm.companion("org.apache.spark.sql.catalyst.expressions.Cast")
    kinds = [catalog.data_type(json.dumps(each)) for each in (narrow, wide)]
    return bool(cast.canUpCast(*kinds))


def _has_fields(kind: Any, wanted: Any) -> bool:
    """Returns whether the structs in a type have the fields of those in another type."""
    if not isinstance(kind, dict) or not isinstance(wanted, dict) or not kind["type"] == wanted["type"] != "udt":
        return True
    parts = _parts_of(kind)
    return all(name in parts and _has_fields(parts[name][0], each) for name, (each, _) in _parts_of(wanted).items())


def _parts_of(kind: Mapping[str, Any]) -> dict[str, tuple[Any, bool]]:
    """Returns the types of a struct's fields, or of the elements of an array or map, and whether they can be null."""
    if kind["type"] == "struct":
        return {each["name"].lower(): (each["type"], each["nullable"]) for each in kind["fields"]}
    if kind["type"] == "array":
        return {"element": (kind["elementType"], kind["containsNull"])}
    return {"key": (kind["keyType"], False), "value": (kind["valueType"], kind["valueContainsNull"])}


def _type_problem(catalog: Catalog, name: str, table: Mapping[str, Any], frame: Mapping[str, Any]) -> str:
    then, now = table[name.lower()]["type"], frame[name.lower()]["type"]
    wider = (
        ", set on_schema_change to sync_all_columns to widen the column"
        if holds(catalog, then, now, exactly=True)
        else ""
    )
    cast = f"cast it to {type_word(then)} in the query"
    return f"{_types(name, table, frame)}; {cast}{wider}, or rebuild with --full-refresh"


def _types(name: str, table: Mapping[str, Any], frame: Mapping[str, Any]) -> str:
    then, now = table[name.lower()]["type"], frame[name.lower()]["type"]
    return f"column {backquoted(name)} is {type_word(then)} in the table and {type_word(now)} in the query"


def _listed(names: list[str]) -> str:
    return ", ".join(map(backquoted, names))


def _by_name(schema_json: str) -> dict[str, Any]:
    return {each["name"].lower(): each for each in raw_fields(schema_json)}
