"""Publishes a commit: Spark's manifest, the entry in the catalog with its statistics, and this session's relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.statistics.column_stats import column_paths
from dbt.adapters.zlayout.publish.folder_note import FOLDER_NOTE, put_folder_note
from dbt.adapters.zlayout.publish.formats import publish_formats
from dbt.adapters.zlayout.publish.spark_manifest import catch_up, retire
from dbt.adapters.zlayout.spark.catalog.session_catalog import (
    TABLE_ID_PROPERTY,
    Catalog,
    ColumnFacts,
    Definition,
    Entry,
    TableName,
    TablePath,
    TableRef,
)
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.spark.read.record_tables import physical_name, put_views, remove_views, table_entry
from dbt.adapters.zlayout.spark.read.relations import install, uninstall
from dbt.adapters.zlayout.spark.read.session import newest_managed
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHANGED_PROPERTY = "transient_lastDdlTime"


@dataclass(frozen=True)
class Description:
    """A table's comment and properties in the catalog."""

    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: Entry | None) -> Description:
        """Returns the current description in the catalog; an empty one without an entry."""
        if entry is None:
            return cls()
        hidden = {TABLE_ID_PROPERTY, _CHANGED_PROPERTY}
        properties = {key: value for key, value in entry.properties.items() if key not in hidden}
        return cls(entry.comment, properties)


def publish(
    catalog: Catalog,
    table: TableRef,
    entry: Entry | None,
    opened: TableSnapshot,
    description: Description,
    column_stats: pa.Table | None,
    after: AfterCommit,
) -> None:
    """Makes a committed version visible to every reader.

    The commit is already in the log. If this crashes, the table's next writer repeats what is missing.

    Args:
        catalog: The session's catalog.
        table: The table. If it is given by its folder, the catalog stays as it is.
        entry: The table's current entry (for a merge-on-read table, the entry of its files). None for a new table.
        opened: The table at the version.
        description: Comment and properties of the table.
        column_stats: Statistics of all files of the version, one row per file. None if they are not at hand.
        after: Runs the steps.

    Raises:
        CommittedError: Readers may not see the version yet.
    """
    with after.needed("readers may not see it yet"):
        catch_up(opened.store, opened.timeline)
        if isinstance(table, TableName):
            _put_entry(catalog, table, entry, opened, description, column_stats, after)
    publish_to_other_engines(opened, after)
    with after.useful("manifests of old versions were not deleted"):
        retire(opened.store)
    with after.useful(f"{FOLDER_NOTE} was not written"):
        put_folder_note(opened.store)


def publish_to_other_engines(opened: TableSnapshot, after: AfterCommit) -> None:
    """Publishes the newest version in the formats and the catalog of the table's settings. A failure is reported."""
    config = config_of(opened.snapshot)
    hours = config.retention.hours
    for name, error in publish_formats(opened.store, opened.timeline, opened.table_id, config.publishing, hours):
        after.leave(f"readers of {name} do not see it yet: {short_message(error)}")


def publish_committed(catalog: Catalog, table: TableRef, opened: TableSnapshot, after: AfterCommit) -> None:
    """Publishes a version that was committed just now, with the table's current description.

    Args:
        catalog: The session's catalog.
        table: The table. If its name is no longer in the catalog, nothing happens.
        opened: The table at any version.
        after: Runs the steps after that commit.

    Raises:
        CommittedError: Readers may not see the version yet.
    """
    with after.needed("readers may not see it yet"):
        entry = table_entry(catalog, table) if isinstance(table, TableName) else None
        if entry is not None or isinstance(table, TablePath):
            opened = opened.at_snapshot(opened.timeline.snapshot(after.version))
            publish(catalog, table, entry, opened, Description.of(entry), None, after)


