"""Publishes tables for other engines, for the run-operation zlayout_publish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.node_lookup import Nodes, chosen_tables
from dbt.adapters.zlayout.adapter.reports import history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def publish_report(
    session: SparkSession,
    model: str | None,
    nodes: Nodes,
    formats: Sequence[str] | None,
    publish_catalog: str | None,
    as_json: bool,
) -> str:
    """Publishes one table, or all managed tables of the project in the formats and catalogs that they have.

    Raises:
        CompilationError: Formats or a catalog are given, but no model.
    """
    if (formats is not None or publish_catalog is not None) and model is None:
        raise CompilationError("zlayout_publish switches formats and catalog of one table only; say {model: …}")
    tables = chosen_tables(session, model, nodes, lambda table: table.is_managed)
    return history.publish_report(
        {table.name: table.publish(formats, publish_catalog=publish_catalog) for table in tables}, as_json=as_json
    )
