"""Delta commits: one commit writes changed rows as log files and many new rows as base files. It rewrites no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt.adapters.zlayout.config.table_type import OP
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.errors import UnsupportedError, WriteError
from dbt.adapters.zlayout.spark.files.write_summary import Timed
from dbt.adapters.zlayout.spark.jobs.jobs import failing_as_write_error
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.merge_on_read.tagging import Records
from dbt.adapters.zlayout.spark.rewrite.build import written_files
from dbt.adapters.zlayout.spark.rewrite.file_writer import FileWriter, check_not_null, needs_spark, plain_frame
from dbt.adapters.zlayout.spark.rewrite.log_writer import log_build
from dbt.adapters.zlayout.spark.rewrite.rows import Written
from dbt.adapters.zlayout.spark.schema.table_schema import GROUP
from dbt.adapters.zlayout.spark.write.change_plan import Target
from dbt.adapters.zlayout.spark.write.incoming_keys import null_counts
from dbt.adapters.zlayout.spark.write.incoming_rows import upserts_of
from dbt.adapters.zlayout.spark.write.modify import Outcome, Plan, RowChange
from dbt.adapters.zlayout.timeline.files.action import Action
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS_OF_ONE_TASK = 200_000

DeltaPlan = Plan[Records]


class DeltaCommit(RowChange[Records]):
    """One change of rows of a merge-on-read table."""

    merges_on_read = True

    def _action(self) -> Action:
        return Action.DELTACOMMIT

    def _outcome(self, target: Target, rows: DataFrame | None, transaction: Transaction) -> Outcome:
        layout = target.layout
        if needs_spark(layout):
            raise UnsupportedError(
                f"{self.subject}: logs are written with Arrow, which does not support the type of a column; set "
                "table_type to copy_on_write"
            )
        if rows is not None and self.wanted.not_null:
            rows = self._checked(rows)
        with Timed(self.phases, "plan"):
            records = self.plan(target, rows)
        along = (
            layout.stored_model(target.opened.store, target.opened.snapshot) if records.new_rows is not None else None
        )
        written = Written((), None, 0, {})
        if records.total or records.new_rows is not None:
            written = self._written(target, records, along, transaction)
        return Outcome(written, (), lambda *_: records.counts, records.key_conflict, keeps_curve=along is not None)

    def _checked(self, rows: DataFrame) -> DataFrame:
        rows = rows.localCheckpoint(eager=True)
        check_not_null(self.subject, null_counts(upserts_of(rows), self.wanted.not_null))
        return rows

    def _written(self, target: Target, records: Records, along: CurveModel | None, transaction: Transaction) -> Written:
        logs = self._logs(target, records, transaction) if records.total else Written((), None, 1, {})
        if records.new_rows is None:
            return logs
        writer = FileWriter(self.spark, self.subject, target.layout, progress=self.wanted.progress)
        bases = writer.write(target.opened.store, transaction, records.new_rows, along=along)
        phases = {
            name: logs.phases.get(name, 0.0) + bases.phases.get(name, 0.0) for name in {**logs.phases, **bases.phases}
        }
        return Written((*logs.files, *bases.files), bases.model, bases.data_passes, phases)

    def _logs(self, target: Target, records: Records, transaction: Transaction) -> Written:
        layout = target.layout
        build = log_build(self.spark, self.subject, layout, target.opened.store, transaction)
        count = records.total
        plain = plain_frame(layout, records.frame, OP, GROUP)
        phases: dict[str, float] = {}
        use_driver_python(self.spark)
        with failing_as_write_error(self.subject), Timed(phases, "write"):
            tasks = 1 if count <= _ROWS_OF_ONE_TASK else int(self.spark.sparkContext.defaultParallelism)
            spread = plain.coalesce(1) if tasks == 1 else plain.repartition(tasks, plain.columns[-1])
            files = written_files(self.spark, "write", self.wanted.progress, spread, build.__call__)
        if (written := sum(each.file.row_count for each in files)) != count:
            raise WriteError(
                f"{self.subject}: {count:,} records were read and {written:,} written; nothing was committed"
            )
        return Written(files, None, 1, phases)
