"""Publishes a version: Spark's manifest, the catalog entry, this session's relation, and formats for other engines."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.settings import PUBLISH, PUBLISH_CATALOG
from dbt.adapters.zlayout.config.table_config import PublishingConfig, published_as
from dbt.adapters.zlayout.errors import CommittedError, ConfigError, UnsupportedError, ZlayoutError
from dbt.adapters.zlayout.index.statistics.column_stats import column_paths
from dbt.adapters.zlayout.publish.catalog_registration import check_known, noted_registrations, register
from dbt.adapters.zlayout.publish.formats import publish_formats, published_versions
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
from dbt.adapters.zlayout.spark.commit.after_commit import AGAIN, AfterCommit
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.spark.read.record_tables import physical_name, put_views, remove_views, table_entry
from dbt.adapters.zlayout.spark.read.relations import install, uninstall
from dbt.adapters.zlayout.spark.read.session import newest_managed
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store, open_store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.table_file import FOLDER_NOTE, put_folder_note, read_table_file
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
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
    after: AfterCommit,
    *,
    column_stats: pa.Table | None = None,
) -> None:
    """Makes a committed version visible to every reader.

    The commit is already in the log. If this crashes, the table's next writer repeats what is missing.

    Args:
        table: The table. If it is given by its folder, the catalog stays as it is.
        entry: The table's current entry (for a merge-on-read table, the entry of its files). None for a new table.
        opened: The table at the version.
        description: Comment and properties of the table.
        after: Runs the steps after the commit.
        column_stats: Statistics of all files of the version, one row per file. None if the caller has none.

    Raises:
        CommittedError: Readers may not see the version yet.
    """
    with after.needed("readers may not see it yet"), ThreadPoolExecutor(1) as other_thread:
        catch_up(opened.store, opened.timeline)
        # The store and the catalog are other machines, or at least other programs: neither waits for the other.
        formats = other_thread.submit(_publish_formats, opened)
        try:
            if isinstance(table, TableName):
                _put_entry(catalog, table, entry, opened, description, column_stats, after)
        finally:
            _report_formats(formats.result(), after)
    _retire_old(opened, after)


def publish_to_others(opened: TableSnapshot, after: AfterCommit) -> None:
    """Publishes the newest version in the formats and the catalog of the table's settings. A failure is reported.

    Deletes what only older versions need.
    """
    _report_formats(_publish_formats(opened), after)
    _retire_old(opened, after)


def _publish_formats(opened: TableSnapshot) -> list[tuple[str, Exception]]:
    """Publishes in the formats and the catalog of the settings, and returns those that failed, with the errors."""
    config = config_of(opened.snapshot)
    hours = config.retention.hours
    return list(publish_formats(opened.store, opened.timeline, opened.table_id, config.publishing, hours))


def _report_formats(failed: Sequence[tuple[str, Exception]], after: AfterCommit) -> None:
    for name, error in failed:
        after.leave(f"readers of {name} do not see it yet: {short_message(error)}")


def _retire_old(opened: TableSnapshot, after: AfterCommit) -> None:
    """Deletes what only older versions need."""
    with after.useful("manifests of old versions were not deleted"):
        retire(opened.store)
    with after.useful(f"{FOLDER_NOTE} was not written"):
        put_folder_note(opened.store)


def publish_committed(catalog: Catalog, table: TableRef, opened: TableSnapshot, after: AfterCommit) -> TableSnapshot:
    """Publishes a version that was committed just now, with the table's current description.

    Args:
        table: The table. If its name is no longer in the catalog, nothing is published.
        opened: The table at any version.
        after: Runs the steps after that commit.

    Returns:
        The table at that version.

    Raises:
        CommittedError: Readers may not see the version yet.
    """
    with after.needed("readers may not see it yet"):
        opened = opened.at_snapshot(opened.timeline.snapshot(after.version))
        entry = table_entry(catalog, table) if isinstance(table, TableName) else None
        if entry is not None or isinstance(table, TablePath):
            publish(catalog, table, entry, opened, Description.of(entry), after)
    return opened


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

    Returns:
        The table at that version.

    Raises:
        CommittedError: Readers may not see the version yet.
    """
    with after.needed("it cannot be opened"):
        opened, catalog = newest_managed(spark, table), Catalog(spark)
        entry = table_entry(catalog, table) if isinstance(table, TableName) else None
        description = Description.of(entry)
    publish(catalog, table, entry, opened, description, after)
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
        if nulls.null_count:
            continue
        nans = stats.field("nan_count")
        may_have_nan = nans.null_count or pc.sum(nans).as_py()
        low, high = (None, None) if may_have_nan else (_bound(stats, "min", pc.min), _bound(stats, "max", pc.max))
        facts[path[0]] = ColumnFacts(low, high, int(pc.sum(nulls).as_py()))
    return facts


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


