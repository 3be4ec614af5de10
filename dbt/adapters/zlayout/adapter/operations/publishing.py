"""Tables for other engines: publishes them, registers them in the catalog, and lists their files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.node_lookup import Nodes, opened_table
from dbt.adapters.zlayout.adapter.operations.each_table import report_on_tables
from dbt.adapters.zlayout.adapter.output import json_text
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.log.file_slices import log_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = AdapterLogger("Zlayout")


def publish_report(
    session: SparkSession,
    model: str | None,
    nodes: Nodes,
    formats: Sequence[str] | None,
    publish_catalog: str | None,
    as_json: bool,
    *,
    off: bool = False,
) -> str:
    """Publishes one table, or all managed tables of the project in the formats and catalogs that they have.

    Args:
        off: Whether to withdraw what was published, which is the same as no formats.

    Raises:
        CompilationError: Formats, a catalog or ``off`` are given, but no model; or ``off`` together with one of these.
    """
    if off and (formats or publish_catalog):
        raise CompilationError("zlayout_publish: off withdraws all formats; leave out formats and publish_catalog")
    if off:
        formats = []
    if (formats is not None or publish_catalog is not None) and model is None:
        raise CompilationError("zlayout_publish: off, formats and publish_catalog apply to one table; add model: …")

    def published(table: ZTable) -> Mapping[str, int | None]:
        return table.publish(formats, publish_catalog=publish_catalog)

    return report_on_tables(session, model, nodes, published, partial(publish_text, as_json=as_json))


def register_report(session: SparkSession, name: str, path: str, as_json: bool) -> str:
    """Makes the catalog entry of the table in a folder."""
    table = ZTable.register(session, name, path)
    if as_json:
        return json_text({"table": table.name, "location": table.location, "version": table.version})
    return f"{table.name}: registered, version {table.version} in {table.location}"


def files_bytes(session: SparkSession, table: str, version: int | None, kind: str) -> bytes:
    """Returns the list of files as text (a path on each line), JSON or Parquet."""
    opened = opened_table(session, table)
    files = opened.files(version=version)
    if logs := len(log_files(opened.snapshot(version=version).files)):
        _LOG.warning(
            f"{opened.name}: the listed files do not show the changes in {counted(logs, 'log file')}; run "
            "`zlayout compact` first to include them"
        )
    if kind == "parquet":
        buffer = io.BytesIO()
        pq.write_table(files, buffer)
        return buffer.getvalue()
    if kind == "json":
        return f"{json_text(files.to_pylist())}\n".encode()
    return "".join(f"{path}\n" for path in files["path"].to_pylist()).encode()


def publish_text(seen: Mapping[str, Mapping[str, int | None]], *, as_json: bool) -> str:
    """Returns the version of each table that readers of each format see.

    >>> print(publish_text({"shop.orders": {"delta": 7}, "shop.items": {}}, as_json=False))
    shop.orders: delta readers see version 7
    shop.items: not published
    """
    if as_json:
        return json_text([{"table": table, "published": dict(formats)} for table, formats in seen.items()])
    if not seen:
        return "No dbt-zlayout table to publish."
    lines = []
    for table, formats in seen.items():
        for name, version in formats.items():
            lines.append(f"{table}: {name} readers see {'no version' if version is None else f'version {version}'}")
        if not formats:
            lines.append(f"{table}: not published")
    return "\n".join(lines)
