"""Writes a query's rows as files of a table, along its curve, with the writer that supports their types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions

from dbt.adapters.zlayout.curve.model import CurveModel, PartitionKey
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.index.statistics.partitions import NULL_FOLDER
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.spark.files.file_report import FileReport, Tracking
from dbt.adapters.zlayout.spark.files.parquet_file import ParquetSettings
from dbt.adapters.zlayout.spark.jobs.jobs import (
    Progress,
    failing_as_write_error,
    in_session,
    numbered_tasks,
    rewrite_session,
    writing_session,
)
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.rewrite.arrow_rows import RowWriter, Written
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask, written_files
from dbt.adapters.zlayout.spark.rewrite.spark_rows import SparkRowWriter
from dbt.adapters.zlayout.spark.schema.arrow_columns import typed
from dbt.adapters.zlayout.spark.schema.table_schema import type_at
from dbt.adapters.zlayout.spark.schema.types import SparkField, arrow_carries, fields_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.naming import staging_folder
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class OrderedTask:
    """Task spec: everything that a task needs to write rows in their order.

    Attributes:
        build: How to write files. It has no curve.
        partition: The partition of the rows.
    """

    build: BuildTask
    partition: PartitionKey

    def of_rows(self, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the rows of a task, which are the table's data columns, as one file, or as more if they are many."""
        tables = (
            pa.Table.from_batches([typed(batch, self.build.schema)], self.build.schema)
            for batch in incoming
            if batch.num_rows
        )
        yield from self._written(0, tables)

    def of_units(self, source: ArrowSource, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes each unit of a source as a file. The incoming rows are numbers of units."""
        for number in (number for batch in incoming for number in batch.column(0).to_pylist()):
            yield from self._written(number, (rows for rows in source.tables([number]) if rows.num_rows))

    def _written(self, file: int, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        target = (json.dumps(self.partition), file, 0)
        # The leaves only rise. So a row group ends where it is full.
        for report in self.build.files((target, leaf, rows) for leaf, rows in enumerate(tables)):
            yield report.to_batch()


DEFAULT_ROW_GROUP_ROWS = 1 << 17
_ROWS_IN_A_BATCH = "10000"


def needs_spark(layout: TableLayout) -> bool:
    """Returns whether Spark's own writer must write a table's files, by its settings or because Arrow lacks a type."""
    return layout.config.writing.writer == "spark" or not arrow_carries(layout.data_json)


def parquet_settings(layout: TableLayout, spark: SparkSession) -> ParquetSettings:
    """Returns the settings with which Arrow writes a table's files."""
    return ParquetSettings(layout.config.writing.compression, layout.data_json, str(spark.version))


@dataclass(frozen=True)
class FileWriter:
    """Writes rows for one table.

    Attributes:
        spark: The session of the query.
        layout: Layout of the table's files.
        not_null: Top-level columns that must not hold nulls, by the contract.
        unique_key: Key columns of a merge_on_read table, which must not hold nulls either.
    """

    spark: SparkSession
    subject: str
    layout: TableLayout
    not_null: Sequence[str] = ()
    progress: Progress | None = None
    unique_key: Sequence[str] = ()

    def write(
        self,
        store: Store,
        transaction: Transaction,
        frame: DataFrame,
        *,
        cuts: CurveModel | None = None,
        along: CurveModel | None = None,
    ) -> Written:
        """Runs the query once and writes its rows. Readers see nothing of them yet.

        Args:
            frame: The query, with the layout's columns in any order.
            cuts: A stored curve whose cuts fit these rows, so that one data pass is enough.
            along: A stored curve for the rows to follow, with new cuts.

        Raises:
            WriteError: The query failed, or a required column holds nulls.
        """
        build = self.build(store, transaction)
        if needs_spark(self.layout):
            return self._written(lambda: self._spark_writer(build).write(self._columns_of_table(frame)))
        return self._written(lambda: self.arrow_writer(build).write(plain_frame(self.layout, frame), cuts, along))

    def rewrite(self, store: Store, transaction: Transaction, source: ArrowSource, cuts: CurveModel) -> Written:
        """Rewrites the rows of files. Readers see nothing of the new files yet.

        Args:
            source: The files to rewrite.
            cuts: A curve with cuts for their rows.

        Raises:
            WriteError: Rows could not be read or written.
        """
        return self._written(lambda: self.arrow_writer(self.build(store, transaction)).rewrite(source, cuts))

    def pack(self, store: Store, transaction: Transaction, source: ArrowSource, row_group_rows: int | None) -> Written:
        """Writes each unit of a source as a file, with its rows in their order. Readers see nothing of them yet.

        Args:
            source: The files to rewrite. All are of one partition.
            row_group_rows: Rows of a row group. None for the default.

        Raises:
            WriteError: Rows could not be read or written.
        """
        task = self._ordered_task(store, transaction, source.partition, row_group_rows)

        def write() -> Written:
            numbers = numbered_tasks(rewrite_session(self.spark), len(source.units))
            write_units = partial(task.of_units, source)
            return Written(written_files(self.spark, "write", self.progress, numbers, write_units), None, 1, {})

        return self._written(write)

    def write_in_order(
        self,
        store: Store,
        transaction: Transaction,
        frame: DataFrame,
        arrange: Callable[[DataFrame], DataFrame],
        partition: PartitionKey,
        row_group_rows: int | None,
        rows_per_file: int,
    ) -> Written:
        """Writes each task's rows as a file, in the order of the rows. Readers see nothing of them yet.

        Args:
            frame: Rows of one partition, with the layout's data columns and perhaps others.
            arrange: Spreads these rows over tasks and sorts them.
            partition: The partition of the rows.
            row_group_rows: Rows of a row group. None for the default.
            rows_per_file: Expected number of rows of a file of the target size.

        Raises:
            WriteError: Rows could not be read or written.
        """
        task = self._ordered_task(store, transaction, partition, row_group_rows)
        names = [backquoted(name) for name in _data_names(self.layout)]

        def write() -> Written:
            if needs_spark(self.layout):
                session = writing_session(self.spark)
                session.conf.set("spark.sql.adaptive.enabled", "false")
                rows = arrange(in_session(frame, session)).selectExpr(*names)
                return self._spark_writer(task.build).write_in_order(rows, partition, rows_per_file)
            session = rewrite_session(self.spark)
            session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _ROWS_IN_A_BATCH)
            rows = arrange(in_session(frame, session))
            rows = rows.selectExpr(*(f"{name} as c{number}" for number, name in enumerate(names)))
            return Written(written_files(session, "write", self.progress, rows, task.of_rows), None, 1, {})

        return self._written(write)

    def _ordered_task(
        self, store: Store, transaction: Transaction, partition: PartitionKey, row_group_rows: int | None
    ) -> OrderedTask:
        build = self.build(store, transaction)
        return OrderedTask(replace(build, row_group_rows=row_group_rows or build.row_group_rows), partition)

    def _written(self, write: Callable[[], Written]) -> Written:
        use_driver_python(self.spark)
        with failing_as_write_error(self.subject):
            written = write()
        self._check_required(written.files)
        return written

    def build(self, store: Store, transaction: Transaction) -> BuildTask:
        """Returns the task spec for writing files."""
        layout, sizing = self.layout, self.layout.config.file_sizing
        return BuildTask(
            schema=layout.data_schema,
            root_uri=store.root_uri,
            instant=transaction.instant,
            inflight_path=transaction.inflight_path,
            keys=layout.keys,
            partition_by=layout.partition_by,
            model=None,
            target_file_bytes=sizing.target_file_bytes,
            row_group_rows=sizing.row_group_rows or DEFAULT_ROW_GROUP_ROWS,
            settings=parquet_settings(layout, self.spark),
            tracking=Tracking(layout.tracked, self._required, layout.filtered, layout.looked_up),
        )

    def arrow_writer(self, build: BuildTask) -> RowWriter:
        """Returns a writer that writes rows of `plain_frame` with Arrow."""
        text = [pa.field(name, pa.string()) for name in build.partition_by]
        return RowWriter(
            spark=self.spark,
            build=build,
            schema=pa.schema([*build.schema, *text]),
            curve=self.layout.config.clustering.curve,
            row_group_rows=self.layout.config.file_sizing.row_group_rows,
            staging=staging_folder(build.instant),
            progress=self.progress,
            asked=self.layout.config.clustering.asked,
        )

    def _spark_writer(self, build: BuildTask) -> SparkRowWriter:
        tops = dict.fromkeys(path[0] for path in build.keys)
        return SparkRowWriter(
            spark=self.spark,
            build=build,
            key_schema=pa.schema([build.schema.field(name) for name in tops]),
            key_types=tuple(type_at(build.schema, path) for path in build.keys),
            curve=self.layout.config.clustering.curve,
            row_group_rows=self.layout.config.file_sizing.row_group_rows,
            staging=staging_folder(build.instant),
            required=self._required,
            progress=self.progress,
            asked=self.layout.config.clustering.asked,
        )

    def _columns_of_table(self, frame: DataFrame) -> DataFrame:
        """Returns the query's columns in the order of the table's columns."""
        folders = (
            _checked_value(each, functions.col(backquoted(each.name))).alias(each.name)
            for each in _folder_fields(self.layout)
        )
        return frame.select(*(functions.col(backquoted(name)) for name in _data_names(self.layout)), *folders)

    @property
    def _required(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.unique_key, *self.not_null)))

    def _check_required(self, files: Sequence[FileReport]) -> None:
        counts: dict[str, int] = {}
        for report in files:
            for name, nulls in report.nulls.items():
                counts[name] = counts.get(name, 0) + nulls
        check_whole({name: count for name, count in counts.items() if name in self.unique_key}, self.subject)
        check_not_null(self.subject, counts)


