"""Brings the index of a table up to date with its live files, and publishes the result to Spark.

The commit of the index is an action on the timeline that gives way to every write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.table_config import OptionalIndexes, StatisticsConfig, TableConfig
from dbt.adapters.zlayout.config.table_type import INSTANT, SEQ
from dbt.adapters.zlayout.errors import ConflictError, TableNotFoundError
from dbt.adapters.zlayout.index.gaps import Gaps, gaps_of, news_in
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.publish.spark_manifest import catch_up
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName, TableRef
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.commit.commit_files import IndexUpdate, Renewed
from dbt.adapters.zlayout.spark.commit.optional_slices import NOTHING_OPTIONAL, NewOptional
from dbt.adapters.zlayout.spark.commit.publish import publish_to_others
from dbt.adapters.zlayout.spark.files.existing_files import listed_files, wait_a_tick
from dbt.adapters.zlayout.spark.index.adopt import adopt_table
from dbt.adapters.zlayout.spark.index.collected_statistics import Collected, Examine, collect, examining
from dbt.adapters.zlayout.spark.index.lacking_indexes import lacks_expressions, lacks_values
from dbt.adapters.zlayout.spark.index.optional_indexes import build_index, optional_pieces
from dbt.adapters.zlayout.spark.index.outside_changes import drop_missing, missing_files, take_orphans
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, check_not_cancelled
from dbt.adapters.zlayout.spark.read.record_tables import table_entry
from dbt.adapters.zlayout.spark.read.relations import install, uninstall
from dbt.adapters.zlayout.spark.read.session import open_entry
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of, tell_of_dropped
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.table_file import ManagementLevel, read_table_file
from dbt.adapters.zlayout.timeline.log.entry import IndexSlices
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.recovery import recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction, retried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TRIES = 5
_ROUNDS = 3


def refresh_table(
    spark: SparkSession,
    name: TableRef,
    opened: TableSnapshot,
    *,
    orphans: bool,
    missing: bool,
    progress: Progress | None,
) -> tuple[TableSnapshot, Refreshed]:
    """Brings the index of a table up to date with its live files.

    Args:
        spark: The session.
        name: The table.
        opened: The table at any version.
        orphans: For a managed table, also append files of other tools in its folder.
        missing: For a managed table, also drop missing files, with their rows.
        progress: Called with a line of text as the work goes on.

    Returns:
        The table at its current version, and a summary of what was done.

    Raises:
        TableNotFoundError: The table is no longer in the catalog.
        UnsupportedError: `orphans` or `missing` is set, and the table is only indexed; or an orphan does not fit the
            table; or a missing file cannot be dropped, because logs of a merge-on-read table depend on it.
        ConflictError: Other writers were in the way several times in a row.
    """
    catalog = Catalog(spark)
    entry = None
    if isinstance(name, TableName):
        entry = table_entry(catalog, name)
        if entry is None:
            raise TableNotFoundError(f"there is no table {name} any more")
        # The table may have become managed since. Its folder then also holds files of older versions.
        opened = open_entry(spark, entry) or opened
    indexed = None if opened.managed else entry
    timeline = opened.timeline
    recover(timeline)
    files_dropped, rows_dropped = drop_missing(spark, name, opened, progress) if missing else (0, 0)
    taken = take_orphans(spark, name, opened, progress) if orphans else 0
    snapshot = timeline.snapshot()
    if indexed is not None and indexed.partition_by != snapshot.partition_by:
        return _index_again(spark, indexed.name, snapshot, progress)
    lost = missing_files(opened.store, snapshot.files) if opened.managed else ()
    done = Refresh(timeline, _goal(spark, opened, indexed, progress), _examine(spark, opened, indexed, progress)).run()
    after = AfterCommit(done.version, progress)
    with after.needed("readers may not see it yet"):
        opened = opened.at_snapshot(timeline.snapshot())
        if indexed is None:
            catch_up(opened.store, timeline)
            publish_to_others(opened, after)
            if entry is not None:
                install(catalog, entry, opened)
        elif done.version != snapshot.version:
            uninstall(catalog, indexed.name)
    if indexed is None and not lost and (lacks_values(opened) or lacks_expressions(spark, opened)):
        opened, built = build_index(spark, name, (), (), (), progress)
        done = replace(done, version=built.version, filters_rebuilt=built.files_read)
    done = replace(done, files_added=done.files_added + taken, missing=lost)
    return opened, replace(done, files_dropped=files_dropped, rows_dropped=rows_dropped)


def _goal(spark: SparkSession, opened: TableSnapshot, indexed: Entry | None, progress: Progress | None) -> Goal:
    if indexed is None:
        return Goal(lambda snapshot: TableLayout.of_version(snapshot).tracked)
    return Goal(
        tracked=lambda snapshot: _layout_of(snapshot, indexed).tracked,
        listed=partial(listed_files, opened.store, indexed.partition_by),
        schema_json=indexed.schema_json,
        optional=partial(_optional, spark, opened.store, indexed, progress),
    )


def _optional(
    spark: SparkSession,
    store: Store,
    indexed: Entry,
    progress: Progress | None,
    snapshot: Snapshot,
    instant: str,
    files: DataFiles,
) -> NewOptional:
    layout = _layout_of(snapshot, indexed)
    return NewOptional.of(optional_pieces(spark, store, instant, files, files, layout, progress), files)


def _layout_of(snapshot: Snapshot, indexed: Entry) -> TableLayout:
    return TableLayout.bound(config_of(snapshot), indexed.schema_json, indexed.partition_by)


def _examine(spark: SparkSession, opened: TableSnapshot, indexed: Entry | None, progress: Progress | None) -> Examine:
    schema_json = opened.schema_json if indexed is None else indexed.schema_json
    return examining(spark, opened.store, schema_json, opened.partition_columns, progress)


def _index_again(
    spark: SparkSession, name: TableName, before: Snapshot, progress: Progress | None
) -> tuple[TableSnapshot, Refreshed]:
    """Indexes a table again that was recreated with other partitions. No part of the old index fits its files.

    Keys and optional indexes are not kept, and the user hears of it.
    """
    had = config_of(before)
    tell_of_dropped(progress, had.indexes, OptionalIndexes())
    if progress is not None and had.clustering.columns:
        keys = ", ".join(map(".".join, had.clustering.columns))
        progress(f"its clustering keys ({keys}) are dropped, because its partition columns changed; adopt it again")
    wanted = had.statistics
    # Columns that the settings name may no longer exist.
    config = TableConfig(statistics=wanted if isinstance(wanted.columns, int) else StatisticsConfig())
    opened, done = adopt_table(spark, name, config, managed=False)
    return opened, Refreshed(done.version, files_added=done.files_added, files_removed=len(before.files))


@dataclass(frozen=True)
class Goal:
    """What an index should describe.

    Attributes:
        tracked: Returns the columns with statistics of a version.
        listed: Lists the files of the folder, for an indexed table. None for a managed table: its log lists them.
        schema_json: Columns of an indexed table. None for a managed table, whose log holds them.
        optional: Makes the optional parts of the index of an indexed table's new files, given the version, the instant
            of the commit and the files. None for a managed table: `build_index` makes them.
    """

    tracked: Callable[[Snapshot], tuple[TrackedColumn, ...]]
    listed: Callable[[], DataFiles] | None = None
    schema_json: str | None = None
    optional: Callable[[Snapshot, str, DataFiles], NewOptional] | None = None


@dataclass(frozen=True)
class Refreshed:
    """Summary of a refresh.

    Attributes:
        version: Current version of the table.
        files_added: Number of files that the index did not list.
        files_removed: Number of files that it listed but that are gone.
        files_changed: Number of files whose size or time differs.
        files_rebuilt: Number of other files whose statistics were missing, damaged or incomplete.
        data_files: Number of files whose data was read, not only the footer.
        repaired: Whether index slices were damaged or missing, so that all were rewritten.
        unreadable: Files that are not Parquet files or could not be read. Queries always read them.
        missing: Files that a managed table lists but that are gone from its folder. Queries that need them fail.
        files_dropped: Number of missing files that were dropped from the table.
        rows_dropped: Number of rows in them.
        filters_rebuilt: Number of files that lacked Bloom filters or lookup entries and were read for them.
        indexed_again: Whether another tool had overwritten the folder with the index, and a new one was made. It has
            the settings that were given. The table is no longer managed.
    """

    version: int
    files_added: int = 0
    files_removed: int = 0
    files_changed: int = 0
    files_rebuilt: int = 0
    data_files: int = 0
    repaired: bool = False
    unreadable: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    files_dropped: int = 0
    rows_dropped: int = 0
    filters_rebuilt: int = 0
    indexed_again: bool = False


@dataclass(frozen=True)
class _Work:
    """What a refresh has to do on top of one version."""

    snapshot: Snapshot
    added: DataFiles
    changed: DataFiles
    removed: tuple[str, ...]
    gaps: Gaps
    schema_json: str | None

    @property
    def is_none(self) -> bool:
        nothing_new = not (len(self.added) or len(self.changed) or self.removed)
        return nothing_new and self.gaps.is_none and self.schema_json is None

    @property
    def new_paths(self) -> pa.Array:
        return _paths(self.added.plus(self.changed))

    @property
    def outdated(self) -> tuple[str, ...]:
        """Paths of the files that have changed or are gone since the version listed them."""
        return (*self.removed, *self.changed["path"].to_pylist())

    @property
    def to_read(self) -> DataFiles:
        old = self.snapshot.files.minus(self.outdated)
        return self.added.plus(self.changed).plus(old.filter(pc.is_in(old["path"], value_set=self.gaps.paths)))

    @property
    def known(self) -> pa.Table:
        """The index's statistics of unchanged files."""
        stored = self.gaps.known
        return stored.filter(pc.invert(pc.is_in(stored.column("path"), value_set=pa.array(self.outdated, pa.string()))))


