"""Measures a table: its state, its versions and files, how the files overlap, and which of them conditions read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.column_names import (
    folded_path,
    format_column_path,
    format_column_set,
    parse_column_list,
)
from dbt.adapters.zlayout.errors import ConfigError, TableNotFoundError, ZlayoutError
from dbt.adapters.zlayout.index.statistics.tracked import canonical_type
from dbt.adapters.zlayout.index.verification import MISSING_ON_DISK, ORPHAN
from dbt.adapters.zlayout.layout.clustering_measures import ClusteringMeasures, clustering_measures
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.publish.formats import published_versions
from dbt.adapters.zlayout.spark.catalog.session_catalog import TableRef
from dbt.adapters.zlayout.spark.commit.after_commit import unfinished_work
from dbt.adapters.zlayout.spark.files.existing_files import listed_files
from dbt.adapters.zlayout.spark.index.lacking_indexes import lacking_parts
from dbt.adapters.zlayout.spark.index.verify import stale_files
from dbt.adapters.zlayout.spark.merge_on_read.compaction import merging_information, pending_plans
from dbt.adapters.zlayout.spark.read.record_tables import table_type_of
from dbt.adapters.zlayout.spark.schema.types import arrow_schema
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.table.explanation import Explanation, explain
from dbt.adapters.zlayout.timeline.files.naming import is_data_path, is_own_name
from dbt.adapters.zlayout.timeline.log.entry import CommitHeader
from dbt.adapters.zlayout.timeline.log.file_slices import base_files, is_kept_deletes, log_files
from dbt.adapters.zlayout.timeline.log.snapshot import row_count
from dbt.adapters.zlayout.timeline.retention.orphans import foreign_text
from dbt.adapters.zlayout.timeline.transactions.last_row_change import rows_changed_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_MOST_NAMES = 20
_FIGURES_OF_A_PREDICATE = ("predicate", "total_files", "kept_files", "kept_rows", "kept_bytes", "skipped_percent")


@dataclass(frozen=True)
class ClusteringInformation(ClusteringMeasures):
    """The layout of one version of a table.

    Attributes:
        table: ``schema.table``.
        version: The version of the snapshot.
        managed: Whether this package writes the table. If not, it is only indexed.
        zorder: The table's clustering keys.
        predicate: The explanation of the given predicate, with its text as given; None if none was given.
        problems: Problems of the index. The files they concern count as unknown.
    """

    table: str
    version: int
    managed: bool
    zorder: tuple[str, ...]
    predicate: Explanation | None
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures as plain values for JSON. docs/clustering.md lists the fields."""
        return {
            "table": self.table,
            "version": self.version,
            "managed": self.managed,
            "zorder": list(self.zorder),
            **super().to_dict(),
            "predicate": None
            if self.predicate is None
            else {name: getattr(self.predicate, name) for name in _FIGURES_OF_A_PREDICATE},
            "problems": list(self.problems),
        }


def clustering_information(
    spark: SparkSession,
    name: TableRef,
    opened: TableSnapshot,
    columns: Sequence[str] | str | None,
    predicate: str | None,
) -> ClusteringInformation:
    """Returns the layout of the files of ``opened``. See ``ZTable.clustering_information``."""
    return ClusteringInformation(
        **vars(measure_table(opened, columns, str(name))),
        table=str(name),
        version=opened.version,
        managed=opened.managed,
        zorder=config_of(opened.snapshot).clustering.names,
        predicate=None if predicate is None else replace(explain(spark, name, opened, predicate), predicate=predicate),
        problems=tuple(opened.index.problems),
    )