def plain_frame(layout: TableLayout, frame: DataFrame, *further: str) -> DataFrame:
    """Returns rows to send to Python, under plain names, because ``mapInArrow`` treats a dot as a field of a struct.

    Args:
        frame: Rows with the table's columns, in any order.
        further: Columns that follow those of the table.

    Returns:
        The data columns, the partition columns as text, then the further columns.
    """
    fields = _folder_fields(layout)
    one_zero = layout.config.table_type.merges_on_read
    checked = [_checked_value(each, _folder_text(each, one_zero=one_zero)) for each in fields]
    if fields:
        frame = frame.withColumns({each.name: column for each, column in zip(fields, checked, strict=True)})
    names = [*map(backquoted, (*_data_names(layout), *layout.partition_by)), *further]
    return frame.selectExpr(*(f"{name} as c{number}" for number, name in enumerate(names)))


def check_whole(nulls: Mapping[str, int], subject: str) -> None:
    """Checks that no key column holds a null.

    Args:
        nulls: Number of rows in which a key column is null, by its name.

    Raises:
        WriteError: A key column holds nulls. The message counts them.
    """
    if wrong := [f"{name} is null in {counted(count, 'row')}" for name, count in nulls.items() if count]:
        raise WriteError(
            f"{subject}: unique_key: {', '.join(wrong)}; every key column of a merge_on_read table needs a value. "
            "The table is unchanged"
        )


