"""What a layout report says of one table: its verdict and the figures of its pictures, from log, index and folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.workload import WeightedCondition
from dbt.adapters.zlayout.errors import ConfigError, CorruptError, ZlayoutError
from dbt.adapters.zlayout.layout.clustering_measures import ClusteringMeasures
from dbt.adapters.zlayout.layout.file_map import FileMap, file_map
from dbt.adapters.zlayout.layout.table_verdict import TableFigures, TableVerdict, verdict_of
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags
from dbt.adapters.zlayout.spark.catalog.session_catalog import TableRef
from dbt.adapters.zlayout.spark.commit.after_commit import unfinished_work
from dbt.adapters.zlayout.spark.files.existing_files import listed_files
from dbt.adapters.zlayout.spark.index.lacking_indexes import lacking_parts
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.spark.merge_on_read.compaction import merging_information, pending_plans
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.table.explanation import explain
from dbt.adapters.zlayout.table.measures import measure_keys, measure_table, measured_columns
from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.file_slices import log_files
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot, replay, row_count
from dbt.adapters.zlayout.timeline.retention.orphans import StorageUse, storage_use
from dbt.adapters.zlayout.timeline.retention.past import last_known_clean
from dbt.adapters.zlayout.timeline.timeline import Timeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_VERSIONS = 100
_MOST_COLUMNS = 4
_MOST_PREDICATES = 40


@dataclass(frozen=True)
class VersionFigures:
    """One version of a table.

    Attributes:
        committed_ms: When it was committed, milliseconds since the epoch.
        operation: What the user asked for.
        rows: Rows of the version.
        size_bytes: Size of its files.
        readable: Whether it is retained.
    """

    version: int
    committed_ms: int
    operation: str
    rows: int
    size_bytes: int
    files: int
    files_added: int
    files_removed: int
    log_records: int
    readable: bool


@dataclass(frozen=True, eq=False)
class ReportedCondition:
    """A condition of the workload, and which files it reads.

    Attributes:
        condition: The condition.
        read: bool[n], whether each file of the table is read.
        problem: Why it could not be explained; then ``read`` is all True.
    """

    condition: WeightedCondition
    read: Flags
    problem: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class TableReport(TableFigures):
    """What a layout report says of one table, with the figures of its verdict.

    Attributes:
        location: The folder.
        curve: The curve; None without keys.
        table_type: 'managed' or 'indexed', and whether it merges on read.
        storage: What the files in the folder are for.
        versions: The last versions, oldest first.
        layout: The layout for the keys, or for some columns without keys; None without statistics.
        before: The layout before the last clustering; None if there was none, or its version is no longer known.
        clustered: The version that the last clustering made.
        after: The layout right after it.
        map: The layout map; None without statistics or files.
        logs: Figures about the logs of a merge-on-read table, as in ``information()``; else empty.
        reads: What conditions read.
        problems: Problems of the index.
    """

    location: str
    version: int
    size_bytes: int
    curve: str | None
    partition_by: tuple[str, ...]
    table_type: str
    verdict: TableVerdict
    storage: StorageUse
    versions: tuple[VersionFigures, ...]
    layout: ClusteringMeasures | None
    before: ClusteringMeasures | None
    clustered: int | None
    after: ClusteringMeasures | None
    map: FileMap | None
    logs: Mapping[str, Any]
    reads: tuple[ReportedCondition, ...]
    problems: tuple[str, ...]


def layout_report(
    spark: SparkSession | None,
    name: TableRef,
    opened: TableSnapshot,
    conditions: Sequence[WeightedCondition] = (),
    most_files: int = 1000,
) -> TableReport:
    """Collects what a report says of a table. Without conditions, nothing runs in Spark.

    Raises:
        CorruptError: The newest version cannot be read.
    """
    snapshot, timeline = opened.snapshot, opened.timeline
    zorder = config_of(snapshot).clustering.names
    logs = merging_information(opened) if opened.merges_on_read else {}
    storage = storage_use(timeline, opened.managed)
    pending = pending_plans(opened)
    figures = TableFigures(
        name=str(name),
        managed=opened.managed,
        files=len(snapshot.files),
        rows=row_count(snapshot),
        zorder=zorder,
        merges_on_read=opened.merges_on_read,
        missing_files=storage.missing_files,
        foreign_files=storage.foreign_files,
        orphan_files=storage.orphan_files,
        index_gaps=_without_index(opened),
        log_records=logs.get("log_records", 0),
        log_files=logs.get("log_files", 0),
        pending_clusterings=len(pending["clustering"]),
        pending_compactions=len(pending["compaction"]),
        lacking=tuple(lacking_parts(opened)),
        unfinished=tuple(unfinished_work(opened)),
    )
    layout = measure_keys(opened, str(name))
    versions, problems = _versions(timeline)
    clustered = next((each for each in reversed(versions) if each.operation == Operation.CLUSTERING), None)
    kept = clustered is not None and clustered.version > 0
    return TableReport(
        **vars(figures),
        location=opened.location,
        version=snapshot.version,
        size_bytes=snapshot.files.total_bytes,
        curve=snapshot.layout.get("curve") if zorder else None,
        partition_by=tuple(snapshot.partition_by),
        table_type=("managed" if opened.managed else "indexed") + (", merge on read" if opened.merges_on_read else ""),
        verdict=verdict_of(figures, layout),
        storage=storage,
        versions=versions,
        layout=layout,
        before=_measured_at(opened, clustered.version - 1, zorder) if kept and clustered else None,
        clustered=clustered.version if clustered else None,
        after=_measured_at(opened, clustered.version, zorder) if kept and clustered else None,
        map=_map(opened, str(name), zorder, most_files),
        logs=logs,
        reads=tuple(_reads(spark, name, opened, each) for each in conditions[:_MOST_PREDICATES] if spark is not None),
        problems=(*opened.index.problems, *problems),
    )


def _versions(timeline: Timeline) -> tuple[tuple[VersionFigures, ...], tuple[str, ...]]:
    """Returns the last versions, and why there are none: readers of the newest version do not need old log entries."""
    try:
        return _version_figures(timeline), ()
    except CorruptError as error:
        return (), (f"the versions cannot be listed: {error}",)


def _version_figures(timeline: Timeline) -> tuple[VersionFigures, ...]:
    newest = timeline.snapshot().version
    first = max(0, newest - _MOST_VERSIONS + 1)
    oldest = last_known_clean(timeline.store).oldest_version
    before = timeline.snapshot(first - 1) if first else None
    found = []
    for commit in timeline.entries(first, newest):
        before = replay(before, [commit])
        found.append(_figures(before, commit, before.version >= oldest))
    return tuple(found)


def _figures(after: Snapshot, commit: Commit, readable: bool) -> VersionFigures:
    files = after.files
    return VersionFigures(
        version=commit.version,
        committed_ms=commit.committed_ms,
        operation=commit.operation,
        rows=row_count(after),
        size_bytes=files.total_bytes,
        files=len(files),
        files_added=len(commit.adds),
        files_removed=len(set(commit.removes)),
        log_records=log_files(files).total_rows,
        readable=readable,
    )


def _without_index(opened: TableSnapshot) -> int:
    """Returns how many files have no row in the index that fits them.

    In the folder of a table that others write, every file counts. Unlike ``information()``, this reads no footers,
    because a report may cover many tables.
    """
    files = opened.snapshot.files if opened.managed else listed_files(opened.store, opened.partition_columns)

    def identities(files: pa.Table) -> pa.Array:
        columns = [contiguous(files.column(name)) for name in ("path", "size_bytes")]
        return pc.binary_join_element_wise(columns[0], columns[1].cast(pa.string()), ":")

    known = pc.is_in(identities(files.arrow), value_set=identities(opened.index.rows()))
    return len(known) - int(pc.sum(known, min_count=0).as_py())


def _measured_at(opened: TableSnapshot, version: int, zorder: Sequence[str]) -> ClusteringMeasures | None:
    """Returns the layout of an earlier version for the keys of today; None if its index is no longer complete."""
    with suppress(ZlayoutError):
        past = opened.at_snapshot(opened.timeline.snapshot(version))
        found = measure_table(past, list(zorder) or None, "the version before")
        return None if past.index.problems else found
    return None


def _map(opened: TableSnapshot, subject: str, zorder: Sequence[str], most_files: int) -> FileMap | None:
    try:
        types = measured_columns(opened, list(zorder) or None, subject)
        if opened.partition_columns:
            types |= measured_columns(opened, list(opened.partition_columns), subject)
    except ConfigError:
        return None
    types = dict(list(types.items())[:_MOST_COLUMNS])
    if not opened.files.total_rows:
        return None
    statistics = opened.statistics.statistics(opened.files, list(types))
    return file_map(opened.files, statistics, types, most_files)


def _reads(
    spark: SparkSession, name: TableRef, opened: TableSnapshot, condition: WeightedCondition
) -> ReportedCondition:
    try:
        explanation = explain(spark, name, opened, condition.sql)
    except Exception as error:  # of one condition; the others are still shown
        return ReportedCondition(condition, opened.all_files(), short_message(error))
    return ReportedCondition(condition, np.asarray(explanation.read))
