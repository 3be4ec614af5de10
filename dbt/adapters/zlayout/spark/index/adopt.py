"""Adopts an existing Parquet table: indexes it from its footers, and makes it a managed table if asked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.config.schema_check import check_against_schema
from dbt.adapters.zlayout.config.table_config import TableConfig, stored_settings
from dbt.adapters.zlayout.config.table_type import OP
from dbt.adapters.zlayout.errors import (
    AlreadyExistsError,
    ConflictError,
    CorruptError,
    TableNotFoundError,
    UnsupportedError,
)
from dbt.adapters.zlayout.publish.spark_manifest import paths_to_adopt, published_version
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.catalog.session_catalog import (
    TABLE_ID_PROPERTY,
    Catalog,
    Entry,
    TableName,
    TablePath,
    session_zone,
    unescaped,
)
from dbt.adapters.zlayout.spark.commit.after_commit import AGAIN, AfterCommit, CommitSummary
from dbt.adapters.zlayout.spark.commit.commit_files import commit_files, depth_of
from dbt.adapters.zlayout.spark.commit.expression_stats import check_expressions
from dbt.adapters.zlayout.spark.commit.optional_slices import NewOptional
from dbt.adapters.zlayout.spark.commit.publish import Description, publish
from dbt.adapters.zlayout.spark.files.existing_files import ambiguous_folder, footers_found, listed_files, wait_a_tick
from dbt.adapters.zlayout.spark.index.collected_statistics import Collected, collect, examining
from dbt.adapters.zlayout.spark.index.optional_indexes import optional_pieces
from dbt.adapters.zlayout.spark.read.relations import spark_relation, uninstall
from dbt.adapters.zlayout.spark.schema.table_schema import checked_schema
from dbt.adapters.zlayout.spark.schema.types import fields_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, check_indexes
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store, open_store, qualified
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.table_file import (
    ManagementLevel,
    TableFile,
    check_not_inside_a_table,
    check_removable,
    create_table_file,
    read_table_file,
    replace_table_file,
)
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.last_row_change import ADOPTED
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def adopt_table(
    spark: SparkSession, name: TableName, config: TableConfig, *, managed: bool
) -> tuple[TableSnapshot, CommitSummary]:
    """Indexes an existing Parquet table without rewriting it.

    Args:
        spark: The session.
        name: Name of the table.
        config: Clustering keys and columns with statistics.
        managed: Also give the table a log and a manifest. From then on, readers see only committed files. Otherwise,
            other tools keep writing to it as they like.

    Raises:
        TableNotFoundError: The table does not exist.
        UnsupportedError: It is a view, not a Parquet table, already managed, or has partitions outside its folder.
        ConfigError: The settings do not fit the table's columns.
        ConflictError: Another session changed its index in the meantime.
    """
    started = time.perf_counter()
    catalog = Catalog(spark)
    entry = _adoptable(catalog, name)
    location = str(entry.location)
    store = open_store(location)
    table_file = read_table_file(store)
    # After an interrupted adoption, the catalog does not know of it yet. The adoption is then repeated.
    timeline = Timeline(store)
    version = timeline.latest_version()
    if version is not None:
        _check_not_managed(name, entry, table_file, store, version, managed=managed)
    check_not_inside_a_table(location)
    if managed:
        check_removable(location)
    config = check_against_schema(config, checked_schema(entry.schema_json), subject=str(name))
    check_indexes(config, entry.schema_json, str(name))
    layout = TableLayout.bound(config, entry.schema_json, entry.partition_by)
    check_expressions(spark, config.indexes, layout, str(name))
    files = listed_files(store, entry.partition_by)
    if managed:
        files = _files_to_manage(catalog, entry, store, files)
    level = ManagementLevel.MANAGED if managed else ManagementLevel.INDEXED
    footers, collected = _collected(spark, store, entry, files, layout, managed=managed)
    adopted, statistics = collected.files, collected.column_stats
    depth = round(depth_of(statistics, config.clustering.columns, [each.partition for each in adopted]), 4)
    claimed = _claim(timeline, name, level, table_file)
    with Transaction.begin(timeline, Action.COMMIT if managed else Action.INDEXING, Operation.OVERWRITE) as transaction:
        if version != (None if transaction.base is None else transaction.base.version):
            raise ConflictError(
                f"{name}: another session has changed its index just now; nothing was adopted; try again"
            )
        summary = {"rows": adopted.total_rows, "overlap_depth": depth, "data_passes": 0, ADOPTED: level.value}
        change = Change(
            adds=adopted,
            schema_json=entry.schema_json,
            partition_by=entry.partition_by,
            layout=stored_settings(config),
            properties={"dropped_columns": _dropped(footers, entry.schema_json)} if managed else {},
            summary=summary,
        )
        pieces = optional_pieces(spark, store, transaction.instant, adopted, adopted, layout)
        commit = commit_files(store, transaction, change, statistics, optional=NewOptional.of(pieces, adopted))
    # A table that the catalog knows already counts as managed now, and is not adopted a second time.
    after = AfterCommit(commit.version) if managed and entry.table_id else AfterCommit(commit.version, next_step=AGAIN)
    with after.needed("the catalog may not know it yet"):
        opened = TableSnapshot.at(timeline, claimed, location, timeline.snapshot(commit.version), session_zone(spark))
        if managed:
            # The catalog's name of the table may have changed since the file was read.
            current = read_table_file(store) or claimed
            if current.level is not level:
                replace_table_file(store, replace(current, level=level))
            publish(catalog, name, entry, opened, Description.of(entry), after, column_stats=statistics)
        else:
            catalog.set_property(entry, TABLE_ID_PROPERTY, claimed.table_id)
            uninstall(catalog, name)
    done = CommitSummary(
        version=commit.version,
        instant=commit.instant,
        operation="adopt",
        rows=adopted.total_rows,
        files_added=len(commit.adds),
        files_removed=0,
        bytes_added=commit.adds.total_bytes,
        bytes_removed=0,
        data_passes=0,
        overlap_depth=depth,
        phases={"total": round(time.perf_counter() - started, 3)},
        unfinished=after.unfinished,
    )
    return opened, done


def _collected(
    spark: SparkSession, store: Store, entry: Entry, files: DataFiles, layout: TableLayout, *, managed: bool
) -> tuple[Sequence[pq.FileMetaData | None], Collected]:
    """Returns the footers of files, and the files with their statistics.

    Raises:
        UnsupportedError: A file of a table that becomes managed cannot be read.
    """
    if not managed:
        wait_a_tick(store, files)
    footers = footers_found(store, files["path"].to_pylist())
    examine = examining(spark, store, entry.schema_json, entry.partition_by)
    collected = collect(store, files, layout.tracked, examine, footers=footers)
    if not managed:
        return footers, collected.only(collected.files.same_as(listed_files(store, entry.partition_by)))
    if collected.unreadable:
        raise UnsupportedError(
            f"{entry.name}: {collected.unreadable[0]} is not a Parquet file, or cannot be read; remove it from the "
            "folder, or adopt the table with managed=False"
        )
    return footers, collected


def _adoptable(catalog: Catalog, name: TableName) -> Entry:
    entry = catalog.find(name)
    if entry is None:
        raise TableNotFoundError(f"there is no table {name}; create it first, or check the schema's name")
    if entry.kind == "VIEW":
        raise UnsupportedError(f"{name} is a view; adopt the tables that it reads")
    if entry.provider != "parquet" or entry.location is None:
        raise UnsupportedError(
            f"{name} is stored as {entry.provider}; only Parquet tables (using parquet) can be adopted. Run its model "
            "once with --full-refresh, or copy the rows: create table … using parquet as select …"
        )
    if OP in {each.name for each in fields_of(entry.schema_json)}:
        raise UnsupportedError(
            f"{name} holds the files of a merge_on_read table, which cannot be adopted; rebuild it (--full-refresh)"
        )
    return entry


def _check_not_managed(
    name: TableName, entry: Entry, table_file: TableFile | None, store: Store, version: int, *, managed: bool
) -> None:
    """Checks that a folder with a log does not hold a managed table, unless its adoption was interrupted."""
    if table_file is None or table_file.level is not ManagementLevel.MANAGED:
        return
    if entry.table_id == table_file.table_id:
        if published_version(store) != version:
            raise UnsupportedError(
                f"{name} is already managed; run zlayout_refresh_index to publish its newest version"
            )
        raise UnsupportedError(f"{name} is already managed; there is nothing to adopt")
    if not managed:
        # Indexing would make the files of all versions live.
        raise UnsupportedError(
            f"the folder of {name} holds a managed table; give the table its entry with "
            f"ZTable.register(spark, '{name}', '{TablePath(str(entry.location))}')"
        )


def _only(store: Store, files: DataFiles, shown: list[str]) -> DataFiles:
    """Returns the files of a folder that its manifest lists."""
    gone = set(shown).difference(files["path"].to_pylist())
    if gone:
        raise CorruptError(
            f"{store.root_uri}: the manifest lists {counted(len(gone), 'file')} not in the folder, such as {min(gone)};"
            " restore them, or rebuild the table (--full-refresh)"
        )
    return files.filter(pc.is_in(files["path"], value_set=pa.array(shown, pa.string())))


def _dropped(footers: Sequence[pq.FileMetaData | None], schema_json: str) -> list[str]:
    """Returns columns that only the files hold. A new column of such a name must not show their old values."""
    names = {each.name.lower() for each in fields_of(schema_json)}
    schemas = (footer.schema.to_arrow_schema() for footer in footers if footer is not None)
    held = {name.lower() for schema in schemas for name in schema.names}
    return sorted(held - names)


def _files_to_manage(catalog: Catalog, entry: Entry, store: Store, files: DataFiles) -> DataFiles:
    """Returns the files of a table that becomes managed: those of its manifest if it has one, or else all.

    Raises:
        UnsupportedError: Spark would read other files or other partition values than today.
    """
    shown = paths_to_adopt(store)
    if shown is not None:
        files = _only(store, files, shown)
    elif problem := ambiguous_folder(files, entry.partition_by, entry.schema_json):
        raise UnsupportedError(
            f"{entry.name}: {problem}; write these rows again with Spark, or adopt the table with managed=False"
        )
    _check_listing(catalog, entry.name, store, files)
    return files


def _check_listing(catalog: Catalog, name: TableName, store: Store, files: DataFiles) -> None:
    """Checks that Spark reads exactly these files today, because a managed table reads exactly what is committed."""
    # The session's cached list of files may be out of date.
    catalog.forget_relation(name)
    listed = {unescaped(str(each)) for each in spark_relation(catalog, name).location().inputFiles()}
    ours = {unescaped(qualified(store.root_uri, path)) for path in files.column("path").to_pylist()}
    different = listed ^ ours
    if different:
        raise UnsupportedError(
            f"{name} reads {counted(len(listed), 'file')}, its folder holds {len(ours):,}; they differ in "
            f"{min(different)}. A table with partitions outside its folder, or that the catalog does not know, cannot"
            " be managed: repair the table first (msck repair table), or adopt it with managed=False"
        )


def _claim(timeline: Timeline, name: TableName, level: ManagementLevel, known: TableFile | None) -> TableFile:
    """Returns the table file for after the commit. A new table gets it now.

    A log that only indexes the files must never be the log of a managed table. So a table that is indexed becomes
    managed after the commit, and one without a log, left managed by an interrupted adoption, becomes indexed before it.
    """
    store = timeline.store
    if known is not None:
        claimed = TableFile(known.table_id, level, known.name, known.created_ms)
        if level is ManagementLevel.INDEXED and timeline.latest_version() is None:
            replace_table_file(store, claimed)
        return claimed
    claimed = TableFile.new(level, str(name), int(time.time() * 1000))
    try:
        create_table_file(store, claimed)
    except AlreadyExistsError as error:
        raise UnsupportedError(f"another session is adopting {name}; try again later") from error
    return claimed
