"""Writes records as log files: each task buffers the rows of its file groups and appends them block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.table_type import DELETE, INSTANT, OP, SEQ
from dbt.adapters.zlayout.index.statistics.partitions import partition_folder
from dbt.adapters.zlayout.spark.files.file_report import FileReport
from dbt.adapters.zlayout.spark.files.parquet_file import ParquetFile, ParquetSettings, SpecialFloats, float_paths
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask
from dbt.adapters.zlayout.spark.rewrite.file_writer import FileWriter
from dbt.adapters.zlayout.spark.schema.table_schema import GROUP, with_log_columns
from dbt.adapters.zlayout.spark.schema.types import arrow_schema
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.store import Store, open_store
from dbt.adapters.zlayout.timeline.files.naming import deletes_file_path, log_file_path, scratch_name
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GroupKey = tuple[str, tuple["str | None", ...]]


@dataclass(frozen=True)
class LogBuild:
    """Task spec: everything that a task needs to write log files.

    Attributes:
        build: How to write files. Its schema includes the log columns.
        sort_by: Columns by which the rows of a block are sorted.
        log_max_bytes: A log file that has reached this size is closed, and another one follows it.
        bucket_buffer_bytes: Buffer limit for one file group.
        buffer_bytes: Buffer limit for all file groups. Past it, the largest buffer is written.
        keeps_deletes: Whether the files hold kept deletes.
        keeps_instants: Whether the records bring their own `INSTANT` and `SEQ`, after `OP`. Otherwise they get those of
            this commit.
    """

    build: BuildTask
    sort_by: tuple[str, ...]
    log_max_bytes: int
    bucket_buffer_bytes: int
    buffer_bytes: int
    keeps_instants: bool = False
    keeps_deletes: bool = False

    def __call__(self, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the log files of one task.

        Args:
            incoming: The table's data columns, its partition columns as text, then `OP` and `GROUP`.
        """
        task = _Task(self, open_store(self.build.root_uri))
        try:
            for batch in incoming:
                for place, rows in self._by_group(batch):
                    yield from (report.to_batch() for report in task.add(place, rows))
            yield from (report.to_batch() for report in task.finish())
        finally:
            task.discard()

    def _by_group(self, batch: pa.RecordBatch) -> Iterator[tuple[GroupKey, pa.Table]]:
        data = [name for name in self.build.schema.names if name not in (OP, INSTANT, SEQ)]
        own = (OP, INSTANT, SEQ) if self.keeps_instants else (OP,)
        names = [*data, *(f"p{number}" for number in range(len(self.build.partition_by))), *own, GROUP]
        rows = pa.Table.from_arrays(batch.columns, names=names)
        parts = [f"p{number}" for number in range(len(self.build.partition_by))]
        groups = rows.select([GROUP, *parts]).group_by([GROUP, *parts], use_threads=False).aggregate([]).to_pylist()
        for place in groups:
            chosen = [_equal(rows[name], value) for name, value in place.items()]
            some = rows.filter(reduce(pc.and_, chosen)) if len(groups) > 1 else rows
            values = tuple(place[name] or None for name in parts)
            yield (place[GROUP], values), some.select([*data, *own])


def _equal(column: pa.ChunkedArray, value: str | None) -> pa.ChunkedArray:
    return pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False)


def log_build(
    spark: SparkSession, subject: str, layout: TableLayout, store: Store, transaction: Transaction
) -> LogBuild:
    """Returns the task spec for writing log files of one table.

    Args:
        layout: Layout of the table's files.
        transaction: The transaction that writes the records.
    """
    table_type, log_json = layout.config.table_type, with_log_columns(layout.data_json)
    build = FileWriter(spark, subject, layout).build(store, transaction)
    settings = ParquetSettings(layout.config.writing.compression, log_json, str(spark.version))
    return LogBuild(
        build=replace(build, schema=arrow_schema(log_json), settings=settings),
        sort_by=tuple(name for name in table_type.unique_key if name in layout.data_schema.names),
        log_max_bytes=table_type.log_max_bytes,
        bucket_buffer_bytes=table_type.bucket_buffer_bytes,
        buffer_bytes=table_type.buffer_bytes,
    )


