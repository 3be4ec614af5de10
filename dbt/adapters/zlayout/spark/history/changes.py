"""Finds the rows that differ between versions, from the files that differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window, functions
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from dbt.adapters.zlayout.errors import ConfigError, UnsupportedError
from dbt.adapters.zlayout.spark.catalog.schema_evolution import cast_to, holds
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.history.time_travel import check_managed
from dbt.adapters.zlayout.spark.read.record_tables import rows_of
from dbt.adapters.zlayout.spark.schema.types import raw_fields
from dbt.adapters.zlayout.spark.snapshot.table_layout import merges_on_read
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot, replay
from dbt.adapters.zlayout.timeline.retention.past import check_kept, check_not_dropped, check_version
from dbt.adapters.zlayout.timeline.transactions.conflicts import Kind, kind_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CHANGE_TYPE, COMMIT_VERSION = "_change_type", "_commit_version"
# The column of `net_changes`.
NET_CHANGE = "_zl_change"
_SAME_ROWS = (Kind.MAINTENANCE, Kind.METADATA)
_INCOMPARABLE = ("variant", "geometry", "geography")


@dataclass(frozen=True)
class _Step:
    """The files that some versions removed and added. Rows of ``removed`` have the columns of ``before``."""

    before: Snapshot
    after: Snapshot
    removed: DataFiles
    added: DataFiles


def changed_rows(catalog: Catalog, opened: TableSnapshot, name: str, from_version: int, to_version: int) -> DataFrame:
    """Returns the rows that were deleted and inserted after one version, up to and including another.

    Reads only files that a version removed or added. A row that a version only moved to another file is not a change:
    equal removed and added rows cancel each other out.

    Args:
        opened: The table, at any version.
        name: The table, for error messages.
        from_version: The version before the first change.
        to_version: The version of the last change.

    Returns:
        The columns of ``to_version``, ``_change_type`` ('insert' or 'delete') and ``_commit_version``.

    Raises:
        VersionNotFoundError: There is no such version, or a clean deleted files that are needed.
        ConfigError: The versions are in the wrong order, or the table has a column with one of the two names.
        UnsupportedError: A column changed to a type with which its old values cannot be compared, or its type cannot be
            compared at all.
    """
    _check_versions(opened, name, from_version, to_version)
    last = opened.at_snapshot(opened.timeline.snapshot(to_version))
    entries = opened.timeline.entries(from_version + 1, to_version)
    steps = _steps(opened.timeline.snapshot(from_version), entries, each_version=True)
    _check_steps(catalog, opened, name, entries, steps, last, (CHANGE_TYPE, COMMIT_VERSION))
    fields = _fields(last)
    parts = [_nothing(catalog, opened, last)]
    rewritten: list[DataFrame] = []
    for step in steps:
        frames = _frames(catalog, opened, last, step)
        (rewritten if len(frames) > 1 else parts).extend(frames)
    if rewritten:
        parts.append(_net(reduce(_union, rewritten), [each.dataType for each in fields], ["version"]))
    change = functions.when(functions.col("sign") > 0, "insert").otherwise("delete")
    columns = [*_named(fields), change.alias(CHANGE_TYPE), functions.col("version").alias(COMMIT_VERSION)]
    return reduce(_union, parts).select(*columns)


def net_changes(
    catalog: Catalog,
    opened: TableSnapshot,
    name: str,
    from_version: int,
    to_version: int,
    unique_key: Sequence[str] = (),
) -> DataFrame:
    """Returns the rows in which two versions differ, whatever the versions between them did.

    Reads only files that are in one of the two versions. Files that clustering or compaction replaced between them are
    not read, but split the versions: what was added before and removed after is then read on both sides, and cancels
    out. Without removed files nothing is compared or shuffled.

    Args:
        opened: The table, at any version.
        name: The table, for error messages.
        from_version: The earlier version.
        to_version: The later version.
        unique_key: Columns that identify a row. A row that has another row of its key in the earlier version is an
            update. Null matches nothing. Without a key there are no updates.

    Returns:
        The columns of ``to_version`` and ``_zl_change``: 'insert', 'update' (with the new values) or 'delete' (with the
        old values).

    Raises:
        VersionNotFoundError: There is no such version, or a clean deleted files that are needed.
        ConfigError: The versions are in the wrong order, or the columns do not fit.
        UnsupportedError: A column has values that cannot be compared.
    """
    _check_versions(opened, name, from_version, to_version)
    last = opened.at_snapshot(opened.timeline.snapshot(to_version))
    entries = opened.timeline.entries(from_version + 1, to_version)
    steps = _steps(opened.timeline.snapshot(from_version), entries, each_version=False)
    _check_steps(catalog, opened, name, entries, steps, last, (NET_CHANGE,))
    fields = _fields(last)
    keys = _key_columns(fields, unique_key, name)
    frames = (frame for step in steps for frame in _frames(catalog, opened, last, step))
    rows = reduce(_union, frames, _nothing(catalog, opened, last))
    if any(len(step.removed) for step in steps):
        # Rows of a key meet in one task, where equal ones cancel out, and the rest are paired.
        together = rows.repartition(*keys) if keys else rows
        rows = _paired(_net(together, [each.dataType for each in fields], []), keys)
    else:
        rows = rows.withColumn(NET_CHANGE, functions.lit("insert"))
    return rows.select(*_named(fields), NET_CHANGE)


def all_as_inserts(catalog: Catalog, opened: TableSnapshot, name: str, unique_key: Sequence[str]) -> DataFrame:
    """Returns the rows of a version in the form of `net_changes`.

    Raises:
        ConfigError: The table has a column of the name ``_zl_change``, or lacks one of the key.
    """
    fields = _fields(opened)
    _check_names(name, fields, (NET_CHANGE,))
    _key_columns(fields, unique_key, name)
    return rows_of(catalog, opened).withColumn(NET_CHANGE, functions.lit("insert"))


def _check_versions(opened: TableSnapshot, name: str, from_version: int, to_version: int) -> None:
    check_managed(opened, name)
    for version in (from_version, to_version):
        check_version(opened.timeline, version, name)
    if from_version > to_version:
        raise ConfigError([f"from_version {from_version} is after to_version {to_version}; swap them"], name)


def _check_steps(
    catalog: Catalog,
    opened: TableSnapshot,
    name: str,
    entries: Sequence[Commit],
    steps: Sequence[_Step],
    last: TableSnapshot,
    added_names: Sequence[str],
) -> None:
    touched = [files["path"] for step in steps for files in (step.removed, step.added)]
    paths = pa.chunked_array([chunk for column in touched for chunk in column.chunks], pa.string())
    versions = f"{steps[0].before.version} and {last.version}" if steps else ""
    what = f"{name}: files that changed between versions {versions}"
    check_kept(opened.timeline, paths, what)
    check_not_dropped(entries, paths, what)
    _check_names(name, _fields(last), added_names)
    _check_columns(catalog, name, steps, last.row_schema_json)


def _check_names(name: str, fields: Sequence[StructField], added: Sequence[str]) -> None:
    if taken := sorted({each.name.lower() for each in fields} & set(added)):
        raise ConfigError(
            [
                f"the table has a column `{each}`, but rows of changes have another of that name; rename it"
                for each in taken
            ],
            name,
        )


def _fields(opened: TableSnapshot) -> list[StructField]:
    return StructType.fromJson(json.loads(opened.row_schema_json)).fields


def _key_columns(fields: Sequence[StructField], unique_key: Sequence[str], name: str) -> list[str]:
    numbers = {each.name.lower(): number for number, each in enumerate(fields)}
    if missing := [each for each in unique_key if each.lower() not in numbers]:
        raise ConfigError(
            [f"unique_key: there is no column {each}; the columns are {', '.join(numbers)}" for each in missing], name
        )
    return [f"c{numbers[each.lower()]}" for each in unique_key]


def _named(fields: Sequence[StructField]) -> list[Column]:
    return [functions.col(f"c{number}").alias(each.name) for number, each in enumerate(fields)]


def _union(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.union(right)


def _steps(before: Snapshot, entries: Iterable[Commit], *, each_version: bool) -> list[_Step]:
    """Returns the changes of rows after a version: of each version, or between those that only move rows."""
    steps = []
    for same_rows, run in groupby(entries, lambda each: kind_of(each.operation, bool(each.removes)) in _SAME_ROWS):
        listed = list(run)
        for part in [[entry] for entry in listed] if each_version else [listed]:
            after = replay(before, part)
            if not same_rows:
                steps.append(_step(before, after))
            before = after
    return steps


def _step(before: Snapshot, after: Snapshot) -> _Step:
    removed, added = before.files.minus(after.files["path"]), after.files.minus(before.files["path"])
    if merges_on_read(before.layout) or merges_on_read(after.layout):
        # What a log file changes is visible only together with the other files of its file group.
        touched = pa.array({*removed["group"].to_pylist(), *added["group"].to_pylist()}, pa.string())
        removed, added = (
            each.files.filter(pc.is_in(each.files["group"], value_set=touched)) for each in (before, after)
        )
    return _Step(before, after, removed, added)


def _check_columns(catalog: Catalog, name: str, steps: Sequence[_Step], schema_json: str) -> None:
    wanted = {each["name"].lower(): each for each in raw_fields(schema_json)}
    seen: set[str] = set()
    for snapshot in (each for step in steps for each in (step.before, step.after)):
        if snapshot.schema_json in seen:
            continue
        seen.add(snapshot.schema_json)
        for each in raw_fields(snapshot.schema_json):
            new = wanted.get(each["name"].lower())
            if new is not None and not holds(catalog, each["type"], new["type"]):
                raise UnsupportedError(
                    f"{name}: column `{each['name']}` has a different type in version {snapshot.version} than in "
                    "the last one, and values of the two types cannot be compared; read the changes before the type "
                    "changed, and those after it, separately"
                )


def _frames(catalog: Catalog, opened: TableSnapshot, last: TableSnapshot, step: _Step) -> list[DataFrame]:
    """Returns the rows of the files that a step removed and added, if there are any."""
    sides = [(step.before, step.removed, -1), (step.after, step.added, 1)]
    return [
        _tagged(_rows(catalog, opened, last, snapshot, files), sign, step.after.version)
        for snapshot, files, sign in sides
        if len(files)
    ]


def _nothing(catalog: Catalog, opened: TableSnapshot, last: TableSnapshot) -> DataFrame:
    """Returns no rows, in the form of `_frames`."""
    return _tagged(_rows(catalog, opened, last, None, DataFiles.empty()), 1, last.version)


def _rows(
    catalog: Catalog, opened: TableSnapshot, last: TableSnapshot, snapshot: Snapshot | None, files: DataFiles
) -> DataFrame:
    """Returns the rows of some files of a version, with the columns of the last version."""
    at = last if snapshot is None else opened.at_snapshot(snapshot)
    some = at.with_files(files if len(files) else DataFiles.empty(at.partition_columns))
    return cast_to(rows_of(catalog, some), last.row_schema_json)


def _tagged(rows: DataFrame, sign: int, version: int) -> DataFrame:
    # Neutral names: the table's own names may contain dots, or clash with "sign" and "version".
    named = rows.toDF(*(f"c{number}" for number in range(len(rows.columns))))
    return named.select("*", functions.lit(sign).alias("sign"), functions.lit(version).cast("bigint").alias("version"))


def _net(rows: DataFrame, types: Sequence[DataType], within: Sequence[str]) -> DataFrame:
    """Cancels equal removed and added rows, and returns each remaining row as often as it remains.

    Args:
        rows: From `_tagged`.
        types: The types of their columns.
        within: Further columns in which rows that cancel must be equal.
    """
    names = [f"c{number}" for number in range(len(types))]
    keys, kept = [], []
    for name, kind in zip(names, types, strict=True):
        plain = _groups_by_value(kind)
        keys.append(functions.col(name) if plain else comparable(functions.col(name), kind).alias(f"key_{name}"))
        if not plain:
            kept.append(functions.first(name).alias(name))
    net = rows.groupBy(*keys, *within).agg(functions.sum("sign").alias("net"), *kept).where("net <> 0")
    copies = functions.explode(functions.expr("array_repeat(cast(sign(net) as int), cast(abs(net) as int))"))
    return net.select(*names, copies.alias("sign"), *within)


def _paired(net: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Adds what happened to each row. An added row and a removed one of the same key are one update."""
    added = functions.col("sign") > 0
    plain = functions.when(added, "insert").otherwise("delete")
    if not keys:
        return net.withColumn(NET_CHANGE, plain)
    of_key = Window.partitionBy(*keys)
    whole = reduce(lambda left, right: left & right, (functions.col(key).isNotNull() for key in keys))
    others = functions.sum(functions.when(added, 0).otherwise(1)).over(of_key)
    others_added = functions.sum(functions.when(added, 1).otherwise(0)).over(of_key)
    number = functions.row_number().over(Window.partitionBy(*keys, "sign").orderBy("sign"))
    counted = net.withColumns({"number": number, "removed": others, "added": others_added, "whole": whole})
    update = "whole and number <= least(removed, added)"
    change = functions.when(added & functions.expr(update), "update").otherwise(plain)
    return counted.where(f"sign > 0 or not ({update})").withColumn(NET_CHANGE, change)


