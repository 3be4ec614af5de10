"""Compaction: plans and executes the merge of file slices into new base files, apart from writers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.settings import CompactionStrategy
from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ, TableTypeConfig
from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.layout.compaction_plan import (
    CompactionOperation,
    MergeThresholds,
    choose,
    deletes_in_logs,
    groups_of,
    is_due,
    oldest_records,
    operations_of,
    still_whole,
)
from dbt.adapters.zlayout.publish.spark_manifest import published_version
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.catalog.session_catalog import TableRef
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.commit.commit_files import NewFiles, commit_files
from dbt.adapters.zlayout.spark.commit.publish import publish_newest
from dbt.adapters.zlayout.spark.files.file_report import FileReport
from dbt.adapters.zlayout.spark.jobs.jobs import Progress
from dbt.adapters.zlayout.spark.merge_on_read.compaction_write import SliceWriter
from dbt.adapters.zlayout.spark.read.explain import files_that_may_match
from dbt.adapters.zlayout.spark.read.record_tables import table_type_of
from dbt.adapters.zlayout.spark.read.session import newest_managed
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.instant import hours_before
from dbt.adapters.zlayout.timeline.files.naming import deletes_file_instant
from dbt.adapters.zlayout.timeline.log.file_slices import (
    FileSlice,
    base_files,
    kept_deletes,
    log_files,
    slices_with_logs,
)
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.pending import (
    PendingPlan,
    is_running,
    list_scheduled,
    plans_to_execute,
    schedule,
    unreadable_text,
    withdraw_scheduled,
)
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class CompactionSummary:
    """Result of a compaction, or of planning one.

    Attributes:
        version: Current version of the table.
        plans: Instants of the plans that were written or executed.
        groups: Number of file slices that were merged, or will be.
        groups_dropped: Number of planned slices that were dropped because another writer had replaced their files.
        files_added: Number of new base files.
        files_removed: Number of base and log files that they replace.
        bytes_read: Size of the replaced files.
        bytes_written: Size of the new files.
        unfinished: Steps that failed after the commits and are left to the next writer, one sentence each.
        problems: One sentence for each pending plan that was deleted because it could not be read.
    """

    version: int
    plans: tuple[str, ...] = ()
    groups: int = 0
    groups_dropped: int = 0
    files_added: int = 0
    files_removed: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    unfinished: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        """Returns a figure by its name, as in `to_dict`."""
        return self.to_dict()[name]

    def to_dict(self) -> dict[str, Any]:
        """Returns the summary as plain values."""
        lists = {"plans": list(self.plans), "unfinished": list(self.unfinished), "problems": list(self.problems)}
        return {**vars(self), **lists}


@dataclass
class Compaction:
    """Plans and executes compactions of one merge-on-read table.

    Attributes:
        strategy: Which slices come first. None for the table's setting.
        max_bytes: Most bytes of one plan. None for the table's setting.
        where: SQL condition. Only file groups that may hold a matching row are compacted.
        logs_only: Merge the log files of a slice into one, and leave its base file (log compaction).
        only_worthwhile: Take only slices whose merge pays off, by the table's settings.
        logs_before: With `only_worthwhile`, the instant before which a log record is so old that its slice is merged
            in any case. None for no limit.
    """

    spark: SparkSession
    name: TableRef
    strategy: CompactionStrategy | None = None
    max_bytes: int | None = None
    where: str | None = None
    logs_only: bool = False
    progress: Progress | None = None
    only_worthwhile: bool = False
    logs_before: str | None = None

    def schedule(self) -> CompactionSummary:
        """Writes a plan to the timeline, unless there is nothing to merge.

        Raises:
            UnsupportedError: The table has no log files, because its type is not ``merge_on_read``.
        """
        opened = self._opened()
        plan = self._scheduled(opened)
        operations = operations_of(plan.content) if plan is not None else []
        return CompactionSummary(
            opened.version,
            plans=() if plan is None else (plan.instant,),
            groups=len(operations),
            files_removed=sum(len(each.paths) for each in operations),
            bytes_read=sum(each.size_bytes for each in operations),
        )

    def execute(self, instant: str | None = None) -> CompactionSummary:
        """Executes pending plans, oldest first. Deletes a plan that cannot be read.

        Args:
            instant: Execute only the plan of this instant. None for all plans.

        Raises:
            ConfigError: No pending plan has this instant.
            ConflictError: Another writer committed first. The table is as that writer left it; the plan stays pending.
            WriteError: Rows could not be read or written. The table is unchanged; the plan stays pending.
        """
        started, opened = time.perf_counter(), self._opened()
        plans = plans_to_execute(opened.store, Action.COMPACTION, instant, str(self.name))
        if published_version(opened.store) != opened.version:
            # The writer of this version died before publishing it. There may be nothing left to compact.
            publish_newest(self.spark, self.name, AfterCommit(opened.version, self.progress))
        done = CompactionSummary(opened.version)
        for plan in plans:
            done = self._executed(plan, done)
        return replace(done, seconds=round(time.perf_counter() - started, 3))

    def run(self) -> CompactionSummary:
        """Writes a new plan and executes all pending plans, the new one last."""
        self._scheduled(self._opened())
        return self.execute()

    def _opened(self) -> TableSnapshot:
        opened = newest_managed(self.spark, self.name)
        if not opened.merges_on_read:
            raise UnsupportedError(
                f"{self.name} has no logs to merge: its table_type is copy_on_write; cluster it to rewrite its files"
            )
        return opened

    def _scheduled(self, opened: TableSnapshot) -> PendingPlan | None:
        timeline, table_type = opened.timeline, table_type_of(opened)
        pending = list_scheduled(opened.store, Action.COMPACTION)
        slices = self._eligible(opened)
        operations = choose(
            slices,
            self.strategy or table_type.compaction_strategy,
            taken=groups_of(each.content for each in pending),
            max_bytes=self.max_bytes if self.max_bytes is not None else table_type.compaction_max_bytes,
            logs_only=self.logs_only,
            thresholds=self._thresholds(opened, table_type) if self.only_worthwhile else None,
        )
        if not operations:
            return None
        return schedule(timeline, Action.COMPACTION, {"operations": [each.to_dict() for each in operations]})

    def _thresholds(self, opened: TableSnapshot, table_type: TableTypeConfig) -> MergeThresholds:
        return MergeThresholds(
            table_type.compaction_min_log_ratio,
            table_type.compaction_max_logs,
            table_type.compaction_max_deleted_share,
            deletes_in_logs(opened.files, opened.statistics.statistics(opened.files, [(OP,), (SEQ,)])),
            self.logs_before,
        )

    def _eligible(self, opened: TableSnapshot) -> list[FileSlice]:
        slices = _slices_of(opened)
        if self.where is None:
            return slices
        kept = set(files_that_may_match(self.spark, self.name, opened, self.where).to_pylist())
        return [each for each in slices if not kept.isdisjoint(each.paths)]

    def _executed(self, plan: PendingPlan, done: CompactionSummary) -> CompactionSummary:
        opened, planned = self._opened(), operations_of(plan.content)
        if not planned:
            after = AfterCommit(done.version, self.progress)
            with after.useful("the plan that cannot be read is still pending"):
                withdraw_scheduled(opened.store, [plan])
            problems, unfinished = (*done.problems, unreadable_text(plan)), (*done.unfinished, *after.unfinished)
            return replace(done, problems=problems, unfinished=unfinished)
        timeline = opened.timeline
        with Transaction.begin(timeline, Action.COMPACTION, Operation.COMPACTION) as transaction:
            if transaction.base is not None:
                opened = opened.at_snapshot(transaction.base)
            live = set(opened.snapshot.files["path"].to_pylist())
            operations, stale = still_whole(planned, live)
            done = replace(done, groups_dropped=done.groups_dropped + len(stale))
            if operations:
                layout = TableLayout.of(config_of(opened.snapshot), opened.row_schema_json, str(self.name))
                writer = SliceWriter(self.spark, str(self.name), layout, self.progress)
                reports = writer.write(opened, operations, transaction)
                done = self._committed(opened, layout, operations, reports, transaction, done)
        after = AfterCommit(done.version, self.progress)
        with after.useful("the executed plan is still pending"):
            withdraw_scheduled(opened.store, [plan])
        if operations:
            publish_newest(self.spark, self.name, after)
        return replace(done, plans=(*done.plans, plan.instant), unfinished=(*done.unfinished, *after.unfinished))

    def _expired(self, opened: TableSnapshot, layout: TableLayout, transaction: Transaction) -> tuple[str, ...]:
        """Returns the files of kept deletes that have expired, except in file groups of pending plans."""
        since = hours_before(transaction.instant, layout.config.table_type.retain_deletes_hours)
        planned = groups_of(each.content for each in list_scheduled(opened.store, Action.COMPACTION))
        files = kept_deletes(opened.snapshot.files)
        expired = [each for each in files if str(deletes_file_instant(each.path)) < since]
        return tuple(each.path for each in expired if each.group not in planned)

    def _committed(
        self,
        opened: TableSnapshot,
        layout: TableLayout,
        operations: Sequence[CompactionOperation],
        reports: Sequence[FileReport],
        transaction: Transaction,
        done: CompactionSummary,
    ) -> CompactionSummary:
        new = NewFiles.of(self.spark, opened.store, transaction.instant, reports, layout)
        adds = new.files
        removes = tuple(path for each in operations for path in each.paths) + self._expired(opened, layout, transaction)
        gone = opened.files.filter(pc.is_in(opened.files["path"], value_set=pa.array(removes, pa.string())))
        summary = {
            "rows": base_files(adds).total_rows,
            "files_added": len(adds),
            "files_removed": len(gone),
            "bytes_added": adds.total_bytes,
            "bytes_removed": gone.total_bytes,
            "groups": len(operations),
            "logs_only": all(each.logs_only for each in operations),
        }
        change = Change(adds, removes, summary=summary)
        commit = commit_files(opened.store, transaction, change, new.column_stats, optional=new.optional)
        return replace(
            done,
            version=commit.version,
            groups=done.groups + len(operations),
            files_added=done.files_added + len(adds),
            files_removed=done.files_removed + len(gone),
            bytes_read=done.bytes_read + gone.total_bytes,
            bytes_written=done.bytes_written + adds.total_bytes,
        )


def _slices_of(opened: TableSnapshot) -> list[FileSlice]:
    """Returns the newest slice of each file group with logs. The index knows how old the records of a log are."""
    statistics = opened.statistics.statistics(opened.files, [(INSTANT,)])
    return slices_with_logs(opened.snapshot.files, oldest_records(opened.files, statistics))


def _is_due(
    opened: TableSnapshot, table_type: TableTypeConfig, logs_before: str | None, plans: Sequence[PendingPlan]
) -> bool:
    planned = groups_of(each.content for each in plans)
    # Every delta commit asks this. Without a limit of age it reads no statistics.
    slices = slices_with_logs(opened.snapshot.files) if logs_before is None else _slices_of(opened)
    return is_due([each for each in slices if each.group not in planned], table_type.compact_every, logs_before)


def _is_left_behind(plans: Sequence[PendingPlan], opened: TableSnapshot) -> bool:
    """Returns whether a pending plan is older than the newest commit, and no compaction is executing it now.

    A run that died or failed after it planned has left it. File groups of pending plans are in no other plan, so nobody
    else would merge them.
    """
    is_older = any(each.instant < opened.snapshot.last_instant for each in plans)
    return is_older and not is_running(opened.timeline, Action.COMPACTION)


def compact_inline(
    spark: SparkSession, name: TableRef, opened: TableSnapshot, progress: Progress | None
) -> CompactionSummary | None:
    """Compacts after a delta commit, or plans to, as the table's settings say.

    Returns:
        A summary. None if no compaction is due, no merge pays off, or a plan was written for later.

    Raises:
        Exception: The compaction failed; the delta commit stands.
    """
    table_type = table_type_of(opened)
    hours = table_type.compact_after_hours
    # The instant of the newest commit is the time. So only the clocks of writers count, not that of this machine.
    before = None if hours is None else hours_before(opened.snapshot.last_instant, hours)
    if table_type.compaction == "off":
        return None
    plans = list_scheduled(opened.store, Action.COMPACTION)
    due = _is_due(opened, table_type, before, plans)
    if not due and not (table_type.compaction == "inline" and _is_left_behind(plans, opened)):
        return None
    work = Compaction(spark, name, progress=progress, only_worthwhile=True, logs_before=before)
    if table_type.compaction == "deferred":
        planned = work.schedule()
        if progress is not None and planned.groups:
            groups = counted(planned.groups, "file group")
            progress(f"compaction of {groups} is planned; run zlayout_compact with execute: true")
        return None
    done = work.run() if due else work.execute()
    if progress is not None:
        for problem in done.problems:
            progress(problem)
    return done if done.plans else None


def pending_plans(opened: TableSnapshot) -> dict[str, list[str]]:
    """Returns the instants of the pending plans: of clustering and of compaction."""
    kinds = {"clustering": Action.REPLACECOMMIT, "compaction": Action.COMPACTION}
    return {name: [each.instant for each in list_scheduled(opened.store, action)] for name, action in kinds.items()}


def merging_information(opened: TableSnapshot) -> dict[str, Any]:
    """Returns figures about a merge-on-read table: its slices with log files, their size, and the pending plans."""
    slices = _slices_of(opened)
    return {
        "unique_key": list(table_type_of(opened).unique_key),
        "slices_with_logs": len(slices),
        "log_files": sum(len(each.logs) for each in slices),
        "log_records": log_files(opened.snapshot.files).total_rows,
        "log_bytes": sum(each.log_bytes for each in slices),
        "kept_deletes": kept_deletes(opened.snapshot.files).total_rows,
        "unmerged_commits": len({instant for each in slices for instant in each.log_instants}),
        "oldest_log": min((each.oldest_record for each in slices), default=None),
        "pending_compactions": [each.instant for each in list_scheduled(opened.store, Action.COMPACTION)],
    }
