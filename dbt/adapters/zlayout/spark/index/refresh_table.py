"""Refreshes the index of a table in the catalog, managed or only indexed, and publishes the result to Spark."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.config import TableConfig
from dbt.adapters.zlayout.config.table_config import StatisticsConfig
from dbt.adapters.zlayout.errors import TableNotFoundError
from dbt.adapters.zlayout.publish.spark_manifest import catch_up, retire
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.files.existing_files import listed_files
from dbt.adapters.zlayout.spark.index.adopt import adopt_table
from dbt.adapters.zlayout.spark.index.collected_statistics import Examine
from dbt.adapters.zlayout.spark.index.data_statistics import examining
from dbt.adapters.zlayout.spark.index.missing import drop_missing, missing_files
from dbt.adapters.zlayout.spark.index.orphans import take_orphans
from dbt.adapters.zlayout.spark.index.refresh import Goal, Refresh, Refreshed
from dbt.adapters.zlayout.spark.jobs.jobs import Progress
from dbt.adapters.zlayout.spark.read.record_tables import table_entry
from dbt.adapters.zlayout.spark.read.relations import install, uninstall
from dbt.adapters.zlayout.spark.read.session import open_entry
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of, tracked_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.transactions.recovery import recover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refresh_table(
    spark: SparkSession,
    name: TableName,
    opened: TableSnapshot,
    *,
    orphans: bool,
    missing: bool,
    progress: Progress | None,
) -> tuple[TableSnapshot, Refreshed]:
    """Brings the index of a table up to date with its live files.

    Args:
        spark: The session.
        name: Name of the table.
        opened: The table at any version.
        orphans: For a managed table, also append files of other tools in its folder.
        missing: For a managed table, also drop missing files, with their rows.
        progress: Called with a line of text as the work goes on.

    Returns:
        The table at its current version, and a summary of what was done.

    Raises:
        TableNotFoundError: The table is no longer in the catalog.
        UnsupportedError: An orphan does not fit the table. Or all files are missing, so that the folder may be
            unreachable. Or ``orphans`` or ``missing`` would change a table that is merge-on-read or only indexed.
        ConflictError: Other writers were in the way several times in a row.
    """
    catalog = Catalog(spark)
    entry = table_entry(catalog, name)
    if entry is None:
        raise TableNotFoundError(f"there is no table {name} any more")
    # The table may have become managed since. Its folder then also holds files of older versions.
    opened = open_entry(spark, entry) or opened
    timeline = opened.timeline
    recover(timeline)
    dropped = drop_missing(spark, name, opened, progress) if missing else 0
    taken = take_orphans(spark, name, opened, progress) if orphans else 0
    snapshot = timeline.snapshot()
    if not opened.managed and entry.partition_by != snapshot.partition_by:
        return _indexed_anew(spark, name, snapshot)
    lost = missing_files(opened.store, snapshot.files) if opened.managed else ()
    done = Refresh(timeline, _goal(opened, entry), _examine(spark, opened, entry, progress)).run()
    after = AfterCommit(done.version, progress)
    with after.needed("readers may not see it yet"):
        opened = opened.at_snapshot(timeline.snapshot())
        if opened.managed:
            catch_up(opened.store, timeline)
            with after.useful("manifests of old versions are still there"):
                retire(opened.store)
            install(catalog, entry, opened)
        elif done.version != snapshot.version:
            uninstall(catalog, name)
    return opened, replace(done, files_added=done.files_added + taken, missing=lost, files_dropped=dropped)


def _goal(opened: TableSnapshot, entry: Entry) -> Goal:
    if opened.managed:
        return Goal(lambda snapshot: tracked_of(config_of(snapshot), snapshot.schema_json, snapshot.partition_by))
    return Goal(
        tracked=lambda snapshot: tracked_of(config_of(snapshot), entry.schema_json, entry.partition_by),
        listed=partial(listed_files, opened.store, entry.partition_by),
        schema_json=entry.schema_json,
    )


def _examine(spark: SparkSession, opened: TableSnapshot, entry: Entry, progress: Progress | None) -> Examine:
    schema_json = opened.schema_json if opened.managed else entry.schema_json
    return examining(spark, opened.store, schema_json, opened.partition_columns, progress)


def _indexed_anew(spark: SparkSession, name: TableName, before: Snapshot) -> tuple[TableSnapshot, Refreshed]:
    """Indexes a table again that was recreated with other partitions. None of the old index fits its files."""
    wanted = config_of(before).statistics
    # Columns that the settings name may no longer exist.
    config = TableConfig(statistics=wanted if isinstance(wanted.columns, int) else StatisticsConfig())
    opened, done = adopt_table(spark, name, config, managed=False)
    return opened, Refreshed(done.version, files_added=done.files_added, files_removed=len(before.files))
