"""Merges file slices one by one inside tasks, with Arrow: base rows keep their order, and no row enters the JVM.

The result is the same as that of the query `RecordView.merged`. That query still handles keys that Arrow and Spark
compare differently, files that Spark reads differently, and log files that do not fit into the memory of a task.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.table_type import DELETE, INSTANT, OP, SEQ, UPSERT
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.layout.compaction_plan import CompactionOperation
from dbt.adapters.zlayout.quantities import counted, size_text
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource, in_schema
from dbt.adapters.zlayout.spark.files.file_report import FileReport
from dbt.adapters.zlayout.spark.files.parquet_file import ordered_by
from dbt.adapters.zlayout.spark.jobs.jobs import (
    Progress,
    failing_as_write_error,
    numbered_tasks,
    rewrite_session,
)
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.read.record_tables import file_groups, queried, record_view
from dbt.adapters.zlayout.spark.read.relations import frame_of, with_file
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask, written_files
from dbt.adapters.zlayout.spark.rewrite.file_writer import DEFAULT_ROW_GROUP_ROWS, FileWriter, needs_spark, plain_frame
from dbt.adapters.zlayout.spark.rewrite.log_writer import LogBuild, log_build
from dbt.adapters.zlayout.spark.schema.arrow_columns import key_table
from dbt.adapters.zlayout.spark.schema.table_schema import FILE, GROUP, with_log_columns
from dbt.adapters.zlayout.spark.schema.types import arrow_schema, fields_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store, open_store
from dbt.adapters.zlayout.timeline.files.instant import hours_before
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# Limit for the log records of one slice, which are held in memory. Base rows are read one row group at a time.
_MOST_LOG_BYTES = 256 << 20
_ROW, _RANK = "__zl_row", "__zl_rank"


def _agree_on_keys(keys: Sequence[str], data_json: str) -> bool:
    """Returns whether Arrow and Spark agree on which record keys are equal.

    Args:
        keys: Names of the key columns. Partition columns among them have a single value within a slice.
        data_json: Spark's JSON of the data columns.
    """
    fields = [field for field in fields_of(data_json) if field.name in keys]
    # They disagree on -0.0, on NaN, and on texts that a collation treats as equal.
    return bool(fields) and not any(
        field.collated
        or field.arrow_type is None
        or field.arrow_type.num_fields
        or pa.types.is_floating(field.arrow_type)
        for field in fields
    )


@dataclass(frozen=True)
class _SliceMerge:
    """Task spec: everything that a task needs to merge its slices.

    Attributes:
        build: How to write files, one per file group. Its last partition column is the file group.
        keys: Data columns of the record key.
        log_schema: Arrow schema of log files.
        slices: All slices. Task n takes slices n, n + tasks, ….
    """

    build: BuildTask
    keys: tuple[str, ...]
    log_schema: pa.Schema
    slices: tuple[CompactionOperation, ...]
    tasks: int

    def __call__(self, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the files of one task. The incoming rows are task numbers.

        A slice gets no file if it is left to Spark, or if no row of it remains.
        """
        numbers = (number for batch in incoming for number in batch.column(0).to_pylist())
        store = open_store(self.build.root_uri)
        model = CurveModel.from_bytes(self.build.model) if self.build.model is not None else None
        for number in numbers:
            for each in self.slices[number :: self.tasks]:
                target = (json.dumps([*(value for _, value in each.partition), each.group]), 0, 0)
                merged = (rows for rows in self._merged(store, each, model) if rows.num_rows)
                # The rows already follow the curve.
                files = replace(self.build, model=None).files((target, leaf, rows) for leaf, rows in enumerate(merged))
                yield from (report.to_batch() for report in files)

    def _merged(self, store: Store, slice_: CompactionOperation, model: CurveModel | None) -> Iterator[pa.Table]:
        """Yields the rows of a slice in tables of about one row group, or nothing if Spark has to read the slice."""
        logs = ArrowSource.of(store, slice_.logs, self.log_schema, ())
        base = ArrowSource.of(store, [slice_.base], self.build.schema, ()) if slice_.base is not None else None
        if logs is None or (base is None and slice_.base is not None):
            return
        records = _held(logs.tables(range(len(logs.units))))
        if records is None:
            return
        newest = self._newest(records)
        replaced = in_schema(newest.select(self.keys), self._key_schema)
        came = newest.filter(pc.equal(newest[OP].cast(pa.string()), UPSERT)).select(self.build.schema.names)
        if base is not None:
            yield from self._with_base(base, replaced, in_schema(came, base.schema), model)
        else:
            yield from self._in_row_groups(ordered_by(came, self._places(came, model)))

    def _newest(self, records: pa.Table) -> pa.Table:
        """Returns the newest upsert or delete of each key."""
        keys = in_schema(records.select(self.keys), self._key_schema)
        ranked = keys.append_column(INSTANT, records[INSTANT]).append_column(_ROW, _numbers(records))
        ranked = ranked.filter(pc.is_in(records[OP].cast(pa.string()), value_set=pa.array([UPSERT, DELETE])))
        ranked = ranked.sort_by(INSTANT)
        ranked = ranked.append_column(_RANK, _numbers(ranked))
        # One thread, because a task has one core. It also makes the order the same in each attempt.
        last = ranked.group_by(list(self.keys), use_threads=False).aggregate([(_RANK, "max")])[f"{_RANK}_max"]
        return records.take(ranked[_ROW].take(last).combine_chunks())

    @property
    def _key_schema(self) -> pa.Schema:
        return pa.schema([self.log_schema.field(name) for name in self.keys])

    def _with_base(
        self, base: ArrowSource, replaced: pa.Table, came: pa.Table, model: CurveModel | None
    ) -> Iterator[pa.Table]:
        places = self._places(came, model)
        came, places = ordered_by(came, places), np.sort(places)
        done = 0
        for rows in base.tables(range(len(base.units))):
            kept = rows.filter(self._keeps(rows, replaced))
            end = done
            if model is not None and rows.num_rows:
                # New rows up to the last of these base rows are sorted in. Without a curve, new rows go to the end.
                last = self._places(rows.slice(rows.num_rows - 1), model)[0]
                end = max(done, int(np.searchsorted(places, last, "right")))
            if end > done:
                kept = pa.concat_tables([kept, came.slice(done, end - done)]).unify_dictionaries()
                kept = ordered_by(kept, self._places(kept, model))
            done = end
            yield from self._in_row_groups(kept)
        yield from self._in_row_groups(came.slice(done))

    def _keeps(self, rows: pa.Table, replaced: pa.Table) -> pa.ChunkedArray | pa.Array:
        """Returns a mask over the base rows: True if no log record replaces the row."""
        keys = in_schema(rows.select(self.keys), self._key_schema)
        if len(self.keys) == 1:
            return pc.invert(pc.is_in(keys[0], value_set=replaced[0].combine_chunks()))
        numbered = keys.append_column(_ROW, _numbers(keys))
        left = numbered.join(replaced, list(self.keys), join_type="left anti", use_threads=False)
        found = np.zeros(rows.num_rows, bool)
        found[left[_ROW].to_numpy()] = True
        return pa.array(found)

    def _places(self, rows: pa.Table, model: CurveModel | None) -> npt.NDArray[np.uint64]:
        """Returns the position of each row on the curve, or zeros without a curve."""
        if model is None:
            return np.zeros(rows.num_rows, np.uint64)
        return model.curve_values(key_table(rows, self.build.keys).columns)

    def _in_row_groups(self, rows: pa.Table) -> Iterator[pa.Table]:
        for start in range(0, rows.num_rows, self.build.row_group_rows):
            yield rows.slice(start, self.build.row_group_rows)


