"""Finds the rows that differ between versions, from the files that differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from dbt.adapters.zlayout.errors import ConfigError, UnsupportedError
from dbt.adapters.zlayout.spark.catalog.schema_evolution import cast_to, holds
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.history.time_travel import check_managed
from dbt.adapters.zlayout.spark.read.record_tables import rows_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import merges_on_read
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot, replay
from dbt.adapters.zlayout.timeline.retention.past import check_kept, check_version
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.conflicts import Kind, kind_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CHANGE_TYPE, COMMIT_VERSION = "_change_type", "_commit_version"
_SAME_ROWS = (Kind.MAINTENANCE, Kind.METADATA)
_INCOMPARABLE = ("variant", "geometry", "geography")


@dataclass(frozen=True)
class _Step:
    """The files that one version removed and added. Rows of ``removed`` have the columns of ``before``."""

    before: Snapshot
    after: Snapshot
    removed: DataFiles
    added: DataFiles


def changed_rows(catalog: Catalog, opened: TableSnapshot, name: str, from_version: int, to_version: int) -> DataFrame:
    """Returns the rows that were deleted and inserted after one version, up to and including another.

    Reads only files that a version removed or added. A row that a version only moved to another file is not a change:
    equal removed and added rows cancel each other out.

    Args:
        catalog: The session's catalog.
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
    check_managed(opened, name)
    timeline = opened.timeline
    for version in (from_version, to_version):
        check_version(timeline, version, name)
    if from_version > to_version:
        raise ConfigError([f"from_version {from_version} is after to_version {to_version}; swap them"], name)
    steps = _steps(timeline, from_version, to_version)
    touched = [files["path"] for step in steps for files in (step.removed, step.added)]
    paths = pa.chunked_array([chunk for column in touched for chunk in column.chunks], pa.string())
    check_kept(timeline, paths, f"{name}: files that changed between versions {from_version} and {to_version}")
    last = opened.at_snapshot(timeline.snapshot(to_version))
    fields = StructType.fromJson(json.loads(last.row_schema_json)).fields
    _check_columns(catalog, name, steps, last.row_schema_json)

    parts = [_tagged(_rows(catalog, opened, last, None, DataFiles.empty()), 1, to_version)]
    rewritten: list[DataFrame] = []
    for step in steps:
        sides = [(step.before, step.removed, -1), (step.after, step.added, 1)]
        frames = [
            _tagged(_rows(catalog, opened, last, snapshot, files), sign, step.after.version)
            for snapshot, files, sign in sides
            if len(files)
        ]
        (rewritten if len(frames) > 1 else parts).extend(frames)
    if rewritten:
        parts.append(_net(reduce(lambda left, right: left.union(right), rewritten), [each.dataType for each in fields]))
    changed = reduce(lambda left, right: left.union(right), parts)
    change = functions.when(functions.col("sign") > 0, "insert").otherwise("delete")
    columns = [functions.col(f"c{number}").alias(each.name) for number, each in enumerate(fields)]
    return changed.select(*columns, change.alias(CHANGE_TYPE), functions.col("version").alias(COMMIT_VERSION))


def _steps(timeline: Timeline, from_version: int, to_version: int) -> list[_Step]:
    before, steps = timeline.snapshot(from_version), []
    for entry in timeline.entries(from_version + 1, to_version):
        after = replay(before, [entry])
        if kind_of(entry.operation, bool(entry.removes)) not in _SAME_ROWS:
            steps.append(_step(before, after, entry))
        before = after
    return steps


def _step(before: Snapshot, after: Snapshot, entry: Commit) -> _Step:
    removed = before.files.filter(pc.is_in(before.files["path"], value_set=pa.array(entry.removes, pa.string())))
    added = entry.adds
    if merges_on_read(before.layout) or merges_on_read(after.layout):
        # What a log file changes is visible only together with the other files of its file group.
        touched = pa.array({*removed["group"].to_pylist(), *added["group"].to_pylist()}, pa.string())
        removed, added = (
            each.files.filter(pc.is_in(each.files["group"], value_set=touched)) for each in (before, after)
        )
    return _Step(before, after, removed, added)


def _check_columns(catalog: Catalog, name: str, steps: Sequence[_Step], schema_json: str) -> None:
    wanted = {each["name"].lower(): each for each in json.loads(schema_json)["fields"]}
    if taken := sorted({CHANGE_TYPE, COMMIT_VERSION} & set(wanted)):
        raise ConfigError(
            [f"the table has a column `{each}`, but changes() adds one of that name; rename it" for each in taken], name
        )
    seen: set[str] = set()
    for snapshot in (each for step in steps for each in (step.before, step.after)):
        if snapshot.schema_json in seen:
            continue
        seen.add(snapshot.schema_json)
        for each in json.loads(snapshot.schema_json)["fields"]:
            new = wanted.get(each["name"].lower())
            if new is not None and not holds(catalog, each["type"], new["type"]):
                raise UnsupportedError(
                    f"{name}: column `{each['name']}` has another type in version {snapshot.version} than in the "
                    "last one, and values of the two types cannot be compared; ask separately for the changes before "
                    "and after the type changed"
                )


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


def _net(rows: DataFrame, types: Sequence[DataType]) -> DataFrame:
    """Cancels equal removed and added rows of each version, and returns each remaining row as often as it remains."""
    names = [f"c{number}" for number in range(len(types))]
    keys, kept = [], []
    for name, kind in zip(names, types, strict=True):
        plain = groups_by_value(kind)
        keys.append(functions.col(name) if plain else comparable(functions.col(name), kind).alias(f"key_{name}"))
        if not plain:
            kept.append(functions.first(name).alias(name))
    net = rows.groupBy(*keys, "version").agg(functions.sum("sign").alias("net"), *kept).where("net <> 0")
    copies = functions.explode(functions.expr("array_repeat(cast(sign(net) as int), cast(abs(net) as int))"))
    return net.select(*names, copies.alias("sign"), "version")


def groups_by_value(kind: DataType) -> bool:
    """Returns whether Spark can group values of a type, and treats only identical values as equal.

    Raises:
        UnsupportedError: The type has no form that could be grouped.
    """
    if isinstance(kind, ArrayType):
        return groups_by_value(kind.elementType)
    if isinstance(kind, StructType):
        return all(groups_by_value(each.dataType) for each in kind.fields)
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
    if groups_by_value(kind):
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