def check_not_null(subject: str, nulls: Mapping[str, int]) -> None:
    """Checks that no required column holds a null.

    Args:
        nulls: Number of rows in which a required column is null, by its name.

    Raises:
        WriteError: A required column holds nulls. The message names the columns and counts their nulls.
    """
    if wrong := [f"{backquoted(name)} is null in {counted(count, 'row')}" for name, count in nulls.items() if count]:
        raise WriteError(f"{subject}: {', '.join(wrong)}, but the contract says not_null; the table is unchanged")


def _folder_fields(layout: TableLayout) -> list[SparkField]:
    by_name = {each.name: each for each in fields_of(layout.partition_json)}
    return [by_name[name] for name in layout.partition_by]


def _folder_text(field: SparkField, *, one_zero: bool) -> Column:
    """Returns a partition value as text. With ``one_zero``, both zeros are in one folder, as they are one key."""
    value = functions.col(backquoted(field.name))
    if one_zero and field.spark_type in ("float", "double"):
        value = functions.when(value == 0, functions.lit(0).cast(field.spark_type)).otherwise(value)
    return value.cast("string")


def _checked_value(field: SparkField, result: Column) -> Column:
    """Returns an expression that raises an error if a folder name cannot represent a row's partition value."""
    value = functions.col(backquoted(field.name))
    text = value.cast("string")
    if field.spark_type == "timestamp":
        lost = ~text.cast("timestamp").eqNullSafe(value)
        parts: list[str | Column] = [
            f"partition column {field.name}: the clocks of ",
            functions.current_timezone(),
            " show ",
            text,
            " twice, and the name of a folder does not say which it is; ",
            "partition by a date or by text, or set spark.sql.session.timeZone to UTC",
        ]
    elif field.arrow_type == pa.string():
        lost = text == NULL_FOLDER
        parts = [
            f"partition column {field.name}: the text '{NULL_FOLDER}' means null in the name of a folder; ",
            "write null or another text",
        ]
    else:
        return result
    message = functions.concat(*(functions.lit(each) if isinstance(each, str) else each for each in parts))
    return functions.when(lost, functions.raise_error(message)).otherwise(result)


def _data_names(layout: TableLayout) -> list[str]:
    return [each.name for each in fields_of(layout.data_json)]