def information(name: TableRef, opened: TableSnapshot) -> dict[str, Any]:
    """Returns the state of a table as a dictionary. See ``ZTable.information``."""
    snapshot = opened.snapshot
    config = config_of(snapshot)
    summary = opened.timeline.read(snapshot.version).summary
    merging = merging_information(opened) if opened.merges_on_read else {}
    stale = stale_files(opened)
    orphans = stale["path"].filter(pc.equal(stale["reason"], ORPHAN)).to_pylist()
    foreign = sum(not is_own_name(path) for path in orphans)
    stale_paths = set(filter(is_data_path, stale["path"].to_pylist()))
    missing = pc.sum(pc.equal(stale["reason"], MISSING_ON_DISK), min_count=0).as_py()
    advice = {"what_to_do": [foreign_text(foreign, merges_on_read=opened.merges_on_read)]} if foreign else {}
    return {
        "name": str(name),
        "level": "managed" if opened.managed else "indexed",
        "location": opened.location,
        "version": snapshot.version,
        "instant": snapshot.instant,
        "operation": snapshot.operation,
        "files": len(snapshot.files),
        "rows": row_count(snapshot),
        "bytes": snapshot.files.total_bytes,
        "zorder": [".".join(path) for path in config.clustering.columns],
        "curve": snapshot.layout.get("curve"),
        "partition_by": list(snapshot.partition_by),
        "partitions": len(opened.partition_keys) if snapshot.partition_by else 0,
        "overlap_depth": summary.get("overlap_depth"),
        "stale_files": len(stale_paths),
        "foreign_files": foreign,
        "orphan_files": len(orphans) - foreign,
        "missing_files": missing,
        "table_type": table_type_of(opened).kind,
        "unfinished": unfinished_work(opened),
        "published": _published(opened),
        **({} if config.auto_keys.why is None else {"auto_keys": config.auto_keys.why}),
        "bloom": list(map(format_column_path, config.indexes.bloom or ())),
        "lookup": list(map(format_column_set, config.indexes.lookup or ())),
        "stats_expressions": list(config.indexes.stats_expressions or ()),
        "lacking": lacking_parts(opened),
        "pending": pending_plans(opened),
        **merging,
        **advice,
    }


def rows_changed_at(opened: TableSnapshot, subject: str) -> datetime:
    """Returns when rows last changed, in UTC. See ``ZTable.rows_changed_at``."""
    if opened.managed:
        time_ms = rows_changed_ms(opened.timeline, subject)
    else:
        files = listed_files(opened.store, opened.snapshot.partition_by)
        if not len(files):
            raise TableNotFoundError(f"{subject} is only indexed and has no files, so it is not known when it changed")
        time_ms = pc.max(files["modified_ms"]).as_py()
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc)


def commit_history(headers: Sequence[CommitHeader]) -> pa.Table:
    """Returns the versions of a table as an Arrow table, in the given order."""
    return pa.table(
        {
            "version": pa.array([each.version for each in headers], pa.int64()),
            "instant": pa.array([each.instant for each in headers], pa.string()),
            "action": pa.array([each.action.value for each in headers], pa.string()),
            "operation": pa.array([each.operation for each in headers], pa.string()),
            **{
                name: pa.array([_number(each, name) for each in headers], pa.int64())
                for name in ("rows", "rows_inserted", "rows_updated", "rows_deleted")
            },
            "files_added": pa.array([each.files_added for each in headers], pa.int64()),
            "files_removed": pa.array([each.files_removed for each in headers], pa.int64()),
            "bytes_added": pa.array([_number(each, "bytes_added") for each in headers], pa.int64()),
            "committed_at": pa.array([each.committed_ms * 1000 for each in headers], pa.timestamp("us", tz="UTC")),
        }
    )


def _number(header: CommitHeader, name: str) -> int | None:
    found = header.summary.get(name)
    return found if type(found) is int and abs(found) < 2**63 else None


def _published(opened: TableSnapshot) -> dict[str, Any]:
    """Returns by format what its readers see: a version, and how many log records they miss.

    For Iceberg also the catalog. None for a format whose readers see nothing, or of which it is unknown.
    """
    found: dict[str, Any] = {}
    publishing = config_of(opened.snapshot).publishing
    for name in publishing.formats or ():
        found[name] = None
        try:
            version = published_versions(opened.store, opened.table_id, [name]).get(name)
            if version is not None:
                hidden = log_files(opened.timeline.snapshot(version).files).total_rows
                found[name] = {"version": version, "log_records_not_shown": hidden}
                if name == "iceberg" and publishing.catalog:
                    found[name]["catalog"] = publishing.catalog
        except ZlayoutError:
            # `unfinished` has the error.
            continue
    return found


