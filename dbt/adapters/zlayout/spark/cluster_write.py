"""The writing half of clustering: groups of files become new files, several groups at a time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.spark.catalog import Catalog
from dbt.adapters.zlayout.spark.checksum import check_same_rows
from dbt.adapters.zlayout.spark.cluster_plan import CutGroup, CutPlan
from dbt.adapters.zlayout.spark.file_writer import FileWriter
from dbt.adapters.zlayout.spark.files_written import FileReport
from dbt.adapters.zlayout.spark.jobs import Progress
from dbt.adapters.zlayout.spark.relations import frame_of
from dbt.adapters.zlayout.spark.schema_change import cast_to
from dbt.adapters.zlayout.timeline.files import DataFiles
from dbt.adapters.zlayout.timeline.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WrittenGroup = tuple[CutGroup, tuple[FileReport, ...]]


@dataclass(frozen=True)
class GroupWriter:
    """Writes the groups of a plan.

    Attributes:
        spark: The session.
        subject: The table, for errors.
        at_once: So many groups at the same time.
        verify: Compare checksums of all columns.
        progress: Takes a line a group.
    """

    spark: SparkSession
    subject: str
    at_once: int = 1
    verify: bool = False
    progress: Progress | None = None

    def write_all(self, plan: CutPlan, groups: Sequence[CutGroup], transaction: Transaction) -> list[WrittenGroup]:
        """Writes groups; nothing is visible yet.

        Raises:
            WriteError: Rows could not be read or written, or are not the same afterwards.
        """
        numbered = list(enumerate(groups, 1))
        layout = plan.survey.layout
        # Rows that are staged on the way share one folder.
        staged = not layout.keys or layout.config.writing.writer == "spark"
        if staged or self.at_once == 1 or len(groups) <= 1:
            return [self._write(plan, transaction, number, len(groups), cut) for number, cut in numbered]
        with ThreadPoolExecutor(min(self.at_once, len(groups))) as pool:
            waiting = [
                pool.submit(self._write, plan, transaction, number, len(groups), cut) for number, cut in numbered
            ]
            return [each.result() for each in waiting]

    def _write(self, plan: CutPlan, transaction: Transaction, number: int, total: int, cut: CutGroup) -> WrittenGroup:
        files = self._rewritten(plan, cut, transaction)
        if self.progress is not None:
            place = f" ({cut.told.partition})" if cut.told.partition else ""
            size = sum(each.file.size_bytes for each in files)
            self.progress(
                f"group {number:,} of {total:,}{place}: {len(cut.told.paths):,} files, {cut.told.size_bytes:,} bytes → "
                f"{len(files):,} files, {size:,} bytes"
            )
        return cut, files

    def _rewritten(self, plan: CutPlan, cut: CutGroup, transaction: Transaction) -> tuple[FileReport, ...]:
        survey, layout = plan.survey, plan.survey.layout
        writer, store = FileWriter(self.spark, self.subject, layout), survey.opened.store
        if cut.source is not None and cut.model is not None:
            written = writer.rewrite(store, transaction, cut.source, cut.model)
        else:
            written = writer.write(store, transaction, self._rows(plan, cut), cuts=cut.model)
        count = sum(each.file.row_count for each in written.files)
        if count != cut.told.rows:
            raise WriteError(
                f"{self.subject}: {cut.told.rows:,} rows were to be clustered and {count:,} written; nothing was "
                "committed"
            )
        if self.verify:
            files = DataFiles.of([each.file for each in written.files], layout.partition_by)
            fresh = survey.opened.with_files(files)
            after = frame_of(Catalog(self.spark), fresh, np.ones(len(files), bool))
            check_same_rows(self._rows(plan, cut), after, self.subject)
        return written.files

    def _rows(self, plan: CutPlan, cut: CutGroup) -> DataFrame:
        """The rows of a group as Spark reads them."""
        rows = frame_of(Catalog(self.spark), plan.survey.opened, cut.files)
        return cast_to(rows, plan.survey.layout.schema_json)
