"""Lists the files that hold the rows of a table, for tools that read Parquet files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.zlayout.adapter.node_lookup import opened_table
from dbt.adapters.zlayout.adapter.reports import json_text
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.timeline.log.file_slices import log_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = AdapterLogger("Zlayout")


def files_bytes(session: SparkSession, table: str, version: int | None, kind: str) -> bytes:
    """Returns the list of files as text (a path on each line), JSON or Parquet."""
    opened = opened_table(session, table)
    files = opened.files(version=version)
    if opened.merges_on_read and version is None and (logs := len(log_files(opened.snapshot().files))):
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
