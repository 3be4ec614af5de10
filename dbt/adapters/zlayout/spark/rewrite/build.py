"""The reduce side of a rewrite: turns blobs, which arrive in the order of a file's leaves, into row groups.

Tasks that write files report each one, see `written_files`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.zlayout.curve.model import CurveModel, PartitionKey
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.index.bloom.file_filters import filter_table
from dbt.adapters.zlayout.index.lookup.lookup_key import run_bytes
from dbt.adapters.zlayout.index.statistics.partitions import partition_folder
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.files.file_report import REPORT_SCHEMA, FileReport, Tracking, filter_piece, piece_of
from dbt.adapters.zlayout.spark.files.parquet_file import (
    Encodings,
    ParquetFile,
    ParquetSettings,
    SpecialFloats,
    WrittenFile,
    float_paths,
    ordered_by,
)
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, run
from dbt.adapters.zlayout.spark.schema.arrow_columns import keep_freed_memory, key_table, table_of
from dbt.adapters.zlayout.store import Store, StoredFile, open_store
from dbt.adapters.zlayout.timeline.files.naming import data_file_path, new_group, scratch_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROW_GROUP_BYTES = 128 << 20
_OVERSIZE = 1.5
# A row group counts as full from this share on: leaves that fill a whole row group hold at least this much.
_NEARLY_FULL = 0.6


@dataclass(frozen=True)
class BuildTask:
    """Task spec: everything that a task needs to write files.

    Attributes:
        schema: Arrow types of the data columns.
        root_uri: URI of the table's folder.
        instant: Instant of the transaction, which the names of the files contain.
        inflight_path: Path of the marker file that exists while the transaction is open.
        keys: Clustering keys.
        model: The curve, as ``CurveModel.to_bytes`` returns it. None if the rows need no ordering.
        target_file_bytes: A file that grows well past this size is closed, and another one follows it.
        row_group_rows: Rows of a row group. Leaves are combined up to this number.
        settings: How to write the files.
        tracking: Columns to report on.
        grouped: Whether the last partition column is not a folder but the file group of the rows. Each file group
            becomes one file.
    """

    schema: pa.Schema
    root_uri: str
    instant: str
    inflight_path: str
    keys: tuple[ColumnPath, ...]
    partition_by: tuple[str, ...]
    model: bytes | None
    target_file_bytes: int
    row_group_rows: int
    settings: ParquetSettings
    tracking: Tracking
    grouped: bool = False

    def __call__(self, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the files of one task. The rows, of ``ROUTED_SCHEMA``, are sorted by part, file, share and leaf."""
        keep_freed_memory()
        for file in self.files(_blobs(incoming)):
            yield file.to_batch()

    def put(self, store: Store, path: str, written: WrittenFile) -> StoredFile:
        """Moves a finished file to its path in the table.

        Raises:
            WriteError: The transaction has ended in the meantime. The file is deleted.
        """
        store.put_file(path, written.local)
        if not store.exists(self.inflight_path):
            # A transaction that ends without a commit deletes the marker first and lists data files then. It may have
            # missed this file.
            store.delete([path])
            raise WriteError(f"transaction {self.instant} has ended; {path} was finished too late and was deleted")
        return store.stat(path)

    def report(
        self,
        store: Store,
        path: str,
        partition: tuple[tuple[str, str | None], ...],
        group: str,
        written: WrittenFile,
    ) -> FileReport:
        """Moves a finished file to its path in the table, and returns its report.

        Raises:
            WriteError: The transaction has ended in the meantime. The file is deleted.
        """
        stored, tracking = self.put(store, path, written), self.tracking
        report = FileReport.of(stored, partition, group, written, tracking)
        if tracking.filtered:
            filters = filter_table([path], tracking.filtered, {name: [each] for name, each in written.filters.items()})
            report = replace(report, filters=filter_piece(store, self.instant, filters))
        if tracking.looked_up:
            hashes = piece_of(store, self.instant, run_bytes(path, written.hashes), "hashes.runs")
            report = replace(report, hashes=hashes)
        return report

    def files(self, blobs: Iterable[tuple[tuple[str, int, int], int, pa.Table]]) -> Iterator[FileReport]:
        """Writes files from ``((part, file, share), leaf, rows)`` in that order, and yields their reports."""
        model = CurveModel.from_bytes(self.model) if self.model is not None else None
        store = open_store(self.root_uri)
        current: tuple[str, int, int] | None = None
        writer: _Writer | None = None
        try:
            for target, leaf, rows in blobs:
                if target != current:
                    if writer is not None:
                        yield from writer.finish()
                    current, writer = target, _Writer(self, store, model, tuple(json.loads(target[0])))
                assert writer is not None
                yield from writer.add(leaf, rows)
            if writer is not None:
                yield from writer.finish()
                writer = None
        finally:
            if writer is not None:
                writer.discard()