@dataclass(frozen=True)
class Refresh:
    """One refresh of one table's index.

    Attributes:
        timeline: The table's timeline.
        goal: What the index should describe.
        examine: Reads data if the footers are not enough.
    """

    timeline: Timeline
    goal: Goal
    examine: Examine

    def run(self) -> Refreshed:
        """Refreshes the index. If there is nothing to do, it commits no version.

        Raises:
            ConflictError: Other writers were in the way several times in a row.
        """
        return retried(self._once, _TRIES)

    def _once(self) -> Refreshed:
        work = self._work(self.timeline.snapshot())
        if work.is_none:
            return Refreshed(work.snapshot.version)
        with Transaction.begin(self.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
            self._check_not_taken_over()
            work, collected = self._caught_up()
            unchanged = collected.only(self._is_unchanged(collected.files))
            is_new = pc.is_in(unchanged.files["path"], value_set=work.new_paths)
            fresh, renewed = unchanged.only(is_new), unchanged.only(pc.invert(is_new))
            news = renewed.column_stats.filter(news_in(renewed.column_stats, work.known)).column("path")
            renewed = renewed.only(pc.is_in(renewed.files["path"], value_set=contiguous(news)))
            done = Refreshed(
                version=work.snapshot.version,
                files_added=len(work.added.filter(pc.is_in(work.added["path"], value_set=_paths(fresh.files)))),
                files_removed=len(work.removed),
                files_changed=len(work.changed),
                files_rebuilt=len(renewed.files),
                data_files=collected.data_files,
                repaired=work.gaps.damaged,
                unreadable=collected.unreadable,
            )
            rebuilds = len(renewed.files) > 0 or work.gaps.damaged
            if not (len(fresh.files) or work.outdated or rebuilds or work.schema_json):
                return done
            update = IndexUpdate(
                store=self.timeline.store,
                instant=transaction.instant,
                adds=fresh.files,
                column_stats=fresh.column_stats,
                removes=work.outdated,
                renewed=Renewed(renewed.files, renewed.column_stats) if rebuilds else None,
                optional=self._optional(work.snapshot, transaction.instant, fresh.files),
            )
            summary = {
                "rows": fresh.files.total_rows,
                "files_added": len(fresh.files),
                "files_removed": len(work.outdated),
                "files_rebuilt": len(renewed.files),
                "bytes_added": 0,
            }
            change = Change(fresh.files, work.outdated, schema_json=work.schema_json, summary=summary)
            check_not_cancelled()
            commit = transaction.commit(change, index=partial(self._index, work.snapshot.version, update))
            update.optional.forget_staged(self.timeline.store)
        return replace(done, version=commit.version)

    def _optional(self, snapshot: Snapshot, instant: str, files: DataFiles) -> NewOptional:
        return NOTHING_OPTIONAL if self.goal.optional is None else self.goal.optional(snapshot, instant, files)

    def _check_not_taken_over(self) -> None:
        table_file = None if self.goal.listed is None else read_table_file(self.timeline.store)
        if table_file is not None and table_file.level is ManagementLevel.MANAGED:
            raise ConflictError(f"{table_file.name} became a managed table in the meantime; open it again")

    def _index(self, planned_on: int, update: IndexUpdate, head: Snapshot | None) -> IndexSlices:
        # Another session may refresh too, or adopt the table. The folder must then be listed again.
        self._check_not_taken_over()
        if self.goal.listed is not None and head is not None and head.version != planned_on:
            raise ConflictError("another session refreshed the index at the same time; run it again")
        return update(head)

    def _caught_up(self) -> tuple[_Work, Collected]:
        """Returns the work on top of the newest version, and the statistics collected for it."""
        work = self._work(self.timeline.snapshot())
        collected = self._collected(work, work.to_read)
        for _ in range(_ROUNDS):
            if self.timeline.latest_version() == work.snapshot.version:
                break
            # The commit could follow the newer versions as it is, but their files should not wait for the next refresh.
            work = self._work(self.timeline.snapshot())
            wanted = work.to_read
            more = self._collected(work, wanted.filter(pc.invert(wanted.same_as(collected.files))))
            collected = collected.plus(more).only(collected.files.plus(more.files).same_as(wanted))
        return work, collected

    def _collected(self, work: _Work, files: DataFiles) -> Collected:
        if self.goal.listed is not None:
            wait_a_tick(self.timeline.store, files)
        return collect(self.timeline.store, files, self.goal.tracked(work.snapshot), self.examine, work.known)

    def _is_unchanged(self, files: DataFiles) -> pa.Array:
        """Returns a mask that is True for files that have not changed since before they were read."""
        if self.goal.listed is None or not len(files):
            return pa.repeat(True, len(files))
        return files.same_as(self.goal.listed())

    def _work(self, snapshot: Snapshot) -> _Work:
        # Earlier releases had no statistics of these. Without them a merged log only seems younger, or to delete less.
        tracked = tuple(each for each in self.goal.tracked(snapshot) if each.path not in ((INSTANT,), (SEQ,)))
        gaps = gaps_of(self.timeline.store, snapshot, tracked)
        files = snapshot.files
        if self.goal.listed is None:
            return _Work(snapshot, files[:0], files[:0], (), gaps, None)
        listed = self.goal.listed()
        is_new = pc.invert(pc.is_in(listed["path"], value_set=_paths(files)))
        is_other = pc.invert(pc.or_(is_new, listed.same_as(files)))
        gone = pc.invert(pc.is_in(files["path"], value_set=_paths(listed)))
        return _Work(
            snapshot=snapshot,
            added=listed.filter(is_new),
            changed=listed.filter(is_other),
            removed=tuple(files.filter(gone)["path"].to_pylist()),
            gaps=gaps,
            schema_json=self.goal.schema_json if self.goal.schema_json != snapshot.schema_json else None,
        )


def _paths(files: DataFiles) -> pa.Array:
    return contiguous(files["path"])
