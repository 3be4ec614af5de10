"""Chooses the formats in which a table is published for other engines, and publishes what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.config.settings import PUBLISH, PublishFormat
from dbt.adapters.zlayout.config.table_config import PublishingConfig, stored_settings
from dbt.adapters.zlayout.errors import CommittedError, ConfigError, UnsupportedError
from dbt.adapters.zlayout.publish.formats import publish_formats, versions_shown
from dbt.adapters.zlayout.spark.catalog.session_catalog import TableName
from dbt.adapters.zlayout.spark.commit.after_commit import AGAIN, AfterCommit
from dbt.adapters.zlayout.spark.commit.publish import publish_committed
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.spark.read.session import open_managed
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog


def publish_in(
    catalog: Catalog, name: TableName, formats: Sequence[str] | str | None
) -> tuple[TableSnapshot, Mapping[str, int | None]]:
    """Switches formats on and off, and publishes the newest version in those that are on.

    Args:
        catalog: The session's catalog.
        name: Name of the table.
        formats: The formats that are on from now on; None leaves them as they are.

    Returns:
        The table, and the version that readers of each format see.

    Raises:
        ConfigError: There is no such format, or a column cannot be published in it. Nothing has changed.
        ConflictError: Another writer committed in the meantime.
        CommittedError: The formats are switched, but readers do not see the newest version yet.
    """
    spark = catalog.spark
    problems: list[str] = []
    wanted = PUBLISH.read_value(formats, problems)
    if problems:
        raise ConfigError(problems, str(name))
    _, opened = open_managed(spark, name)
    if wanted is not None and wanted != (config_of(opened.snapshot).publishing.formats or ()):
        opened = _switched(catalog, name, opened, wanted)
    config = config_of(opened.snapshot)
    on = config.publishing.formats or ()
    for each, error in publish_formats(opened.store, opened.timeline, opened.table_id, on, config.retention.hours):
        problem = f"readers of {each} do not see it: {short_message(error)}"
        raise CommittedError(opened.version, problem, AGAIN) from error
    return opened, versions_shown(opened.store, opened.table_id, on)


def _switched(
    catalog: Catalog, name: TableName, opened: TableSnapshot, formats: tuple[PublishFormat, ...]
) -> TableSnapshot:
    """Commits a version that differs in its formats only."""
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        base = transaction.base
        if base is None:
            raise UnsupportedError(f"{name} has no version yet; build its model first")
        config = replace(config_of(base), publishing=PublishingConfig(formats))
        TableLayout.of(config, base.schema_json, str(name))  # refuses columns that a format does not have
        nothing = DataFiles.empty(base.partition_by)
        layout = {**base.layout, "publish": stored_settings(config)["publish"]}
        commit = transaction.commit(Change(adds=nothing, layout=layout, summary={"publish": list(formats)}))
    publish_committed(catalog, name, opened, AfterCommit(commit.version))
    return opened.at_snapshot(opened.timeline.snapshot(commit.version))