def written_files(
    spark: SparkSession,
    phase: str,
    progress: Progress | None,
    frame: DataFrame,
    write: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> tuple[FileReport, ...]:
    """Has each task write the rows of its partition.

    Args:
        phase: As for `run`.
        progress: As for `run`.
        frame: The rows.
        write: The work of a task: takes rows and yields a report of each file.

    Returns:
        The reports of all tasks.
    """
    reports = frame.mapInArrow(write, REPORT_SCHEMA)
    return tuple(FileReport.of_row(row) for row in run(spark, phase, progress, reports.collect))


class _Writer:
    """Collects leaves into row groups, and row groups into files of one partition."""

    def __init__(self, build: BuildTask, store: Store, model: CurveModel | None, key: PartitionKey) -> None:
        self._build, self._store, self._model, self._key = build, store, model, key
        self._leaf: int | None = None
        self._held: list[pa.Table] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._file: ParquetFile | None = None
        self._float_paths = float_paths(build.schema)
        # A file group is one file. No second file can be started when a NaN or a -0.0 turns up late.
        floats = frozenset(self._float_paths if build.grouped else ())
        self._special_floats = SpecialFloats(floats, floats)

    def add(self, leaf: int, rows: pa.Table) -> Iterator[FileReport]:
        wanted = self._build.row_group_rows
        full = self._held_rows >= _NEARLY_FULL * wanted or self._held_rows + rows.num_rows > 1.25 * wanted
        if self._held and ((full and leaf != self._leaf) or self._held_bytes + rows.nbytes > _ROW_GROUP_BYTES):
            yield from self._flush()
        self._leaf = leaf
        self._held.append(rows)
        self._held_rows += rows.num_rows
        self._held_bytes += rows.nbytes

    def finish(self) -> Iterator[FileReport]:
        yield from self._flush()
        if self._file is not None:
            yield self._close(self._file)

    def discard(self) -> None:
        if self._file is not None:
            self._file.discard()

    def _flush(self) -> Iterator[FileReport]:
        if not self._held:
            return
        rows = pa.concat_tables(self._held).unify_dictionaries()
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        if self._model is not None:
            rows = ordered_by(rows, self._model.curve_values(key_table(rows, self._build.keys).columns))
        file, most_rows = self._file, self._build.row_group_rows * 2
        self._special_floats = self._special_floats.plus(SpecialFloats.of(rows, self._float_paths))
        if file is not None and (
            file.bytes_so_far() > _OVERSIZE * self._build.target_file_bytes
            or not self._special_floats.within(file.special_floats)
        ):
            yield self._close(file)
            file = None
        if file is None:
            build = self._build
            local = self._store.local_scratch() / scratch_name(build.instant, "parquet")
            data = rows.select(build.schema.names)
            encodings = Encodings.of(data.slice(0, most_rows), build.settings.codec)
            tracking, special = build.tracking, self._special_floats
            file = ParquetFile(
                local,
                data.schema,
                build.settings,
                tracking.required,
                special,
                min(rows.num_rows, most_rows),
                encodings,
                tracking.filtered,
                tracking.looked_up,
            )
        self._file = file
        for start in range(0, rows.num_rows, most_rows):
            file.write_row_group(rows.slice(start, most_rows))

    def _close(self, file: ParquetFile) -> FileReport:
        self._file = None
        written = file.close()
        values = tuple(zip(self._build.partition_by, self._key, strict=True))
        group = new_group()
        if self._build.grouped:
            *folders, (_, named) = values
            values, group = tuple(folders), str(named)
        path = data_file_path(partition_folder(values) if values else "", group, self._build.instant)
        return self._build.report(self._store, path, values, group, written)


def _blobs(incoming: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[str, int, int], int, pa.Table]]:
    for batch in incoming:
        columns = {name: batch.column(name) for name in ("part", "file", "share", "leaf", "blob")}
        for row in range(batch.num_rows):
            target = (columns["part"][row].as_py(), columns["file"][row].as_py(), columns["share"][row].as_py())
            yield target, columns["leaf"][row].as_py(), table_of(columns["blob"][row].as_buffer())