def publish_in(
    catalog: Catalog, name: TableRef, formats: Sequence[str] | str | None, publish_catalog: str | None
) -> tuple[TableSnapshot, Mapping[str, int | None]]:
    """Switches formats and the catalog on and off, and publishes the newest version in those that are on.

    Args:
        formats: The formats that are on from now on; None leaves them as they are.
        publish_catalog: The catalog from now on; None leaves it as it is, empty text is none.

    Returns:
        The table, and the version that readers of each format see.

    Raises:
        ConfigError: There is no such format or catalog, or a column cannot be published. Nothing has changed.
        ConflictError: Another writer committed in the meantime.
        CommittedError: The formats are switched, but readers do not see the newest version yet.
    """
    spark = catalog.spark
    problems: list[str] = []
    asked = PublishingConfig(
        PUBLISH.read_value(formats, problems), PUBLISH_CATALOG.read_value(publish_catalog, problems)
    )
    if problems:
        raise ConfigError(problems, str(name))
    opened = newest_managed(spark, name)
    before = config_of(opened.snapshot).publishing
    if problems := PublishingConfig(
        before.formats if asked.formats is None else asked.formats, asked.catalog
    ).problems():
        raise ConfigError(problems, str(name))
    if asked.catalog:
        try:
            check_known(asked.catalog)
        except UnsupportedError as unknown:
            raise ConfigError([f"publish_catalog: {unknown}"], str(name)) from unknown
    wanted = asked.after(before)
    if (wanted.formats or (), wanted.catalog) != (before.formats or (), before.catalog):
        opened = _switched(catalog, name, opened, wanted)
    if failed := _publish_formats(opened):
        problems = [f"readers of {each} do not see it: {short_message(error)}" for each, error in failed]
        raise CommittedError(opened.version, "; ".join(problems), AGAIN) from failed[0][1]
    on = config_of(opened.snapshot).publishing.formats or ()
    return opened, published_versions(opened.store, opened.table_id, on)


def _switched(catalog: Catalog, name: TableRef, opened: TableSnapshot, publishing: PublishingConfig) -> TableSnapshot:
    """Commits a version that differs only in how it is published."""
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        base = transaction.known_base(name)
        config = replace(config_of(base), publishing=publishing)
        TableLayout.of(config, base.schema_json, str(name))  # refuses columns that a format does not have
        nothing = DataFiles.empty(base.partition_by)
        change = Change(
            adds=nothing,
            layout=lambda head: published_as({} if head is None else head.layout, publishing),
            summary=publishing.stored(),
        )
        commit = transaction.commit(change)
    publish_committed(catalog, name, opened, AfterCommit(commit.version))
    return opened.at_snapshot(opened.timeline.snapshot(commit.version))


def leave_catalogs(location: str) -> None:
    """Removes the entries that the table in a folder has in catalogs, before the folder goes. A failure is logged."""
    _register_quietly(open_store(location), PublishingConfig(), "drop it there, because its files are gone")


def follow_name(entry: Entry | None) -> None:
    """Gives the entries that a renamed table has in catalogs its new name. A failure is logged."""
    if entry is None or entry.table_id is None or entry.location is None:
        return
    store = open_store(entry.location)
    newest = Timeline(store).newest() if noted_registrations(store) else None
    if newest is not None:
        _register_quietly(store, config_of(newest).publishing, "the next writer tries again")


def _register_quietly(store: Store, publishing: PublishingConfig, next_step: str) -> None:
    try:
        table_file = read_table_file(store)
        if table_file is not None:
            for registration, error in register(store, table_file.table_id, publishing):
                _LOG.warning(f"{registration} is not up to date: {short_message(error)}; {next_step}")
    except ZlayoutError as error:
        _LOG.warning(
            f"cannot determine in which catalogs {store.root_uri} is registered: {error}; look for old entries there"
        )
