"""Chooses the formats and the catalog in which a table is published, and publishes what is missing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.config.settings import PUBLISH, PUBLISH_CATALOG
from dbt.adapters.zlayout.config.table_config import PublishingConfig, published_as
from dbt.adapters.zlayout.errors import CommittedError, ConfigError, UnsupportedError, ZlayoutError
from dbt.adapters.zlayout.publish.catalog_registration import check_known, noted_registrations, register
from dbt.adapters.zlayout.publish.formats import publish_formats, versions_shown
from dbt.adapters.zlayout.spark.catalog.session_catalog import Entry, TableRef
from dbt.adapters.zlayout.spark.commit.after_commit import AGAIN, AfterCommit
from dbt.adapters.zlayout.spark.commit.publish import publish_committed
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.spark.read.session import newest_managed
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store, open_store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.table_file import read_table_file
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog

_LOG = logging.getLogger(__name__)


def publish_in(
    catalog: Catalog, name: TableRef, formats: Sequence[str] | str | None, publish_catalog: str | None
) -> tuple[TableSnapshot, Mapping[str, int | None]]:
    """Switches formats and the catalog on and off, and publishes the newest version in those that are on.

    Args:
        catalog: The session's catalog.
        name: The table.
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
    config = config_of(opened.snapshot)
    on, hours = config.publishing.formats or (), config.retention.hours
    for each, error in publish_formats(opened.store, opened.timeline, opened.table_id, config.publishing, hours):
        problem = f"readers of {each} do not see it: {short_message(error)}"
        raise CommittedError(opened.version, problem, AGAIN) from error
    return opened, versions_shown(opened.store, opened.table_id, on)


def _switched(catalog: Catalog, name: TableRef, opened: TableSnapshot, publishing: PublishingConfig) -> TableSnapshot:
    """Commits a version that differs in how it is published only."""
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        base = transaction.base
        if base is None:
            raise UnsupportedError(f"{name} has no version yet; build its model first")
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
    _register_quietly(open_store(location), PublishingConfig(), "drop it there, since it leads to files that are gone")


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
                _LOG.warning(f"{registration} is not as it should be: {short_message(error)}; {next_step}")
    except ZlayoutError as error:
        _LOG.warning(f"it is unknown in which catalogs {store.root_uri} is registered: {error}; look for its entries")
