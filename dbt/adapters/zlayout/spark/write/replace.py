"""Creates a table from a query, or replaces all of it, in one commit.

A table is also rewritten when its files do not fit new columns or partitions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions
from pyspark.sql.types import StructType

from dbt.adapters.zlayout.config.table_config import OptionalIndexes, PartitioningConfig, PublishingConfig, TableConfig
from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ, TOMBSTONE
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.errors import ConfigError, ConflictError
from dbt.adapters.zlayout.predicate.expr import EXPRESSION
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.catalog.schema_evolution import cast_to
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName, session_zone
from dbt.adapters.zlayout.spark.commit.after_commit import AGAIN, AfterCommit, CommitSummary
from dbt.adapters.zlayout.spark.commit.commit_files import NewFiles, commit_files, drift_of, stored_drift
from dbt.adapters.zlayout.spark.commit.expression_stats import check_expressions
from dbt.adapters.zlayout.spark.commit.publish import Description, leave_catalogs, publish
from dbt.adapters.zlayout.spark.files.existing_files import GLOB
from dbt.adapters.zlayout.spark.files.file_report import FileReport
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, failing_as_write_error, timed
from dbt.adapters.zlayout.spark.read.query_inputs import versions_by_name
from dbt.adapters.zlayout.spark.read.record_tables import (
    check_names_are_free,
    queried,
    record_view,
    rows_of,
    table_entry,
)
from dbt.adapters.zlayout.spark.read.relations import frame_of
from dbt.adapters.zlayout.spark.rewrite.arrow_rows import Written
from dbt.adapters.zlayout.spark.rewrite.build import written_files
from dbt.adapters.zlayout.spark.rewrite.file_writer import FileWriter, check_whole, plain_frame
from dbt.adapters.zlayout.spark.rewrite.log_writer import log_build
from dbt.adapters.zlayout.spark.schema.table_schema import (
    DELETED,
    GROUP,
    check_catalog_takes,
    check_names_differ,
    described,
    new_group_of,
    with_log_columns,
)
from dbt.adapters.zlayout.spark.schema.types import raw_fields
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of, filterable_columns, tell_of_dropped
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.write.incoming_rows import (
    ChangeFeed,
    IncomingRows,
    check_unique,
    columns_read,
    known_keys,
    precombined,
    upserts_of,
    with_deletes,
)
from dbt.adapters.zlayout.spark.write.table_place import Place, forget_old_place, place_for_writing
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.instant import hours_before
from dbt.adapters.zlayout.timeline.log.file_slices import is_kept_deletes, is_log
from dbt.adapters.zlayout.timeline.log.positions import ChangesTaken, positions_of, with_positions
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot, batches_of, row_count, with_more_rows
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.last_row_change import REPARTITIONED, origin_summary, row_change_after
from dbt.adapters.zlayout.timeline.transactions.recovery import recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction
from dbt.adapters.zlayout.timeline.transactions.writer_priority import yield_to_writers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DRIFT_LIMIT = 3.0


@dataclass(frozen=True)
class Replacement:
    """A request to create or replace a table.

    Attributes:
        frame: The table's rows. Their query has not run yet.
        config: Settings of the table.
        not_null: Top-level columns that must not hold nulls.
        feed: Which of the rows are deletes. None if no row is one.
        of_version: The version whose rows the frame reads. Any later commit of another writer is a conflict. None if
            the query alone defines the table.
        yields_to_writers: Whether the write gives way, at the end, to a change of rows that is in progress.
        made_from: What the rows were made from, for the history.
        changes_taken: The tables whose rows the query reads as changes. The version stores the positions.
        repartitions: Whether the frame has the rows of `of_version` as they are, for other folders.
        deletes_of: The table whose ordered deletes go along with its rows. None if none do.
    """

    name: TableName
    frame: DataFrame
    config: TableConfig
    description: Description = field(default_factory=Description)
    column_comments: Mapping[str, str] = field(default_factory=dict)
    not_null: Sequence[str] = ()
    feed: ChangeFeed | None = None
    progress: Progress | None = None
    of_version: int | None = None
    yields_to_writers: bool = False
    made_from: Mapping[str, Any] | None = None
    changes_taken: Sequence[ChangesTaken] = ()
    repartitions: bool = False
    deletes_of: TableSnapshot | None = None


def replace_table(spark: SparkSession, wanted: Replacement) -> tuple[TableSnapshot, CommitSummary]:
    """Creates or replaces a table.

    Returns:
        The table at its new version, and a summary of what was done.

    Raises:
        ConfigError: The settings do not fit the query's columns. Nothing has run.
        WriteError: The query failed, or a required column holds nulls. The table is unchanged.
        ConflictError: Another writer committed in the meantime.
    """
    return _Replacing(spark, wanted).run()


class _Replacing:
    def __init__(self, spark: SparkSession, wanted: Replacement) -> None:
        self.spark = spark
        self.wanted = wanted
        self.catalog = Catalog(spark)
        check_names_differ(wanted.frame.columns, spark, str(wanted.name))
        check_catalog_takes(wanted.frame, spark, str(wanted.name), wanted.config.partitioning.columns)
        self.frame = wanted.frame if wanted.feed is None else self._flagged(wanted.feed)
        frame_json = described(str(upserts_of(self.frame).schema.json()), wanted.column_comments)
        self.layout = TableLayout.of(wanted.config, frame_json, str(wanted.name))
        self.phases: dict[str, float] = {}

    def run(self) -> tuple[TableSnapshot, CommitSummary]:
        started = time.perf_counter()
        layout, name = self.layout, self.wanted.name
        entry = table_entry(self.catalog, name)
        if entry is not None and entry.kind == "VIEW":
            raise ConfigError([f"{name} is a view; drop it before a table takes its name"])
        place = place_for_writing(self.catalog, name, entry, layout.config.writing.location_root)
        timeline, table_id = place.timeline, place.table_file.table_id
        self._tell_of_another_place(entry, place)
        if layout.config.table_type.merges_on_read:
            check_names_are_free(self.catalog, name, (table_id, entry.table_id if entry else None))
        store = timeline.store
        recover(timeline)
        before = timeline.newest()
        if before is not None:
            layout = self.layout = self._layout_after(before)
            tell_of_dropped(self.wanted.progress, config_of(before).indexes, layout.config.indexes)
        check_expressions(self.spark, self.wanted.config.indexes, layout, str(name))
        action = Action.COMMIT if before is None else Action.REPLACECOMMIT
        keys = layout.config.table_type.unique_key if layout.config.table_type.merges_on_read else ()
        cuts, layout = self._cuts(store, before)
        self.layout = layout
        writer = FileWriter(self.spark, str(name), layout, self.wanted.not_null, self.wanted.progress, keys)
        with Transaction.begin(timeline, action, Operation.OVERWRITE) as transaction:
            self._check_base(transaction, place)
            before, frame = transaction.base, self._decided()
            written = writer.write(store, transaction, upserts_of(frame), cuts=cuts)
            reports = (*written.files, *self._kept_deletes(frame, store, transaction))
            if keys and layout.config.table_type.ordering is None and self.wanted.feed is None:
                # Otherwise, the keys are unique already.
                check_unique(self._written_keys(place.location, written), keys, str(name))
            with timed(self.phases, "commit"):
                new = NewFiles.of(self.spark, store, transaction.instant, reports, layout)
                summary = self._summary(written, new.files, before, new.overlap_depth(layout.keys))
                change = Change(
                    adds=new.files,
                    schema_json=layout.schema_json,
                    partition_by=layout.partition_by,
                    layout=lambda head: self._layout_after(head).to_dict(
                        drift_of(written.files, layout.config.file_sizing.target_file_bytes),
                        layout.build_of(transaction.instant),
                    ),
                    properties=self._properties(before, summary["rows"] if len(reports) > len(written.files) else None),
                    summary=summary,
                )
                if self.wanted.yields_to_writers:
                    yield_to_writers(timeline, Operation.CLUSTERING.value, transaction.instant)
                commit = commit_files(
                    store, transaction, change, new.column_stats, curve=written.model, optional=new.optional
                )
        after = AfterCommit(commit.version, self.wanted.progress, AGAIN)
        with timed(self.phases, "publish"):
            opened = self._publish(place, entry, new.column_stats, after)
        self.phases["total"] = round(time.perf_counter() - started, 3)
        return opened, CommitSummary(
            version=commit.version,
            instant=commit.instant,
            operation="create" if before is None else "replace",
            rows=summary["rows"],
            rows_inserted=summary["rows"],
            rows_deleted=row_count(before) if before is not None else 0,
            files_added=len(commit.adds),
            files_removed=len(commit.removes),
            files_total=len(before.files) if before is not None else 0,
            bytes_added=commit.adds.total_bytes,
            bytes_removed=before.files.total_bytes if before is not None else 0,
            data_passes=written.data_passes,
            overlap_depth=summary["overlap_depth"],
            phases={**written.phases, **self.phases},
            unfinished=after.unfinished,
        )

    def _publish(self, place: Place, entry: Entry | None, column_stats: pa.Table, after: AfterCommit) -> TableSnapshot:
        """Publishes the new version, and removes what it has replaced."""
        table_id, timeline = place.table_file.table_id, place.timeline
        with after.needed("readers may not see it yet"):
            snapshot = timeline.snapshot(after.version)
            opened = TableSnapshot.at(timeline, place.table_file, place.location, snapshot, session_zone(self.spark))
            if entry is not None and entry.location is not None and entry.table_id not in (None, table_id):
                # The new folder is another table to a catalog, which has one entry for both.
                leave_catalogs(entry.location)
            publish(
                self.catalog, self.wanted.name, entry, opened, self.wanted.description, after, column_stats=column_stats
            )
        if place.set_aside is None:
            with after.useful("the previous folder of the table was not deleted"):
                forget_old_place(entry, table_id)
        after.clean(opened)
        return opened

    def _layout_after(self, before: Snapshot | None) -> TableLayout:
        """Returns the layout. What the settings leave open comes from the version."""
        if before is None:
            return self.layout
        usable = filterable_columns(self.layout.schema_json, self.layout.partition_by)
        config = self.wanted.config.after(config_of(before), usable)
        return TableLayout.of(config, self.layout.schema_json, str(self.wanted.name))

    def _tell_of_another_place(self, entry: Entry | None, place: Place) -> None:
        """Tells the user if the table is rebuilt in a different folder."""
        if self.wanted.progress is None:
            return
        old, new = entry.location if entry is not None else "its place", place.location
        if place.set_aside is not None:
            self.wanted.progress(
                f"the table's metadata is damaged ({place.set_aside}); it is rebuilt at {new}, and the files at {old} "
                "stay there"
            )
        elif entry is not None and entry.table_id not in (None, place.table_file.table_id):
            self.wanted.progress(
                f"the table is rebuilt at {new}; its folder {old} is deleted afterwards unless other tools write it"
            )

    def _check_base(self, transaction: Transaction, place: Place) -> None:
        """Checks that the frame has the rows of the version that it replaces, if it reads the table at all."""
        version = transaction.base.version if transaction.base is not None else None
        if self.wanted.of_version not in (None, version):
            raise ConflictError(
                f"{self.wanted.name}: another writer committed just now; nothing was rewritten; run it again"
            )
        if version is None:
            return
        for read in versions_by_name(self.wanted.frame, place.location):
            if row_change_after(place.timeline.headers(), read) is not None:
                raise ConflictError(
                    f"{self.wanted.name}: the query reads this table at version {read}, and another writer has changed "
                    "its rows since; make the query anew and run it again"
                )

    def _flagged(self, feed: ChangeFeed) -> DataFrame:
        """Returns the rows of the change feed, in the table's columns and `DELETED`."""
        wanted, config = self.wanted, self.wanted.config
        paths = [*config.clustering.columns]
        if not isinstance(config.statistics.columns, int):
            paths += config.statistics.columns
        paths += [path for _, columns in config.indexes.column_sets for path in columns if path[0] != EXPRESSION]
        ordering = config.table_type.ordering
        stored = [*feed.stored_columns, *feed.unique_key, *wanted.not_null, *wanted.column_comments]
        stored += [*config.partitioning.columns, *(path[0] for path in paths), *([ordering] if ordering else [])]
        for text in config.indexes.expressions:
            with suppress(AnalysisException, ParseException):  # the settings are checked later
                stored += columns_read(wanted.frame, text)
        names = {name.lower() for name in stored}
        return with_deletes(wanted.frame, feed.deleted_when, names, str(wanted.name), wanted.progress)

    def _decided(self) -> DataFrame:
        """Returns one row per key if there is an ordering column.

        A change feed is materialized because it is read twice.
        """
        subject, table_type, feed = str(self.wanted.name), self.layout.config.table_type, self.wanted.feed
        frame = precombined(self.frame, table_type) if table_type.merges_on_read else self.frame
        if feed is None:
            return frame
        with failing_as_write_error(subject):
            source = IncomingRows(frame, known_keys(feed.unique_key, frame.columns, subject))
        if table_type.merges_on_read:
            check_whole(source.nulls, subject)
        if table_type.ordering is None:
            source.check_unique(subject)
        return source.frame

    def _kept_deletes(self, frame: DataFrame, store: Store, transaction: Transaction) -> tuple[FileReport, ...]:
        """Writes the kept deletes, so that older rows that come later stay out."""
        layout, table_type, opened = self.layout, self.layout.config.table_type, self.wanted.deletes_of
        if table_type.ordering is None or not table_type.retain_deletes_hours:
            return ()
        deletes = None
        if opened is not None:
            deletes = self._deletes_of(opened, table_type.ordering, transaction.instant)
        elif self.wanted.feed is not None:
            deletes = self._deletes_in(frame, table_type.ordering)
        if deletes is None:
            return ()
        own = (OP,) if opened is None else (OP, INSTANT, SEQ)
        part = f"to_json(struct({', '.join(map(backquoted, layout.partition_by))}))" if layout.partition_by else "''"
        deletes = deletes.withColumn(GROUP, functions.expr(new_group_of(part)))
        plain = plain_frame(layout, deletes, *own, GROUP).coalesce(1)
        build = replace(
            log_build(self.spark, str(self.wanted.name), layout, store, transaction),
            keeps_instants=INSTANT in own,
            keeps_deletes=True,
        )
        with failing_as_write_error(str(self.wanted.name)):
            return written_files(self.spark, "write", self.wanted.progress, plain, build.__call__)

    def _deletes_in(self, frame: DataFrame, ordering: str) -> DataFrame:
        """Returns the ordered deletes among the rows of a change feed."""
        stored = {*self.layout.config.table_type.unique_key, *self.layout.partition_by, ordering}
        columns = [
            (
                functions.col(backquoted(each.name)) if each.name in stored else functions.lit(None).cast(each.dataType)
            ).alias(each.name)
            for each in upserts_of(frame).schema
        ]
        deletes = frame.where(f"{DELETED} and {backquoted(ordering)} is not null")
        return deletes.select(*columns, functions.lit(TOMBSTONE).alias(OP))

    def _deletes_of(self, opened: TableSnapshot, ordering: str, instant: str) -> DataFrame | None:
        """Returns the ordered deletes that a table keeps, apart from those of keys that have a row again."""
        changes = pc.or_(is_log(opened.files), is_kept_deletes(opened.files)).to_numpy(zero_copy_only=False)
        if not changes.any():
            return None
        table_type, view = self.layout.config.table_type, record_view(opened)
        since = hours_before(instant, table_type.retain_deletes_hours)
        files = frame_of(self.catalog, opened, changes)
        deletes = queried(files, lambda name: view.kept_deletes(name, ordering, since))
        keys = list(table_type.unique_key)
        live = rows_of(self.catalog, opened).select(*map(backquoted, keys))
        return cast_to(
            deletes.join(live, keys, "left_anti"), with_log_columns(self.layout.schema_json, self.layout.partition_by)
        )

    def _cuts(self, store: Store, before: Snapshot | None) -> tuple[CurveModel | None, TableLayout]:
        """Returns the previous version's curve if its cuts still fit, and the layout with the queries for new cuts."""
        clustering = self.layout.config.clustering
        stored = self.layout.stored_model(store, before) if clustering.asked is None else None
        if before is None or stored is None or (stored.asked is not None and not clustering.by_workload):
            return None, self.layout
        fits = before.layout.get("sizing") == self.layout.sizing()
        if fits and stored_drift(before.layout) <= _DRIFT_LIMIT:
            return stored, self.layout
        clustering = replace(clustering, asked=stored.asked)
        return None, replace(self.layout, config=replace(self.layout.config, clustering=clustering))

    def _written_keys(self, location: str, written: Written) -> DataFrame:
        """Returns the rows just written, as a scan that reads only the columns that a query selects."""
        schema = StructType.fromJson(json.loads(self.layout.schema_json))
        # Spark takes a path literally: an escape in it would be part of a name.
        root = unquote(location).rstrip("/")
        paths = [f"{root}/{each.file.path}" for each in written.files]
        if not paths:
            return self.spark.createDataFrame([], schema)
        return self.spark.read.schema(schema).option(GLOB, False).option("basePath", root).parquet(*paths)

    def _summary(self, written: Written, adds: DataFiles, before: Snapshot | None, depth: float) -> dict[str, Any]:
        return {
            "rows": sum(each.file.row_count for each in written.files),
            "files_added": len(adds),
            "files_removed": len(before.files) if before is not None else 0,
            "bytes_added": adds.total_bytes,
            "bytes_removed": before.files.total_bytes if before is not None else 0,
            "data_passes": written.data_passes,
            "overlap_depth": depth,
            "seconds": dict(written.phases),
            **({REPARTITIONED: True} if self.wanted.repartitions else {}),
            **origin_summary(self.wanted.made_from),
        }

    def _properties(self, before: Snapshot | None, rows: int | None) -> dict[str, Any]:
        """Returns the properties of the new version. They hold the number of rows if the files do not show it."""
        kept = batches_of(before.properties) if before is not None else {}
        if self.wanted.of_version is not None and before is not None:
            kept = with_positions(kept, positions_of(before.properties))
        else:
            kept = with_positions(kept, {each.source: each.until for each in self.wanted.changes_taken})
        return kept if rows is None else with_more_rows(kept, rows, 0)