def measure_table(opened: TableSnapshot, columns: Sequence[str] | str | None, subject: str) -> ClusteringMeasures:
    """Measures the files of a version.

    Args:
        opened: The table. If it is only indexed, only files that the index knows are measured. Files of kept deletes
            are never.
        columns: Names such as ``a`` and ``a.b``, in a list or separated by commas. None for the clustering keys or, in
            a table without keys, for all top-level columns with statistics.

    Raises:
        ConfigError: A column does not exist or has no statistics.
    """
    types = measured_columns(opened, columns, subject)
    files, partitions = opened.files, opened.partition_of_file
    kept = is_kept_deletes(files).to_numpy(zero_copy_only=False) if opened.merges_on_read else None
    if kept is not None and kept.any():
        # Readers skip these files.
        files, partitions = files.filter(pa.array(~kept)), partitions[~kept]
    return clustering_measures(files, opened.statistics.statistics(files, list(types)), types, partitions)


def measure_keys(opened: TableSnapshot, subject: str) -> ClusteringMeasures | None:
    """Measures the clustering keys, or all columns in a table without keys; None if no column has statistics."""
    try:
        return measure_table(opened, None, subject)
    except ConfigError:
        return None


def measured_columns(
    opened: TableSnapshot, columns: Sequence[str] | str | None, subject: str
) -> dict[ColumnPath, pa.DataType]:
    """Returns the columns that `measure_table` measures, and their types. Arguments and errors are the same."""
    snapshot = opened.snapshot
    layout = TableLayout.of_version(snapshot)
    measurable = {each.path: each.type for each in layout.tracked}
    folders = arrow_schema(layout.partition_json)
    measurable |= {(name,): canonical_type(folders.field(name).type) for name in folders.names}
    if columns is not None:
        wanted = _named(columns, measurable, subject)
    else:
        wanted = layout.keys or tuple(each.path for each in layout.tracked if len(each.path) == 1)
    if not wanted:
        raise ConfigError(["columns: the list is empty; " + _choice(measurable)], subject)
    return {path: measurable[path] for path in wanted}


def _named(
    columns: Sequence[str] | str, measurable: dict[ColumnPath, pa.DataType], subject: str
) -> tuple[ColumnPath, ...]:
    problems: list[str] = []
    found = []
    for path in parse_column_list("columns", columns, problems):
        folded = folded_path(path)
        alike = [path] if path in measurable else [each for each in measurable if folded_path(each) == folded]
        if len(alike) == 1:
            found.append(alike[0])
        else:
            problems.append(f"columns: '{format_column_path(path)}' has no statistics; {_choice(measurable)}")
    if problems:
        raise ConfigError(problems, subject)
    return tuple(dict.fromkeys(found))


def _choice(measurable: dict[ColumnPath, pa.DataType]) -> str:
    names = [format_column_path(path) for path in measurable]
    if not names:
        return "no column has statistics: list columns in stats_columns and build the table, or refresh its index"
    more = f" … and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"choose among {', '.join(names[:_MOST_NAMES])}{more}, or list the column in stats_columns"


def live_files(opened: TableSnapshot) -> pa.Table:
    """Returns the files that hold the rows of a version. See ``ZTable.files``."""
    files = base_files(opened.files)
    root = unquote(opened.store.root_uri).rstrip("/").removeprefix("file://")
    # Only Hadoop knows `s3a`.
    root = f"s3://{root.removeprefix('s3a://')}" if root.startswith("s3a://") else root
    paths = files["path"].combine_chunks()
    columns = {
        "path": pc.binary_join_element_wise(root, paths, "/") if len(paths) else paths,
        "size_bytes": files["size_bytes"],
        "row_count": files["row_count"],
    }
    if names := list(opened.partition_columns):
        values = [pa.array(files.partition_values(name)) for name in names]
        columns["partition"] = pa.StructArray.from_arrays(values, names=names)
    return pa.table(columns)