def _put_entry(
    catalog: Catalog,
    name: TableName,
    entry: Entry | None,
    opened: TableSnapshot,
    description: Description,
    column_stats: pa.Table | None,
    after: AfterCommit,
) -> None:
    physical = physical_name(name, opened)
    former = entry if entry is not None and entry.name != physical else None
    if opened.merges_on_read and (entry is None or former is not None):
        entry = catalog.find(physical)
    elif entry is None or former is not None:
        remove_views(catalog, name)
        entry = None
    definition = Definition(
        name=physical,
        location=opened.location,
        schema_json=opened.schema_json,
        partition_by=opened.partition_columns,
        comment=description.comment,
        properties={**description.properties, TABLE_ID_PROPERTY: opened.table_id},
    )
    entry = catalog.put(definition, entry)
    with after.useful("Spark's optimizer has no statistics for it"):
        facts = column_facts(column_stats) if column_stats is not None else {}
        entry = catalog.with_statistics(entry, opened.files.total_bytes, opened.files.total_rows, facts)
    catalog.refresh(physical)
    with after.useful("this session reads it without skipping files"):
        install(catalog, entry, opened)
    if opened.merges_on_read:
        put_views(catalog, name, opened, description.comment, description.properties)
        catalog.refresh(name)
    elif former is not None:
        uninstall(catalog, former.name)
        catalog.remove(former.name)


def publish_newest(spark: SparkSession, table: TableRef, after: AfterCommit) -> TableSnapshot:
    """Publishes the newest version of a managed table with its current description, and cleans the table.

    Args:
        spark: The session.
        table: The table.
        after: Runs the steps.

    Returns:
        The table at that version.

    Raises:
        CommittedError: Readers may not see the version yet.
    """
    with after.needed("it cannot be opened"):
        opened, catalog = newest_managed(spark, table), Catalog(spark)
        entry = table_entry(catalog, table) if isinstance(table, TableName) else None
        description = Description.of(entry)
    publish(catalog, table, entry, opened, description, None, after)
    after.clean(opened)
    return opened


def column_facts(column_stats: pa.Table) -> dict[str, ColumnFacts]:
    """Returns bounds and null counts of whole columns, as text for the catalog, if every file knows them exactly."""
    facts = {}
    for path, name in column_paths(column_stats.schema).items():
        stats = column_stats.column(name).combine_chunks()
        if len(path) > 1 or not len(stats):
            continue
        nulls = stats.field("null_count")
        null_count = int(pc.sum(nulls).as_py()) if not nulls.null_count else None
        if null_count is None:
            continue
        low, high = _bound(stats, "min", pc.min), _bound(stats, "max", pc.max)
        if _has_nan(stats):
            low, high = None, None
        facts[path[0]] = ColumnFacts(low, high, null_count)
    return facts


def _has_nan(stats: pa.StructArray) -> bool:
    nans = stats.field("nan_count")
    return bool(nans.null_count or pc.sum(nans).as_py())


def _bound(stats: pa.StructArray, side: str, pick: object) -> str | None:
    kind = stats.type.field(side).type
    types = pa.types
    if types.is_string(kind) or types.is_binary(kind) or types.is_boolean(kind) or types.is_duration(kind):
        return None  # Spark keeps no bounds of these types
    bounds = stats.field(side)
    exact = stats.field(f"{side}_exact")
    all_null = pc.equal(stats.field("null_count"), stats.field("value_count"))
    if not pc.all(pc.or_(pc.fill_null(exact, False), all_null)).as_py():
        return None
    value = pick(bounds)  # type: ignore[operator] # a function of pyarrow.compute
    return _external(value, kind) if value.is_valid else None


def _external(value: pa.Scalar, kind: pa.DataType) -> str | None:
    if pa.types.is_timestamp(kind):
        naive = value.cast(pa.int64()).cast(pa.timestamp("us"))
        return str(pc.strftime(naive, "%Y-%m-%d %H:%M:%S").as_py())
    if pa.types.is_date32(kind) or pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        return str(value.cast(pa.string()).as_py())
    if pa.types.is_floating(kind):
        number = value.as_py()
        return repr(number) if number == number and abs(number) != float("inf") else None  # noqa: PLR0124 - NaN
    return None
