"""Writes the files of a compaction: the merged rows of each file slice become one file of its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.layout.plans.compaction_plan import CompactionOperation
from dbt.adapters.zlayout.quantities import counted, size_text
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.files.written_file import FileReport
from dbt.adapters.zlayout.spark.jobs.jobs import (
    Progress,
    a_task_each,
    failing_as_write_error,
    rewrite_session,
)
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.merge_on_read.slice_merge import SliceMerge, tells_apart
from dbt.adapters.zlayout.spark.read.record_tables import file_groups, queried, record_view
from dbt.adapters.zlayout.spark.read.relations import frame_of, with_file
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask, written_files
from dbt.adapters.zlayout.spark.rewrite.file_writer import FileWriter, needs_spark, plain_frame
from dbt.adapters.zlayout.spark.rewrite.log_writer import LogBuild, log_build
from dbt.adapters.zlayout.spark.schema.log_columns import GROUP, with_log_columns
from dbt.adapters.zlayout.spark.schema.types import arrow_schema
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.instant import instant_ms, instant_of
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A file group stays one file, however large: new rows go to other groups long before this size.
_ONE_FILE_BYTES = 1 << 40
_ROW_GROUP_ROWS = 1 << 17
_TASK_BYTES = 64 << 20
_TASKS_A_CORE = 4


@dataclass(frozen=True)
class SliceWriter:
    """Writes the file slices of a plan.

    Attributes:
        spark: The session.
        subject: Name of the table, for error messages.
        layout: Layout of the table's files.
        progress: Called with a line of text as the work goes on.
    """

    spark: SparkSession
    subject: str
    layout: TableLayout
    progress: Progress | None = None

    def write(
        self, opened: TableSnapshot, operations: Sequence[CompactionOperation], transaction: Transaction
    ) -> list[FileReport]:
        """Writes the new files of the slices. Readers see nothing of them yet.

        Raises:
            WriteError: Rows could not be read or written.
        """
        use_driver_python(self.spark)
        found: list[FileReport] = []
        whole = [each for each in operations if not each.logs_only]
        logs_only = [each.paths for each in operations if each.logs_only]
        with failing_as_write_error(self.subject):
            model = self.layout.stored_model(opened.store, opened.snapshot) if whole else None
            found += self._merged_in_tasks(opened, whole, transaction, model)
            done = {(each.file.partition, each.file.group) for each in found}
            rest = [each.paths for each in whole if (each.partition, each.group) not in done]
            if rest:
                found += self._bases(opened, self._files(opened, rest), transaction, model)
            if logs_only:
                found += self._logs(opened, self._files(opened, logs_only), transaction)
            found += self._kept_deletes(opened, whole, transaction)
        if self.progress is not None:
            logs, size = sum(len(each.logs) for each in operations), sum(each.file.size_bytes for each in found)
            self.progress(
                f"{counted(len(operations), 'file group')}: {counted(logs, 'log')} merged into "
                f"{counted(len(found), 'file')} ({size_text(size)})"
            )
        return found

    def _files(self, opened: TableSnapshot, slices: Sequence[Sequence[str]]) -> DataFrame:
        """Returns the rows and log records of the slices' files, each with its file group."""
        paths = pa.array([path for each in slices for path in each], pa.string())
        chosen = np.asarray(pc.is_in(opened.files["path"].combine_chunks(), value_set=paths).to_numpy(False), bool)
        catalog = Catalog(self.spark)
        return file_groups(catalog, opened, with_file(frame_of(catalog, opened, chosen)))

    def _merged_in_tasks(
        self,
        opened: TableSnapshot,
        operations: Sequence[CompactionOperation],
        transaction: Transaction,
        model: CurveModel | None,
    ) -> list[FileReport]:
        """Merges slices inside tasks, one slice at a time. Slices that need Spark get no file here."""
        layout, keys = self.layout, self.layout.config.table_type.unique_key
        if not operations or needs_spark(layout, self.spark) or not tells_apart(keys, layout.data_json):
            return []
        if model is None and layout.keys:
            return []
        # The largest slices come first, so that the tasks end at about the same time.
        slices = sorted(operations, key=lambda each: -each.size_bytes)
        least = _TASKS_A_CORE * int(self.spark.sparkContext.defaultParallelism)
        tasks = min(len(slices), max(least, sum(each.size_bytes for each in slices) // _TASK_BYTES))
        merge = SliceMerge(
            build=replace(
                self._grouped(FileWriter(self.spark, self.subject, layout).build(opened.store, transaction)),
                model=None if model is None else model.to_bytes(),
                row_group_rows=self._row_group_rows(model),
            ),
            keys=tuple(name for name in keys if name in layout.data_schema.names),
            log_schema=arrow_schema(with_log_columns(layout.data_json)),
            slices=tuple(slices),
            tasks=tasks,
        )
        numbers = a_task_each(rewrite_session(self.spark), tasks)
        return list(written_files(self.spark, "compaction", self.progress, numbers, merge.__call__))

    def _bases(
        self, opened: TableSnapshot, files: DataFrame, transaction: Transaction, model: CurveModel | None
    ) -> list[FileReport]:
        view = record_view(opened)
        rows = queried(files, replace(view, columns=[*view.columns, GROUP]).merged)
        writer = FileWriter(self.spark, self.subject, self.layout, progress=self.progress)
        rows_writer = writer.arrow_writer(self._grouped(writer.build(opened.store, transaction)))
        rows_writer.row_group_rows = self._row_group_rows(model)
        return list(rows_writer.write(plain_frame(self.layout, rows, GROUP), along=model).files)

    @staticmethod
    def _grouped(build: BuildTask) -> BuildTask:
        """Returns the same task, set to write one file per file group."""
        partition_by = (*build.partition_by, GROUP)
        return replace(build, partition_by=partition_by, grouped=True, target_file_bytes=_ONE_FILE_BYTES)

    def _row_group_rows(self, model: CurveModel | None) -> int:
        wanted = self.layout.config.file_sizing.row_group_rows
        return wanted or (model.row_group_rows if model is not None else _ROW_GROUP_ROWS)

    def _logs(self, opened: TableSnapshot, files: DataFrame, transaction: Transaction) -> list[FileReport]:
        plain = plain_frame(self.layout, queried(files, record_view(opened).newest), OP, INSTANT, SEQ, GROUP)
        plain = plain.repartition(int(self.spark.sparkContext.defaultParallelism), plain.columns[-1])
        build = log_build(self.spark, self.subject, self.layout, opened.store, transaction)
        return self._written(plain, replace(build, keeps_instants=True))

    def _kept_deletes(
        self, opened: TableSnapshot, operations: Sequence[CompactionOperation], transaction: Transaction
    ) -> list[FileReport]:
        """Writes the kept deletes, whose rows the new base files no longer hold. Only log files are read for this."""
        table_type = self.layout.config.table_type
        if table_type.ordering is None or not table_type.retain_deletes_hours or not operations:
            return []
        files, view = self._files(opened, [each.changes for each in operations]), record_view(opened)
        since = deletes_since(transaction.instant, table_type.retain_deletes_hours)
        ordering = table_type.ordering
        rows = queried(files, lambda name: view.kept_deletes(name, ordering, since, GROUP))
        plain = plain_frame(self.layout, rows, OP, INSTANT, SEQ, GROUP)
        build = replace(
            log_build(self.spark, self.subject, self.layout, opened.store, transaction),
            keeps_instants=True,
            keeps_deletes=True,
        )
        return self._written(plain.repartition(1, plain.columns[-1]), build)

    def _written(self, plain: DataFrame, build: LogBuild) -> list[FileReport]:
        return list(written_files(self.spark, "compaction", self.progress, plain, build.__call__))


def deletes_since(instant: str, hours: float) -> str:
    """Returns the instant since which a compaction at the given instant keeps deletes."""
    return instant_of(max(0, instant_ms(instant) - int(hours * 3_600_000)))
