"""Converts a table between copy-on-write and merge-on-read in one commit, without changing its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.config.table_config import TableConfig
from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ, TableTypeConfig
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.commit.commit_files import IndexUpdate, stored_drift
from dbt.adapters.zlayout.spark.commit.publish import Description, publish, publish_newest
from dbt.adapters.zlayout.spark.files.file_report import statistics_of
from dbt.adapters.zlayout.spark.jobs.jobs import Progress
from dbt.adapters.zlayout.spark.read.record_tables import check_names_are_free, physical_name, rows_of, table_type_of
from dbt.adapters.zlayout.spark.read.session import open_managed
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.write.incoming_rows import check_keys
from dbt.adapters.zlayout.spark.write.replace import Replacement, replace_table
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def of_type(
    spark: SparkSession, name: TableName, wanted: TableConfig | None, progress: Progress | None
) -> tuple[Entry, TableSnapshot]:
    """Converts a table to the requested type if needed, and returns its catalog entry and newest version.

    Args:
        wanted: Settings that name the type. None for the table's own settings.

    Raises:
        ConfigError: The table has another key, or a key column is not in the table.
        ConflictError: Another writer committed in the meantime.
    """
    entry, opened = open_managed(spark, name)
    have, asked = table_type_of(opened), wanted.table_type if wanted is not None else table_type_of(opened)
    if asked.kind == have.kind:
        if {each.lower() for each in asked.unique_key} != {each.lower() for each in have.unique_key}:
            then, now = (", ".join(each.unique_key) for each in (have, asked))
            raise ConfigError(
                [f"unique_key: the table's key is {then}, not {now}; rebuild it to change the key"], str(name)
            )
        if entry.name == physical_name(name, opened):
            return entry, opened
        # A conversion was interrupted. The views must exist before the first log file does.
        after = AfterCommit(opened.version, progress)
        publish(Catalog(spark), name, entry, opened, Description.of(entry), after)
        return open_managed(spark, name)
    if progress is not None:
        progress(f"the table changes from {have.kind} to {asked.kind}, in a version of its own before the new rows")
    if opened.merges_on_read and wanted is not None:
        settings = replace(wanted, partitioning=config_of(opened.snapshot).partitioning)
        rows = rows_of(Catalog(spark), opened)
        description, version = Description.of(entry), opened.version
        replace_table(spark, Replacement(name, rows, settings, description, progress=progress, of_version=version))
    else:
        _make_merging(spark, name, opened, asked, progress)
    return open_managed(spark, name)


def _make_merging(
    spark: SparkSession, name: TableName, opened: TableSnapshot, asked: TableTypeConfig, progress: Progress | None
) -> None:
    """Converts a table to merge-on-read. Its existing files become the base files."""
    catalog = Catalog(spark)
    check_names_are_free(catalog, name, (opened.table_id,))
    timeline = opened.timeline
    with Transaction.begin(timeline, Action.REPLACECOMMIT, Operation.CONVERSION) as transaction:
        base = transaction.base
        assert base is not None
        opened = opened.at_snapshot(base)
        layout = _layout(asked, str(name), base)
        check_keys(rows_of(catalog, opened), layout.config.table_type.unique_key, str(name))
        nothing = DataFiles.empty(base.partition_by)
        new = tuple(each for each in layout.tracked if each.path[0] in (OP, INSTANT, SEQ))
        index = IndexUpdate(opened.store, transaction.instant, nothing, statistics_of((), layout.tracked), (), new)
        change = Change(
            adds=base.files,
            schema_json=base.schema_json,
            partition_by=base.partition_by,
            layout=partial(_stored_layout, asked, str(name)),
            curve=base.curve,
            properties=base.properties,
            summary={"rows": base.files.total_rows},
        )
        commit = transaction.commit(change, index=index)
    publish_newest(spark, name, AfterCommit(commit.version, progress))


def _layout(asked: TableTypeConfig, subject: str, base: Snapshot) -> TableLayout:
    return TableLayout.of(replace(config_of(base), table_type=asked), base.schema_json, subject)


def _stored_layout(asked: TableTypeConfig, subject: str, base: Snapshot | None) -> Mapping[str, Any]:
    """Returns the layout of a version, but of another table type."""
    assert base is not None
    return _layout(asked, subject, base).to_dict(stored_drift(base.layout), base.layout.get("built"))