def _held(tables: Iterable[pa.Table]) -> pa.Table | None:
    """Returns the tables as one table, or None if they take too much memory."""
    found, size_bytes = [], 0
    for each in tables:
        found.append(each)
        size_bytes += each.nbytes
        if size_bytes > _MOST_LOG_BYTES:
            return None
    return pa.concat_tables(found).unify_dictionaries()


def _numbers(rows: pa.Table) -> pa.Array:
    return pa.array(np.arange(rows.num_rows))


# A file group stays one file, however large: new rows go to other groups long before this size.
_ONE_FILE_BYTES = 1 << 40
_TASK_BYTES = 64 << 20
_TASKS_PER_CORE = 4


@dataclass(frozen=True)
class SliceWriter:
    """Writes the file slices of a plan.

    Attributes:
        layout: Layout of the table's files.
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
        return file_groups(catalog, opened, with_file(frame_of(catalog, opened, chosen))).drop(FILE)

    def _merged_in_tasks(
        self,
        opened: TableSnapshot,
        operations: Sequence[CompactionOperation],
        transaction: Transaction,
        model: CurveModel | None,
    ) -> list[FileReport]:
        """Merges slices inside tasks, one slice at a time. Slices that need Spark get no file here."""
        layout, keys = self.layout, self.layout.config.table_type.unique_key
        if not operations or needs_spark(layout) or not _agree_on_keys(keys, layout.data_json):
            return []
        if model is None and layout.keys:
            return []
        # The largest slices come first, so that the tasks end at about the same time.
        slices = sorted(operations, key=lambda each: -each.size_bytes)
        least = _TASKS_PER_CORE * int(self.spark.sparkContext.defaultParallelism)
        tasks = min(len(slices), max(least, sum(each.size_bytes for each in slices) // _TASK_BYTES))
        merge = _SliceMerge(
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
        numbers = numbered_tasks(rewrite_session(self.spark), tasks)
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
        return wanted or (model.row_group_rows if model is not None else DEFAULT_ROW_GROUP_ROWS)

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
        since = hours_before(transaction.instant, table_type.retain_deletes_hours)
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