def _columns(schema_json: str) -> dict[str, Any]:
    return {each["name"]: each for each in raw_fields(schema_json)}


def rewrite_table(
    spark: SparkSession,
    name: TableName,
    entry: Entry,
    opened: TableSnapshot,
    *,
    schema_json: str,
    partition_by: tuple[str, ...],
    progress: Progress | None = None,
    yields_to_writers: bool = False,
) -> tuple[TableSnapshot, CommitSummary]:
    """Rewrites the existing rows with other columns or another partitioning.

    Args:
        opened: The table, at its newest version.
        schema_json: The future columns, as Spark's JSON.
        partition_by: The future partition columns.
        yields_to_writers: Whether the rewrite gives way to a change of rows that is in progress.

    Returns:
        The table at its new version, and a summary of what was done.

    Raises:
        ConfigError: The table cannot be partitioned this way.
        ConflictError: Another writer committed in the meantime.
        WriteError: Rows could not be read or written. The table is unchanged.
    """
    have = opened.partition_columns
    if progress is not None and partition_by != have:
        then, now = (", ".join(each) or "nothing" for each in (have, partition_by))
        rows = row_count(opened.snapshot)
        progress(f"the partition columns change from {then} to {now}: {counted(rows, 'row')} will be rewritten")
    wanted = Replacement(
        name=name,
        frame=cast_to(rows_of(Catalog(spark), opened), schema_json),
        config=replace(
            config_of(opened.snapshot),
            partitioning=PartitioningConfig(partition_by),
            publishing=PublishingConfig(),
            indexes=OptionalIndexes(),
        ),
        description=Description.of(entry),
        progress=progress,
        of_version=opened.version,
        yields_to_writers=yields_to_writers,
        repartitions=_columns(schema_json) == _columns(opened.row_schema_json),
        deletes_of=opened if opened.merges_on_read else None,
    )
    return replace_table(spark, wanted)
