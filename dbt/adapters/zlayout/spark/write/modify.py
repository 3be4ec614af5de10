"""Changes some rows of a table in one commit: append, overwrite of partitions, merge or delete."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.config.table_config import OptionalIndexes, TableConfig
from dbt.adapters.zlayout.errors import ConflictError
from dbt.adapters.zlayout.publish.spark_manifest import published_version
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.catalog.schema_evolution import OnSchemaChange, SchemaPlan, aligned, plan_schema
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit, CommitSummary
from dbt.adapters.zlayout.spark.commit.commit_files import NewFiles, commit_files, stored_drift
from dbt.adapters.zlayout.spark.commit.expression_stats import check_expressions
from dbt.adapters.zlayout.spark.commit.publish import Description, publish
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, failing_as_write_error, timed
from dbt.adapters.zlayout.spark.read.session import open_managed
from dbt.adapters.zlayout.spark.rewrite.arrow_rows import Written
from dbt.adapters.zlayout.spark.rewrite.file_writer import FileWriter
from dbt.adapters.zlayout.spark.schema.table_schema import check_catalog_takes, check_names_differ, described, nullable
from dbt.adapters.zlayout.spark.schema.types import raw_fields
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of, filterable_columns, tell_of_dropped
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.write.change_plan import Rewrite, RowCounts, Target
from dbt.adapters.zlayout.spark.write.incoming_rows import upserts_of, with_deleted_column, with_deletes
from dbt.adapters.zlayout.spark.write.replace import rewrite_table
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.log.file_slices import groups_with_logs, log_files
from dbt.adapters.zlayout.timeline.log.positions import ChangesTaken, with_changes_taken
from dbt.adapters.zlayout.timeline.log.snapshot import Batch, Snapshot, is_taken, row_count, with_batch, with_more_rows
from dbt.adapters.zlayout.timeline.transactions.change import Change, KeyConflictCheck, LayoutPlan
from dbt.adapters.zlayout.timeline.transactions.last_row_change import origin_summary
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DROPPED = "dropped_columns"
_ACTIONS = {Operation.INSERT_OVERWRITE: Action.REPLACECOMMIT}


@dataclass(frozen=True)
class Modification:
    """Everything about a change of rows except the plan.

    Attributes:
        operation: Operation, as the log names it.
        frame: Incoming rows. Their query has not run yet. None for a delete.
        settings: Settings for files written from now on. None keeps the table's settings.
        on_schema_change: What to do if the columns differ.
        description: New description of the table. None keeps the current one.
        not_null: Top-level columns that must not hold nulls.
        deleted_when: SQL condition over the incoming columns. A row that meets it is a delete. None if no row is one.
        stored_columns: Columns that are stored even if only this condition reads them.
        batch: Query and number of the stream's batch that holds the rows. A batch is applied only once.
        made_from: What the rows were made from, for the history.
        commit_empty: Whether to commit a version even if nothing changes.
        changes_taken: The changes of other tables that the rows were made from. The version stores the positions.
    """

    name: TableName
    operation: Operation
    frame: DataFrame | None
    settings: TableConfig | None = None
    on_schema_change: OnSchemaChange = OnSchemaChange.FAIL
    description: Description | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)
    not_null: Sequence[str] = ()
    progress: Progress | None = None
    deleted_when: str | None = None
    stored_columns: Sequence[str] = ()
    batch: Batch | None = None
    made_from: Mapping[str, Any] | None = None
    commit_empty: bool = False
    changes_taken: Sequence[ChangesTaken] = ()


@dataclass(frozen=True)
class Outcome:
    """The files that a change has written, and what it has decided.

    Attributes:
        removes: Paths of the files to remove.
        counts: Returns the row counts, given the number of rows written and the number of rows in the removed files.
        key_conflict: The key conflict check, see `Change`.
        keeps_curve: Whether the new files follow the table's current curve.
    """

    written: Written
    removes: tuple[str, ...]
    counts: Callable[[int, int], RowCounts]
    key_conflict: KeyConflictCheck | None
    keeps_curve: bool


Planned = TypeVar("Planned")


# Plans a change from the table and the incoming rows, which are in the table's future columns.
ChangePlanner = Callable[[Target, Any], Planned]


class RowChange(ABC, Generic[Planned]):
    """One change of rows, in one commit.

    If old files do not fit the new columns or folders, another commit rewrites them first.

    Args:
        wanted: The request, apart from the change itself.
        plan: Plans the change.
    """

    merges_on_read = False

    def __init__(self, spark: SparkSession, wanted: Modification, plan: ChangePlanner[Planned]) -> None:
        self.spark = spark
        self.wanted = wanted
        self.plan = plan
        self.catalog = Catalog(spark)
        self.subject = str(wanted.name)
        self.phases: dict[str, float] = {}
        self._schema_plans: dict[tuple[str, tuple[str, ...]], SchemaPlan] = {}
        self._layouts: dict[tuple[int, SchemaPlan], TableLayout] = {}
        self._frames: dict[str, DataFrame] = {}

    def run(self, entry: Entry, opened: TableSnapshot) -> tuple[TableSnapshot, CommitSummary]:
        """Makes the change.

        Args:
            opened: The table, usually at its newest version.

        Returns:
            The table at its current version, and a summary of what was done.
        """
        started = time.perf_counter()
        if self._rewrites_old_files(opened):
            self._tell_of_columns(opened)
            self._rewrite_old_files(entry, opened)
            entry, opened = open_managed(self.spark, self.wanted.name)
        with Transaction.begin(opened.timeline, self._action(), self.wanted.operation) as transaction:
            base = transaction.known_base(self.subject)
            opened = opened.at_snapshot(base)
            if opened.merges_on_read != self.merges_on_read:
                raise ConflictError(f"{self.subject}: another writer changed its table_type just now; run it again")
            if self._rewrites_old_files(opened):
                raise ConflictError(
                    f"{self.subject}: another writer changed its columns or folders just now; run it again"
                )
            if is_taken(base.properties, self.wanted.batch):
                summary = CommitSummary.of_nothing(base, self.wanted.operation.value)
            else:
                self._tell_of_columns(opened)
                self._tell_of_indexes(opened)
                summary = self._change(opened, transaction)
        # The writer of the current version may have died before it was published.
        if transaction.committed is not None or published_version(opened.store) != summary.version:
            after = AfterCommit(summary.version, self.wanted.progress)
            opened = self._publish(entry, opened, after)
            summary = replace(summary, unfinished=after.unfinished)
        self.phases["total"] = round(time.perf_counter() - started, 3)
        return opened, replace(summary, phases={**summary.phases, **self.phases})

    def _action(self) -> Action:
        return _ACTIONS.get(self.wanted.operation, Action.COMMIT)

    def _schema(self, opened: TableSnapshot) -> SchemaPlan:
        """Plans the columns.

        Cached, because it is needed before and inside the transaction, usually for the same version.
        """
        before = opened.row_schema_json, opened.partition_columns
        if before not in self._schema_plans:
            self._schema_plans[before] = self._plan_schema(opened)
        return self._schema_plans[before]

    def _incoming(self, opened: TableSnapshot) -> DataFrame | None:
        """Returns the incoming rows, with the column `DELETED` if they are a change feed."""
        frame, condition = self.wanted.frame, self.wanted.deleted_when
        if frame is None or condition is None:
            return frame
        if opened.row_schema_json not in self._frames:
            names = [each["name"] for each in raw_fields(opened.row_schema_json)]
            stored = {*names, *self.wanted.stored_columns}
            flagged = with_deletes(frame, condition, stored, self.subject, self.wanted.progress)
            self._frames[opened.row_schema_json] = flagged
        return self._frames[opened.row_schema_json]

    def _plan_schema(self, opened: TableSnapshot) -> SchemaPlan:
        if self.wanted.frame is not None:
            check_names_differ(self.wanted.frame.columns, self.spark, self.subject)
            check_catalog_takes(self.wanted.frame, self.spark, self.subject)
        frame = self._incoming(opened)
        if frame is None:
            return SchemaPlan(opened.row_schema_json)
        frame_json = described(str(upserts_of(frame).schema.json()), self.wanted.column_comments)
        partition_by = opened.partition_columns
        if self.wanted.settings is not None:
            # A column that is no longer a partition column may change or go like any other.
            folders = {name.lower() for name in self.wanted.settings.partitioning.columns}
            partition_by = tuple(name for name in partition_by if name.lower() in folders)
        policy = self.wanted.on_schema_change
        table_json = nullable(opened.row_schema_json)
        plan = plan_schema(self.catalog, table_json, frame_json, policy, partition_by, self.subject)
        plan = replace(plan, allows_nulls=table_json != opened.row_schema_json)
        return plan.with_comments(self.wanted.column_comments)

    def _rewrites_old_files(self, opened: TableSnapshot) -> bool:
        """Returns whether old files must go: a type widens, a dropped name comes back, or the partitioning changes."""
        schema = self._schema(opened)
        dropped = set(opened.snapshot.properties.get(_DROPPED, ()))
        revived = dropped & {name.lower() for name in schema.added}
        return bool(schema.retyped or revived) or self._layout(opened, schema).partition_by != opened.partition_columns

    def _rewrite_old_files(self, entry: Entry, opened: TableSnapshot) -> None:
        """Rewrites the existing rows with the future columns and partitioning, as a separate version."""
        schema = self._schema(opened)
        rewrite_table(
            self.spark,
            self.wanted.name,
            entry,
            opened,
            schema_json=schema.schema_json,
            partition_by=self._layout(opened, schema).partition_by,
            progress=self.wanted.progress,
        )

    def _layout(self, opened: TableSnapshot, schema: SchemaPlan) -> TableLayout:
        """Returns the layout after the change. Cached like the columns."""
        if (opened.version, schema) not in self._layouts:
            self._layouts[opened.version, schema] = self._plan_layout(opened, schema)
        return self._layouts[opened.version, schema]

    def _plan_layout(self, opened: TableSnapshot, schema: SchemaPlan) -> TableLayout:
        before = config_of(opened.snapshot)
        wanted = self.wanted.settings or replace(before, indexes=OptionalIndexes())
        settings = wanted.after(before, filterable_columns(schema.schema_json, wanted.partitioning.columns))
        layout = TableLayout.of(settings, schema.schema_json, self.subject)
        check_expressions(self.spark, wanted.indexes, layout, self.subject)
        return layout

    def _tell_of_columns(self, opened: TableSnapshot) -> None:
        schema, tell = self._schema(opened), self.wanted.progress
        if tell is None:
            return
        rows = counted(row_count(opened.snapshot), "row")
        if schema.added:
            tell(f"new columns, null in the older rows: {', '.join(schema.added)}")
        if schema.dropped:
            tell(f"columns dropped from the table ({rows}): {', '.join(schema.dropped)}")
        if schema.retyped:
            tell(f"columns of a wider type: {', '.join(schema.retyped)}; {rows} will be rewritten")

    def _tell_of_indexes(self, opened: TableSnapshot) -> None:
        if self.wanted.settings is None or self.wanted.progress is None:
            return
        before = config_of(opened.snapshot).indexes
        after = self._layout(opened, self._schema(opened)).config.indexes
        tell_of_dropped(self.wanted.progress, before, after)
        for each in after.beyond(before):
            self.wanted.progress(f"the index {each} is added to new files only; zlayout_index adds it to the others")

    def _stored_layout(self, opened: TableSnapshot, schema: SchemaPlan) -> LayoutPlan | None:
        """Returns the layout of the new version; None if it is that of the version before."""

        def stored(head: Snapshot | None) -> Mapping[str, Any]:
            assert head is not None
            layout = self._layout(replace(opened, snapshot=head), schema)
            return layout.to_dict(stored_drift(head.layout), head.layout.get("built"))

        return None if stored(opened.snapshot) == opened.snapshot.layout else stored

    def _change(self, opened: TableSnapshot, transaction: Transaction) -> CommitSummary:
        base, store = opened.snapshot, opened.store
        schema = self._schema(opened)
        layout = self._layout(opened, schema)
        self._tell_of_other_keys(opened, layout)
        target = Target(self.catalog, self.subject, opened, layout)
        rows = self._incoming(opened)
        if rows is not None:
            deletes = self.wanted.deleted_when is not None
            rows = aligned(
                rows, with_deleted_column(layout.schema_json) if deletes else layout.schema_json, self.subject
            )
        with failing_as_write_error(self.subject):
            outcome = self._outcome(target, rows, transaction)
        written, removes = outcome.written, outcome.removes
        new = NewFiles.of(self.spark, store, transaction.instant, written.files, layout)
        files = new.files
        gone = opened.files.filter(pc.is_in(opened.files["path"], value_set=pa.array(removes, pa.string())))
        logs, counts = log_files(files), outcome.counts(files.total_rows, gone.total_rows)
        rows_after = (row_count(base), counts.inserted - counts.deleted) if self.merges_on_read else None
        figures: dict[str, Any] = {
            "rows": files.total_rows,
            "rows_inserted": counts.inserted,
            "rows_updated": counts.updated,
            "rows_deleted": counts.deleted,
            "files_added": len(files),
            "files_removed": len(gone),
            "bytes_added": files.total_bytes,
            "bytes_removed": gone.total_bytes,
            "data_passes": written.data_passes,
            "overlap_depth": new.overlap_depth(layout.keys),
            "groups_touched": len(groups_with_logs(files)),
            "log_bytes": logs.total_bytes,
        }
        version, instant = base.version, base.instant
        published_otherwise = layout.config.publishing.stored() != config_of(base).publishing.stored()
        positions_move = self.wanted.batch is not None or any(each.due for each in self.wanted.changes_taken)
        changes = len(files) or removes or schema.changes or published_otherwise
        if changes or positions_move or self.wanted.commit_empty:
            with timed(self.phases, "commit"):
                curve = None if outcome.keeps_curve else written.model
                new_columns = tuple(each for each in layout.tracked if each.path[0] in schema.added)
                change = Change(
                    adds=files,
                    removes=removes,
                    schema_json=layout.schema_json if schema.changes else None,
                    layout=self._stored_layout(opened, schema),
                    properties=partial(_properties_after, self.wanted, schema.dropped, rows_after),
                    summary={**figures, "seconds": dict(written.phases), **origin_summary(self.wanted.made_from)},
                    key_conflict=outcome.key_conflict,
                )
                commit = commit_files(
                    store,
                    transaction,
                    change,
                    new.column_stats,
                    curve=curve,
                    new_columns=new_columns,
                    optional=new.optional,
                )
                version, instant = commit.version, commit.instant
        return CommitSummary(
            version=version,
            instant=instant,
            operation=self.wanted.operation.value,
            files_total=len(opened.files),
            phases=written.phases,
            **figures,
        )

    def _tell_of_other_keys(self, opened: TableSnapshot, layout: TableLayout) -> None:
        """Tells the user that existing files keep their layout, and how to change that."""
        now, then = (each.clustering for each in (layout.config, config_of(opened.snapshot)))
        if self.wanted.progress is None or now == then or not len(opened.files):
            return
        was, becomes = (
            f"{', '.join(map(format_column_path, each.columns)) or 'nothing'} ({each.curve})" for each in (then, now)
        )
        self.wanted.progress(
            f"the clustering keys change from {was} to {becomes}: existing files ({len(opened.files):,}) keep their "
            f"layout until a clustering rewrites those that gain from it: "
            f"dbt run-operation zlayout_cluster --args '{{model: {self.subject}}}'"
        )

    def _publish(self, entry: Entry, opened: TableSnapshot, after: AfterCommit) -> TableSnapshot:
        timeline = opened.timeline
        with timed(self.phases, "publish"), after.needed("readers may not see it yet"):
            opened = opened.at_snapshot(timeline.snapshot(after.version))
            description = self.wanted.description or Description.of(entry)
            publish(self.catalog, self.wanted.name, entry, opened, description, after)
            after.clean(opened)
        return opened

    @abstractmethod
    def _outcome(self, target: Target, rows: DataFrame | None, transaction: Transaction) -> Outcome:
        """Plans the change and writes its files. Readers see nothing of it yet."""


class RowRewrite(RowChange[Rewrite]):
    """A change that rewrites the files that hold the rows: copy-on-write."""

    def _outcome(self, target: Target, rows: DataFrame | None, transaction: Transaction) -> Outcome:
        with timed(self.phases, "plan"):
            rewrite = self.plan(target, rows)
        store, layout = target.opened.store, target.layout
        along = layout.stored_model(store, target.opened.snapshot)
        written = Written((), None, 0, {})
        if rewrite.rows is not None:
            writer = FileWriter(self.spark, self.subject, layout, self.wanted.not_null, self.wanted.progress)
            written = writer.write(store, transaction, rewrite.rows, along=along)
        return Outcome(written, rewrite.removes(written.files), rewrite.counts, rewrite.key_conflict, along is not None)


def _properties_after(
    wanted: Modification, dropped: tuple[str, ...], rows_after: tuple[int, int] | None, before: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Returns the table's properties after a change.

    Args:
        wanted: The request.
        dropped: Columns that the table no longer has, but that older files still hold.
        rows_after: Number of rows before the change, and how many it added. None if the files show the number of rows.
        before: Properties of the version that the change follows.
    """
    after = with_changes_taken(with_batch(before, wanted.batch), wanted.changes_taken, str(wanted.name))
    if rows_after is not None:
        after = with_more_rows(after, *rows_after)
    if dropped:
        after[_DROPPED] = sorted({*before.get(_DROPPED, ()), *(name.lower() for name in dropped)})
    return after
