"""Clusters a table: rewrites and commits groups of files, and gives way to writers that change their rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException

from dbt.adapters.zlayout.config.clustering import ALONG_CURVE, ClusterStrategy, ReclusteringConfig
from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.config.schema_check import sort_columns
from dbt.adapters.zlayout.errors import (
    CancelledError,
    ConfigError,
    ConflictError,
    NewerFormatError,
    StoreError,
    WriteError,
    ZlayoutError,
)
from dbt.adapters.zlayout.layout.chosen_groups import ChosenGroup
from dbt.adapters.zlayout.layout.cluster_plan import (
    ClusterPlan,
    LayoutState,
    LeftGroup,
    PlannedGroup,
    scheduled_groups,
)
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.publish.spark_manifest import published_version
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableRef, named
from dbt.adapters.zlayout.spark.cluster.group_writer import Batch, GroupWriter, WrittenGroup, ended_batches
from dbt.adapters.zlayout.spark.cluster.planning import CutGroup, CutPlan, Planner, Survey
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.commit.commit_files import NewFiles, commit_files
from dbt.adapters.zlayout.spark.commit.publish import publish_newest
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, check_not_cancelled, for_other_threads, why_failed
from dbt.adapters.zlayout.spark.read.explain import files_that_may_match
from dbt.adapters.zlayout.spark.read.relations import frame_of
from dbt.adapters.zlayout.spark.read.session import newest_managed, open_managed
from dbt.adapters.zlayout.spark.schema.table_schema import checked_schema
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.write.replace import rewrite_table
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.naming import instants_in_name, is_data_path
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.file_slices import kept_deletes, without_logs
from dbt.adapters.zlayout.timeline.log.snapshot import row_count
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.pending import (
    PendingPlan,
    list_scheduled,
    plans_to_execute,
    schedule,
    unreadable_text,
    withdraw_scheduled,
)
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMMIT_TRIES = 10


@dataclass(frozen=True)
class ClusterSummary:
    """What one clustering did. For a dry run, what it would do.

    Attributes:
        version: Current version of the table.
        before: Layout before the clustering.
        after: Layout after it, measured. For a dry run, predicted.
        predicted: Layout that the plan predicted.
        groups: The plan's groups.
        files_added: Number of files that the commits added.
        files_removed: Number of files that they removed.
        bytes_rewritten: Size of the replaced files.
        bytes_added: Size of the new files.
        rows: Number of rows in the new files.
        groups_done: Number of groups that were committed.
        groups_dropped: Groups that gave way because another writer changed their files.
        groups_failed: Groups whose rows could not be read or written, and why. They are unchanged.
        resampled: Keys with new boundaries, because the data had outgrown the stored ones.
        files_with_logs: Number of base and log files of a merge-on-read table that need a compaction first.
        dry_run: Whether no row was rewritten: the figures are those of a plan.
        unfinished: Steps that failed after the commits and are left to the next writer, one sentence each.
        problems: One sentence for each pending plan that was deleted because it could not be read.
    """

    version: int
    before: LayoutState
    after: LayoutState
    predicted: LayoutState
    groups: tuple[PlannedGroup, ...] = ()
    files_added: int = 0
    files_removed: int = 0
    bytes_rewritten: int = 0
    bytes_added: int = 0
    rows: int = 0
    groups_done: int = 0
    groups_dropped: tuple[LeftGroup, ...] = ()
    groups_failed: tuple[LeftGroup, ...] = ()
    resampled: tuple[str, ...] = ()
    files_with_logs: int = 0
    dry_run: bool = True
    seconds: float = 0.0
    unfinished: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @classmethod
    def of_plan(cls, plan: ClusterPlan) -> ClusterSummary:
        """Returns the summary of a plan before anything is done."""
        return cls(
            plan.version,
            plan.before,
            plan.before,
            plan.after,
            plan.groups,
            groups_failed=plan.groups_failed,
            resampled=plan.resampled,
            files_with_logs=plan.files_with_logs,
        )

    @classmethod
    def of_dry_run(cls, plan: ClusterPlan) -> ClusterSummary:
        """Returns the summary of what executing a plan would do."""
        return replace(
            cls.of_plan(plan),
            after=plan.after,
            files_added=plan.files_added,
            files_removed=plan.files_removed,
            bytes_rewritten=plan.bytes_rewritten,
        )

    def dropped_lines(self) -> list[str]:
        """Returns one line for each group that gave way to another writer."""
        return [each.line("dropped") for each in self.groups_dropped]

    def failed_lines(self) -> list[str]:
        """Returns one line for each group that could not be read or written."""
        return [each.line("failed on") for each in self.groups_failed]

    @property
    def depth_before(self) -> float:
        """Overlap depth before the clustering."""
        return self.before.depth

    @property
    def depth_after(self) -> float:
        """Overlap depth after the clustering."""
        return self.after.depth

    @property
    def files_read_before(self) -> float:
        """Average number of files that a point query on a key read before the clustering."""
        return self.before.files_read

    @property
    def files_read_after(self) -> float:
        """Average number of files that a point query on a key reads after the clustering."""
        return self.after.files_read

    def plus(self, version: int, **figures: int) -> ClusterSummary:
        """Returns the summary with one more commit, whose figures are added by name."""
        return replace(self, version=version, **{name: getattr(self, name) + more for name, more in figures.items()})

    def __getitem__(self, name: str) -> Any:
        """Returns a figure by its name, as in `to_dict`."""
        return self.to_dict()[name]

    def to_dict(self) -> dict[str, Any]:
        """Returns the summary as plain values."""
        return {
            **vars(self),
            "before": vars(self.before),
            "after": vars(self.after),
            "predicted": vars(self.predicted),
            "depth_before": self.depth_before,
            "depth_after": self.depth_after,
            "files_read_before": self.files_read_before,
            "files_read_after": self.files_read_after,
            "groups": [each.to_dict() for each in self.groups],
            "groups_dropped": [vars(each) for each in self.groups_dropped],
            "groups_failed": [vars(each) for each in self.groups_failed],
            "resampled": list(self.resampled),
            "unfinished": list(self.unfinished),
            "problems": list(self.problems),
        }


@dataclass
class Clustering:
    """One clustering of one table.

    Attributes:
        config: When a rewrite pays off, and how to run it.
        where: SQL condition. Only files that may hold a matching row are rewritten.
        strategy: How the rows of the rewritten files are arranged. Pending plans have their own.
    """

    spark: SparkSession
    name: TableRef
    config: ReclusteringConfig
    where: str | None = None
    progress: Progress | None = None
    strategy: ClusterStrategy = ALONG_CURVE
    _dropped: list[LeftGroup] = field(default_factory=list)
    _failed: list[LeftGroup] = field(default_factory=list)

    def plan(self) -> ClusterPlan:
        """Returns the plan that `run` would execute, without writing anything.

        Raises:
            UnsupportedError: The table is only indexed.
        """
        planner = self._planner(self._open())
        return planner.cut(planner.choose(self._eligible(planner.survey.opened))).reported

    def schedule(self) -> ClusterPlan:
        """Writes a plan to the timeline for a later `execute`, unless the plan has no groups.

        It replaces pending plans of the same strategy, and leaves the files of other plans to these.

        Raises:
            ConfigError: Rows cannot be sorted by a column of the strategy.
            UnsupportedError: The table is only indexed.
        """
        opened = self._open()
        planner = self._planner(opened)
        replaced, taken = _older_plans(opened.store, planner.strategy)
        paths = planner.survey.opened.files["path"].combine_chunks()
        free = ~pc.is_in(paths, value_set=taken).to_numpy(False)
        outline = planner.outline(planner.choose(self._eligible(planner.survey.opened) & free))
        if outline.groups:
            schedule(opened.timeline, Action.REPLACECOMMIT, outline.to_dict(), replaces=replaced)
        return outline

    def run(self) -> ClusterSummary:
        """Rewrites the groups for which it pays off.

        Raises:
            UnsupportedError: The table is only indexed.
            WriteError: Rows could not be read or written. What was not committed is unchanged.
        """
        return self._cluster(lambda planner: planner.choose(self._eligible(planner.survey.opened)))

    def execute(self, instant: str | None = None) -> ClusterSummary:
        """Executes pending plans. Drops groups whose files have changed since, and deletes a plan that cannot be read.

        Args:
            instant: Execute only the plan of this instant. None for all plans.

        Raises:
            ConfigError: No pending plan has this instant.
            NewerFormatError: A plan has a strategy that this release does not know. All plans stay pending.
            UnsupportedError: The table is only indexed.
            WriteError: Rows could not be read or written. The plans stay pending.
        """
        store = self._open().store
        plans = plans_to_execute(store, Action.REPLACECOMMIT, instant, str(self.name))
        planned = [scheduled_groups(each.content.get("groups", ())) for each in plans]
        # Newer plans first: they were made from newer files.
        groups = [group for each in reversed(planned) for group in each]
        done = self._cluster(lambda planner: self._live_groups(planner.survey.opened, groups))
        after = AfterCommit(done.version, self.progress)
        with after.useful("the executed plans are still pending"):
            withdraw_scheduled(store, plans)
        return replace(
            done,
            unfinished=(*done.unfinished, *after.unfinished),
            problems=tuple(unreadable_text(plan) for plan, found in zip(plans, planned, strict=True) if not found),
        )

    def repartition(self, partition_by: tuple[str, ...], *, dry_run: bool) -> ClusterSummary:
        """Rewrites all rows with other partition columns, in one commit, because a table has one set of them at a time.

        Args:
            partition_by: The new partition columns, spelled as in the table.
            dry_run: Only return what would be done.

        Raises:
            UnsupportedError: The table is only indexed.
            WriteError: Rows could not be read or written. The table is unchanged.
        """
        started = time.perf_counter()
        name = named(self.name, "a clustering with other partition columns")
        entry, opened = open_managed(self.spark, name)
        files, planner = opened.files, self._planner(opened)
        group = PlannedGroup(
            partition="",
            paths=tuple(files["path"].to_pylist()),
            rows=row_count(opened.snapshot),
            size_bytes=files.total_bytes,
            reason="partition_by",
            files_after=max(1, round(files.total_bytes / planner.survey.cost_model.target_bytes)),
            saves=None,
        )
        state = planner.survey.state
        plan = ClusterPlan(opened.version, (group,), state, state)
        if dry_run:
            return ClusterSummary.of_dry_run(plan)
        summary = replace(ClusterSummary.of_plan(plan), dry_run=False)
        try:
            opened, done = rewrite_table(
                self.spark,
                name,
                entry,
                opened,
                schema_json=opened.row_schema_json,
                partition_by=partition_by,
                progress=self.progress,
                yields_to_writers=True,
            )
        except ConflictError as conflict:
            summary = replace(summary, groups_dropped=(LeftGroup("", len(files), str(conflict)),))
        else:
            summary = summary.plus(
                done.version,
                files_added=done.files_added,
                files_removed=len(files),
                bytes_rewritten=files.total_bytes,
                bytes_added=done.bytes_added,
                rows=done.rows,
                groups_done=1,
            )
            summary = replace(summary, after=self._planner(opened).survey.state)
        return replace(summary, seconds=round(time.perf_counter() - started, 3))

    def _live_groups(self, opened: TableSnapshot, groups: Sequence[PlannedGroup]) -> list[ChosenGroup]:
        self._dropped.clear()
        found: list[ChosenGroup] = []
        paths = opened.files["path"].combine_chunks()
        taken = np.zeros(len(paths), bool)
        for group in groups:
            at = pc.index_in(pa.array(group.paths, pa.string()), value_set=paths)
            files = at.drop_null().to_numpy()
            strategy, why = group.strategy, ""
            if at.null_count or taken[files].any():
                why = "its files have changed since the plan was made"
            elif strategy.name == "sort":
                columns, problems = self._sort_columns(opened, strategy)
                strategy, why = replace(strategy, sort_by=columns), "; ".join(problems)
            if why:
                self._dropped.append(LeftGroup(group.partition, len(group.paths), why))
                continue
            taken[files] = True
            ordered = files if strategy.name == "binpack" else np.sort(files)
            found.append(ChosenGroup(ordered.astype(np.int64), 0.0, 0.0, group.reason, strategy))
        return found

    def _sort_columns(
        self, opened: TableSnapshot, strategy: ClusterStrategy
    ) -> tuple[tuple[ColumnPath, ...], list[str]]:
        """Returns the columns of a sort as the table spells them, and a sentence for each that is unfit for it."""
        schema = checked_schema(opened.row_schema_json)
        columns, problems = sort_columns(strategy.sort_by, schema, opened.partition_columns)
        rows = frame_of(Catalog(self.spark), opened, ~opened.all_files())
        for path in columns:
            column = rows.selectExpr(f"{'.'.join(map(backquoted, path))} as c")
            try:
                column.orderBy("c")
            except AnalysisException:
                kind = column.schema["c"].dataType.simpleString()
                problems.append(
                    f"sort_by: column '{format_column_path(path)}' has type {kind}, and Spark does not sort by it; "
                    "choose another column, or a field of it"
                )
        return columns, problems

    def _open(self) -> TableSnapshot:
        return newest_managed(self.spark, self.name)

    def _planner(self, opened: TableSnapshot) -> Planner:
        # Files with log files are left out: the rows of a key stay in their file group as long as it has log files.
        total = len(opened.snapshot.files) - len(kept_deletes(opened.snapshot.files))
        opened = opened.with_files(without_logs(opened.snapshot.files))
        layout = TableLayout.of(config_of(opened.snapshot), opened.row_schema_json, str(self.name))
        _, max_file_bytes = self.config.file_limits(layout.config.file_sizing.target_file_bytes)
        survey = Survey(opened, layout, max_file_bytes, files_with_logs=total - len(opened.snapshot.files))
        strategy = self.strategy
        if strategy.name == "sort":
            columns, problems = self._sort_columns(opened, strategy)
            if problems:
                raise ConfigError(problems, str(self.name))
            strategy = replace(strategy, sort_by=columns)
        return Planner(Catalog(self.spark), survey, self.config, self.progress, strategy)

    def _eligible(self, opened: TableSnapshot) -> npt.NDArray[np.bool_]:
        if self.where is None:
            return opened.all_files()
        kept = files_that_may_match(self.spark, self.name, opened, self.where)
        chosen: npt.NDArray[np.bool_] = pc.is_in(opened.files["path"].combine_chunks(), value_set=kept).to_numpy(False)
        return chosen

    def _cluster(self, choose: Callable[[Planner], list[ChosenGroup]]) -> ClusterSummary:
        started = time.perf_counter()
        planner = self._planner(self._open())
        groups = choose(planner)
        summary = self._rewrite(planner, groups, choose) if groups else ClusterSummary.of_plan(planner.cut(()).reported)
        if self._failed and not summary.groups_done:
            raise WriteError(_failure_text(str(self.name), self._failed))
        if summary.groups_done or published_version(planner.survey.opened.store) != planner.survey.opened.version:
            after = AfterCommit(summary.version, self.progress)
            planner = self._planner(publish_newest(self.spark, self.name, after))
            summary = replace(summary, unfinished=after.unfinished)
        return replace(
            summary,
            after=planner.survey.state,
            groups_dropped=tuple(self._dropped),
            groups_failed=tuple(self._failed),
            dry_run=False,
            seconds=round(time.perf_counter() - started, 3),
        )

    def _rewrite(
        self, planner: Planner, groups: Sequence[ChosenGroup], choose: Callable[[Planner], list[ChosenGroup]]
    ) -> ClusterSummary:
        """Rewrites groups. A transaction protects their files from cleaning, from the first read on."""
        opened = planner.survey.opened
        timeline = opened.timeline
        with Transaction.begin(timeline, Action.REPLACECOMMIT, Operation.CLUSTERING) as transaction:
            if transaction.base is not None and transaction.base.version != opened.version:
                planner = self._planner(opened.at_snapshot(transaction.base))
                groups = choose(planner)
            plan = planner.cut(groups)
            self._failed += plan.reported.groups_failed
            summary = ClusterSummary.of_plan(plan.reported)
            writer = GroupWriter(self.spark, str(self.name), plan, self.config.verify, self.progress)
            batches = self._batches(timeline, plan.groups, transaction)
            write = for_other_threads(self.spark, writer.write)
            with closing(ended_batches(write, batches, self.config.max_concurrent_groups)) as ended:
                for batch in ended:
                    summary = self._commit_batch(timeline, plan, batch, summary)
        return summary

    def _batches(self, timeline: Timeline, groups: Sequence[CutGroup], first: Transaction) -> Iterator[Batch]:
        """Yields groups to be committed together, each batch with its transaction. The first one is already open."""
        count = min(self.config.max_commits, len(groups)) if self.config.partial_progress else min(1, len(groups))
        for number in range(count):
            transaction = Transaction.begin(timeline, Action.REPLACECOMMIT, Operation.CLUSTERING) if number else first
            live = transaction.base.files if transaction.base is not None else DataFiles.empty()
            share = groups[number * len(groups) // count : (number + 1) * len(groups) // count]
            whole = [cut for cut in share if self._is_whole(cut, live)]
            if whole:
                yield Batch(whole, transaction)
            else:
                transaction.rollback()

    def _commit_batch(self, timeline: Timeline, plan: CutPlan, batch: Batch, summary: ClusterSummary) -> ClusterSummary:
        """Commits the written groups of a batch, except those that another writer has changed in the meantime.

        Raises:
            CancelledError: The run was cancelled; of this batch, nothing is committed.
        """
        with batch.transaction as transaction:
            check_not_cancelled()
            failed = batch.failed
            if failed:
                # A clean may have deleted files that another writer replaced. Such a group is dropped, not failed.
                live = timeline.snapshot().files
                failed = [(cut, error) for cut, error in failed if self._is_whole(cut, live)]
            try:
                summary = self._commit_untouched(timeline, plan, batch.written, transaction, summary)
            except CancelledError:
                raise
            except ZlayoutError as error:
                failed += [(cut, error) for cut, _ in batch.written]
        self._failed += [_left_group(cut, why_failed(error)) for cut, error in failed]
        if batch.failed and transaction.committed is not None:
            _delete_leftovers(timeline.store, transaction.committed)
        return summary

    def _commit_untouched(
        self,
        timeline: Timeline,
        plan: CutPlan,
        written: Sequence[WrittenGroup],
        transaction: Transaction,
        summary: ClusterSummary,
    ) -> ClusterSummary:
        written, why = self._untouched(timeline, written), ""
        for _ in range(_COMMIT_TRIES):
            if not written:
                break
            try:
                return self._commit_groups(plan, written, transaction, summary)
            except ConflictError as conflict:
                why, left = str(conflict), self._untouched(timeline, written)
                if len(left) == len(written):
                    break
                written = left
        self._dropped += [_left_group(cut, why) for cut, _ in written]
        return summary

    def _commit_groups(
        self, plan: CutPlan, written: Sequence[WrittenGroup], transaction: Transaction, summary: ClusterSummary
    ) -> ClusterSummary:
        layout, store = plan.survey.layout, plan.survey.opened.store
        reports = [report for _, files in written for report in files]
        removes = tuple(path for cut, _ in written for path in cut.reported.paths)
        new = NewFiles.of(self.spark, store, transaction.instant, reports, layout)
        adds = new.files
        figures = {
            "rows": adds.total_rows,
            "files_added": len(adds),
            "files_removed": len(removes),
            "bytes_added": adds.total_bytes,
        }
        removed_bytes = sum(cut.reported.size_bytes for cut, _ in written)
        curve = plan.curve.to_bytes() if plan.curve is not None else None
        change = Change(adds, removes, summary={**figures, "bytes_removed": removed_bytes, "groups": len(written)})
        commit = commit_files(store, transaction, change, new.column_stats, curve=curve, optional=new.optional)
        return summary.plus(commit.version, **figures, bytes_rewritten=removed_bytes, groups_done=len(written))

    def _untouched(self, timeline: Timeline, written: Sequence[WrittenGroup]) -> list[WrittenGroup]:
        """Returns the groups that can be committed, and deletes the new files of the others."""
        live = timeline.snapshot().files
        kept = []
        for cut, files in written:
            if self._is_whole(cut, live):
                kept.append((cut, files))
            else:
                timeline.store.delete(each.file.path for each in files)
        return kept

    def _is_whole(self, cut: CutGroup, live: DataFiles) -> bool:
        """Returns whether all files of a group are still live and without log files. If not, records it as dropped."""
        paths = pa.array(cut.reported.paths, pa.string())
        if pc.all(pc.is_in(paths, value_set=without_logs(live)["path"].combine_chunks())).as_py():
            return True
        self._dropped.append(_left_group(cut, "another writer has changed its rows"))
        return False


def _older_plans(store: Store, strategy: ClusterStrategy) -> tuple[list[PendingPlan], pa.Array]:
    """Returns the pending plans of a strategy, and the data files in those of other strategies."""
    own: list[PendingPlan] = []
    taken: list[str] = []
    for each in list_scheduled(store, Action.REPLACECOMMIT):
        with suppress(NewerFormatError):  # a plan of a newer release stays
            groups = scheduled_groups(each.content.get("groups", ()))
            if any(group.strategy != strategy for group in groups):
                taken += [path for group in groups for path in group.paths]
            else:
                own.append(each)
    return own, pa.array(taken, pa.string())


def _left_group(cut: CutGroup, why: str) -> LeftGroup:
    return LeftGroup(cut.reported.partition, len(cut.reported.paths), why)


def _failure_text(table: str, failed: Sequence[LeftGroup]) -> str:
    first = failed[0]
    place = f" ({first.partition})" if first.partition else ""
    more = f"; {len(failed) - 1:,} more groups failed" if len(failed) > 1 else ""
    return f"{table}: no group could be clustered: {first.reason}{place}{more}; the table is unchanged"


def _delete_leftovers(store: Store, commit: Commit) -> None:
    """Deletes files that failed groups have written under a commit's instant. Cleaning finds what this leaves."""
    kept = set(commit.adds["path"].to_pylist())
    # The transaction has ended. A task that is still writing deletes its own file.
    with suppress(StoreError):
        written = [file.path for file in store.list("", recursive=True) if is_data_path(file.path)]
        store.delete(path for path in written if commit.instant in instants_in_name(path) and path not in kept)
