"""Writes the files of a clustering: each clustering group becomes new files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.quantities import counted, size_text
from dbt.adapters.zlayout.spark.catalog.schema_evolution import cast_to
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.cluster.planning import CutGroup, CutPlan
from dbt.adapters.zlayout.spark.files.checksum import check_same_rows
from dbt.adapters.zlayout.spark.files.written_file import FileReport
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, failing_as_write_error
from dbt.adapters.zlayout.spark.read.relations import frame_of
from dbt.adapters.zlayout.spark.rewrite.file_writer import FileWriter
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WrittenGroup = tuple[CutGroup, tuple[FileReport, ...]]


@dataclass(frozen=True)
class GroupWriter:
    """Writes the groups of a plan.

    Attributes:
        spark: The session.
        subject: Name of the table, for error messages.
        plan: The plan that the groups belong to.
        verify: Compare checksums of all columns before and after.
        progress: Called with one line per group.
    """

    spark: SparkSession
    subject: str
    plan: CutPlan
    verify: bool = False
    progress: Progress | None = None

    def write(self, cut: CutGroup, transaction: Transaction) -> tuple[FileReport, ...]:
        """Writes the rows of a group as new files. Readers see nothing of them yet. Threads may call this concurrently.

        Raises:
            WriteError: Rows could not be read or written, or differ after the rewrite.
        """
        with failing_as_write_error(self.subject):
            files = self._rewritten(cut, transaction)
        if self.progress is not None:
            number, total = self.plan.groups.index(cut) + 1, len(self.plan.groups)
            place = f" ({cut.told.partition})" if cut.told.partition else ""
            size = sum(each.file.size_bytes for each in files)
            self.progress(
                f"group {number:,} of {total:,}{place}: {counted(len(cut.told.paths), 'file')} "
                f"({size_text(cut.told.size_bytes)}) → {counted(len(files), 'file')} ({size_text(size)})"
            )
        return files

    def _rewritten(self, cut: CutGroup, transaction: Transaction) -> tuple[FileReport, ...]:
        survey, layout = self.plan.survey, self.plan.survey.layout
        writer, store = FileWriter(self.spark, self.subject, layout), survey.opened.store
        if cut.source is not None and cut.model is not None:
            written = writer.rewrite(store, transaction, cut.source, cut.model)
        else:
            written = writer.write(store, transaction, self._rows(cut), cuts=cut.model)
        count = sum(each.file.row_count for each in written.files)
        if count != cut.told.rows:
            raise WriteError(
                f"{self.subject}: {cut.told.rows:,} rows were to be clustered and {count:,} written; they stay as they "
                "are"
            )
        if self.verify:
            files = DataFiles.of([each.file for each in written.files], layout.partition_by)
            fresh = survey.opened.with_files(files)
            after = frame_of(Catalog(self.spark), fresh, np.ones(len(files), bool))
            check_same_rows(self._rows(cut), after, self.subject)
        return written.files

    def _rows(self, cut: CutGroup) -> DataFrame:
        """Returns the rows of a group as Spark reads them."""
        survey = self.plan.survey
        return cast_to(frame_of(Catalog(self.spark), survey.opened, cut.files), survey.layout.schema_json)