@dataclass
class _Held:
    tables: list[pa.Table] = field(default_factory=list)
    size_bytes: int = 0
    log: ParquetFile | None = None
    logs: int = 0
    rows: int = 0
    special_floats: SpecialFloats = field(default_factory=SpecialFloats)


class _Task:
    """The buffers and open log files of one task."""

    def __init__(self, how: LogBuild, store: Store) -> None:
        self._how, self._store = how, store
        self._held: dict[GroupKey, _Held] = {}
        self._float_paths = float_paths(how.build.schema)

    def add(self, place: GroupKey, rows: pa.Table) -> Iterator[FileReport]:
        held = self._held.setdefault(place, _Held())
        held.tables.append(rows)
        held.size_bytes += rows.nbytes
        if held.size_bytes > self._how.bucket_buffer_bytes:
            yield from self._flush(place)
        while sum(each.size_bytes for each in self._held.values()) > self._how.buffer_bytes:
            yield from self._flush(max(self._held, key=lambda each: self._held[each].size_bytes))

    def finish(self) -> Iterator[FileReport]:
        for place, held in self._held.items():
            yield from self._flush(place)
            if held.log is not None:
                yield self._close(place)

    def discard(self) -> None:
        for held in self._held.values():
            if held.log is not None:
                held.log.discard()

    def _flush(self, place: GroupKey) -> Iterator[FileReport]:
        held, build = self._held[place], self._how.build
        if not held.tables:
            return
        rows = self._block(held)
        held.tables, held.size_bytes = [], 0
        held.special_floats = held.special_floats.plus(SpecialFloats.of(rows, self._float_paths))
        if held.log is not None and (
            held.log.bytes_so_far() >= self._how.log_max_bytes
            or not held.special_floats.within(held.log.special_floats)
        ):
            yield self._close(place)
        if held.log is None:
            local = self._store.local_scratch() / scratch_name(build.instant, "parquet")
            held.log = ParquetFile(
                local,
                build.schema,
                build.settings,
                build.tracking.required,
                held.special_floats,
                rows.num_rows,
                filtered=build.tracking.filtered,
                looked_up=build.tracking.looked_up,
            )
        held.log.write_row_group(rows)

    def _block(self, held: _Held) -> pa.Table:
        rows = pa.concat_tables(held.tables)
        orderable = [name for name in self._how.sort_by if name in rows.column_names]
        if orderable:
            rows = rows.sort_by([(name, "ascending") for name in orderable])
        if not self._how.keeps_instants:
            numbers = pa.array(range(held.rows, held.rows + rows.num_rows), pa.int64())
            held.rows += rows.num_rows
            instant = pa.array([int(self._how.build.instant)] * rows.num_rows, pa.int64())
            # The footer says how many places are null, and so the index knows how many deletes the log holds.
            places = pc.if_else(pc.equal(rows[OP], DELETE), pa.scalar(None, pa.int64()), numbers)
            rows = rows.append_column(INSTANT, instant).append_column(SEQ, places)
        return rows.select(self._how.build.schema.names).cast(self._how.build.schema)

    def _close(self, place: GroupKey) -> FileReport:
        (group, values), build = place, self._how.build
        held = self._held[place]
        assert held.log is not None
        written, held.log = held.log.close(), None
        partition = tuple(zip(build.partition_by, values, strict=True))
        path_of = deletes_file_path if self._how.keeps_deletes else log_file_path
        path = path_of(partition_folder(partition) if partition else "", group, build.instant, held.logs)
        held.logs += 1
        return build.report(self._store, path, partition, group, written)
