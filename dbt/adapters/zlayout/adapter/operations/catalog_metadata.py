"""What dbt's own commands ask about a table: when its rows last changed, and the statistics of the documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

from dbt.adapters.zlayout.errors import TableNotFoundError, UnsupportedError, ZlayoutError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry
from dbt.adapters.zlayout.spark.read.record_tables import entry_of_files
from dbt.adapters.zlayout.spark.read.session import open_entry
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.log.file_slices import log_files
from dbt.adapters.zlayout.timeline.log.snapshot import row_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = AdapterLogger("Zlayout")
_STATS = "stats:"
_PARTS = ("label", "value", "description", "include")
# The identifier of a statistic, its label, and its description.
_DESCRIBED = {
    "rows": ("Rows", "Rows of the newest version"),
    "bytes": ("Bytes", "Size of the data files of the newest version"),
    "files": ("Files", "Data files of the newest version"),
    "version": ("Version", "The newest version"),
    "last_changed": ("Last changed", "When rows last changed, in UTC; clustering and compaction do not count"),
    "last_commit": ("Last commit", "When the newest version was committed, in UTC, even if no row changed"),
    "keys": ("Clustering keys", "The columns that the files are clustered by"),
    "curve": ("Curve", "The curve along which the files are cut"),
    "depth": ("Overlap depth", "Files that hold a value of the clustering keys, on average; 1 is the best"),
    "log_records": ("Records in logs", "Records that compaction has not yet merged into base files"),
}


def rows_changed_at(session: SparkSession, name: str) -> datetime:
    """Returns when the rows of a source last changed, in UTC.

    Raises:
        UnsupportedError: dbt-zlayout neither writes nor indexes the table.
    """
    try:
        table = ZTable.for_name(session, name)
    except TableNotFoundError as error:
        raise UnsupportedError(
            f"{error}. Only tables that dbt-zlayout writes or indexes record when their rows changed: set "
            "loaded_at_field for this source"
        ) from error
    if not table.is_managed:
        _LOG.info(f"{name} is only indexed: the time of its newest file counts as its last change")
    return table.rows_changed_at()


def statistics(session: SparkSession, relation: Entry) -> dict[str, Any]:
    """Returns the statistics of a table, or of the view of a merge-on-read table, in the form of dbt's catalog rows.

    Empty for a table without an index, and for other views.

    A statistic that cannot be read, such as one that needs a damaged entry of the log, is left out.
    """
    name = relation.name
    try:
        entry = entry_of_files(Catalog(session), relation)
        opened = None if entry is None else open_entry(session, entry)
        if opened is None:
            return {}
        figures = _figures(ZTable(session, name, opened))
    except ZlayoutError as error:
        _LOG.debug(f"no statistics of {name}: {error}")
        return {}
    return {
        f"{_STATS}{key}:{part}": value
        for key, (label, description) in _DESCRIBED.items()
        if figures.get(key) not in (None, "")
        for part, value in zip(_PARTS, (label, figures[key], description, True), strict=True)
    }


def _figures(table: ZTable) -> Mapping[str, Any]:
    snapshot = table.snapshot()
    keys = config_of(snapshot).clustering.names
    return {
        "rows": row_count(snapshot),
        "bytes": snapshot.files.total_bytes,
        "files": len(snapshot.files),
        "version": snapshot.version,
        "last_changed": _if_readable(table, "time of its last change", _last_changed),
        "last_commit": _utc(snapshot.committed_ms),
        "keys": ", ".join(keys),
        "curve": snapshot.layout.get("curve") if keys else None,
        "depth": _if_readable(table, "overlap depth", _depth) if keys else None,
        "log_records": log_files(snapshot.files).total_rows if table.merges_on_read else None,
    }


def _if_readable(table: ZTable, what: str, read: Callable[[ZTable], Any]) -> Any:
    try:
        return read(table)
    except ZlayoutError as error:
        _LOG.debug(f"no {what} of {table.name}: {error}")
        return None


def _utc(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc).isoformat(sep=" ", timespec="seconds")


def _last_changed(table: ZTable) -> str:
    return table.rows_changed_at().isoformat(sep=" ", timespec="seconds")


def _depth(table: ZTable) -> float:
    return round(table.clustering_information().overlap.average_depth, 2)


def catalog_table(rows: Iterable[Mapping[str, Any]]) -> CatalogTable | None:
    """Returns the rows of one relation in dbt's catalog as one object. None if there are no rows."""
    rows = list(rows)
    if not rows:
        return None
    first = rows[0]
    known = [key for key in _DESCRIBED if f"{_STATS}{key}:value" in first]
    return CatalogTable(
        metadata=TableMetadata(
            type=str(first["table_type"]),
            schema=first["table_schema"],
            name=first["table_name"],
            comment=first["table_comment"],
            owner=first["table_owner"],
        ),
        columns={
            row["column_name"]: ColumnMetadata(
                row["column_type"], row["column_index"], row["column_name"], row["column_comment"]
            )
            for row in rows
        },
        stats={key: StatsItem(id=key, **{part: first[f"{_STATS}{key}:{part}"] for part in _PARTS}) for key in known},
    )