def _groups_by_value(kind: DataType) -> bool:
    """Returns whether Spark can group values of a type, and treats only identical values as equal.

    Raises:
        UnsupportedError: The type has no form that could be grouped.
    """
    if isinstance(kind, ArrayType):
        return _groups_by_value(kind.elementType)
    if isinstance(kind, StructType):
        return all(_groups_by_value(each.dataType) for each in kind.fields)
    if isinstance(kind, MapType):
        return False
    if kind.typeName().startswith(_INCOMPARABLE):
        raise UnsupportedError(
            f"values of type {kind.simpleString()} cannot be compared, so rows that a commit only copied to another "
            "file look like new rows; read both versions and compare them by a key"
        )
    return not (isinstance(kind, StringType) and "collate" in kind.simpleString())


def comparable(value: Column, kind: DataType) -> Column:
    """Returns the form of a value that can be grouped: maps as their entries in order, collated text as its bytes.

    Raises:
        UnsupportedError: The type has no such form.
    """
    if _groups_by_value(kind):
        return value
    if isinstance(kind, MapType):
        entry = StructType().add("key", kind.keyType).add("value", kind.valueType)
        return comparable(functions.map_entries(value), ArrayType(entry))
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return functions.transform(value, lambda each: comparable(each, element))
    if isinstance(kind, StructType):
        fields = [
            comparable(value.getField(each.name), each.dataType).alias(f"f{number}")
            for number, each in enumerate(kind.fields)
        ]
        return functions.when(value.isNotNull(), functions.struct(*fields))
    return value.cast("binary")
