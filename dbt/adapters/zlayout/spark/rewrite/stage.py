"""Staging: runs the model's query once, writes its rows to Arrow files and returns a sample of their keys.

A task with few rows returns them inline in its answer instead, so that a small model is not written twice. A curve is
built from the sample of all tasks.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.curve.model import CurveModel, PartitionKey
from dbt.adapters.zlayout.curve.query_boxes import QueryBoxes
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.spark.files.parquet_file import ParquetSettings, encoded_bytes_per_row
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask
from dbt.adapters.zlayout.spark.schema.arrow_columns import (
    keep_freed_memory,
    key_table,
    table_bytes,
    table_of,
    typed,
)
from dbt.adapters.zlayout.store import Store, open_store
from dbt.adapters.zlayout.timeline.files.naming import scratch_name, staged_under

RESULT_SCHEMA = (
    "path string, rows long, arrow_bytes long, bytes_per_row double, inline binary, "
    "sample binary, sampled_from long, partitions string"
)
_INLINE_BYTES = 64 << 10
_FILE_BYTES = 64 << 20
_BATCH_BYTES = 4 << 20
_MEASURED_ROWS = 50_000
_SAMPLE_ROWS = 1 << 18
_SAMPLE_ROWS_PER_FILE = 1 << 12
_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True)
class StageTask:
    """Task spec: everything that a task needs to stage its rows.

    Attributes:
        schema: Arrow types of the rows. Partition columns come last, as text.
        root_uri: URI of the table's folder.
        folder: The staging folder, relative to the table's folder.
        keys: Clustering keys, for the sample.
        sample_rows: Most rows that a task samples, see `sample_rows`.
        settings: How files will be written, to measure the bytes of a row.
        target_file_bytes: Target size of a file, also to measure the bytes of a row.
        keeps_rows: Whether to stage the rows. Otherwise only the sample and the counts are returned.
    """

    schema: pa.Schema
    root_uri: str
    folder: str
    keys: tuple[ColumnPath, ...]
    partition_by: tuple[str, ...]
    sample_rows: int
    settings: ParquetSettings
    target_file_bytes: int
    keeps_rows: bool = True

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stages the rows of one task. Yields a row of ``RESULT_SCHEMA`` per file, or one row for inline rows."""
        keep_freed_memory()
        sample = _Sample(self.keys, self.partition_by, self.sample_rows)
        counts: dict[tuple[str | None, ...], int] = {}
        held: list[pa.RecordBatch] = []
        held_bytes = 0
        spilled = False
        for raw in batches:
            batch = typed(raw, self.schema)
            if not batch.num_rows:
                continue
            sample.add(batch)
            self._count(batch, counts)
            if not self.keeps_rows:
                continue
            held.append(batch)
            held_bytes += batch.nbytes
            if held_bytes >= _FILE_BYTES:
                yield self._file(held, None, None, measured=not spilled)
                held, held_bytes, spilled = [], 0, True
        if not self.keeps_rows or spilled or held_bytes > _INLINE_BYTES:
            yield self._file(held, sample, counts, measured=not spilled)
        elif held:
            yield self._inline(held, sample, counts)

    def sample_files(self, source: ArrowSource, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Samples units of a source. The task with the first unit also measures the bytes of a row in a file.

        Args:
            source: The files.
            incoming: Numbers of the source's units.
        """
        numbers = [number for batch in incoming for number in batch.column(0).to_pylist()]
        if 0 in numbers:
            rows = source.first_rows(_MEASURED_ROWS)
            yield _answer(None, rows.num_rows, rows.nbytes, self.bytes_per_row(rows), None, None, None)
        yield from self(batch for rows in source.tables(numbers, self.schema.names) for batch in rows.to_batches())

    def _file(
        self,
        batches: list[pa.RecordBatch],
        sample: _Sample | None,
        counts: dict[tuple[str | None, ...], int] | None,
        *,
        measured: bool,
    ) -> pa.RecordBatch:
        path, rows, arrow_bytes, per_row = None, 0, 0, None
        if batches:
            store = open_store(self.root_uri)
            table = pa.Table.from_batches(batches, self.schema).combine_chunks()
            rows, arrow_bytes = table.num_rows, table.nbytes
            path = f"{self.folder}/{uuid.uuid4().hex}.arrow"
            put_staged(store, path, table)
            # To encode rows for that costs as much as to stage some files, so each task does it once.
            per_row = self.bytes_per_row(table) if measured else None
        return _answer(path, rows, arrow_bytes, per_row, None, sample, counts)

    def bytes_per_row(self, rows: pa.Table) -> float:
        """Returns the bytes that a row takes in a file, measured on the first of the given rows."""
        return encoded_bytes_per_row(
            rows.slice(0, _MEASURED_ROWS), self.settings, self.target_file_bytes, self.partition_by
        )

    def _inline(
        self, batches: list[pa.RecordBatch], sample: _Sample, counts: dict[tuple[str | None, ...], int]
    ) -> pa.RecordBatch:
        table = pa.Table.from_batches(batches, self.schema)
        blob = table_bytes(table)
        return _answer(None, table.num_rows, table.nbytes, None, blob, sample, counts)

    def _count(self, batch: pa.RecordBatch, counts: dict[tuple[str | None, ...], int]) -> None:
        if not self.partition_by:
            return
        names = [f"k{number}" for number in range(len(self.partition_by))]
        keys = pa.table([batch.column(name) for name in self.partition_by], names=names)
        grouped = keys.group_by(names, use_threads=False).aggregate([([], "count_all")])
        found = zip(*(grouped.column(name).to_pylist() for name in names), strict=True)
        for key, rows in zip(found, grouped.column("count_all").to_pylist(), strict=True):
            counts[key] = counts.get(key, 0) + rows


def sample_rows(tasks: int) -> int:
    """Returns how many rows each of several tasks samples."""
    return max(1024, _SAMPLE_ROWS // tasks)


@dataclass
class _Sample:
    """A uniform sample of bounded size: the rows with the smallest random numbers."""

    keys: tuple[ColumnPath, ...]
    partition_by: tuple[str, ...]
    most_rows: int
    _rng: np.random.Generator = field(default_factory=np.random.default_rng)
    _kept: list[pa.Table] = field(default_factory=list)
    _limit: float = 1.0
    _rows: int = 0
    seen: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.seen += batch.num_rows
        if not self.keys or not self.most_rows:
            return
        draws = self._rng.random(batch.num_rows)
        chosen = np.flatnonzero(draws < self._limit)
        if len(chosen) > self.most_rows:
            self._limit = float(np.partition(draws[chosen], self.most_rows - 1)[self.most_rows - 1])
            chosen = chosen[draws[chosen] <= self._limit]
        if not len(chosen):
            return
        table = key_table(batch, self.keys)
        for number, name in enumerate(self.partition_by):
            table = table.append_column(f"p{number}", batch.column(name))
        table = table.append_column("draw", pa.array(draws)).take(pa.array(chosen))
        self._kept.append(table)
        self._rows += table.num_rows
        if self._rows > 2 * self.most_rows:
            self._shrink()

    def table(self) -> pa.Table | None:
        if self._rows > self.most_rows:
            self._shrink()
        return pa.concat_tables(self._kept).drop_columns(["draw"]) if self._kept else None

    def _shrink(self) -> None:
        table = pa.concat_tables(self._kept)
        draws = table.column("draw").to_numpy()
        kept = np.argpartition(draws, self.most_rows - 1)[: self.most_rows]
        table = table.take(pa.array(kept))
        self._limit = float(draws[kept].max())
        self._kept, self._rows = [table.combine_chunks()], table.num_rows


def put_staged(store: Store, path: str, rows: pa.Table) -> None:
    """Writes rows as a staged file, which is an Arrow file in batches of a few megabytes."""
    scratch = store.local_scratch() / scratch_name(str(staged_under(path)), "arrow")
    try:
        with pa.OSFile(str(scratch), "wb") as sink, pa.ipc.new_file(sink, rows.schema, options=_LZ4) as writer:
            writer.write_table(rows, max_chunksize=max(1, rows.num_rows * _BATCH_BYTES // max(1, rows.nbytes)))
        store.put_file(path, scratch)
    finally:
        scratch.unlink(missing_ok=True)


def _answer(
    path: str | None,
    rows: int,
    arrow_bytes: int,
    per_row: float | None,
    inline: bytes | None,
    sample: _Sample | None,
    counts: dict[tuple[str | None, ...], int] | None,
) -> pa.RecordBatch:
    sampled = sample.table() if sample is not None else None
    values = {
        "path": pa.array([path], pa.string()),
        "rows": pa.array([rows], pa.int64()),
        "arrow_bytes": pa.array([arrow_bytes], pa.int64()),
        "bytes_per_row": pa.array([per_row], pa.float64()),
        "inline": pa.array([inline], pa.binary()),
        "sample": pa.array([table_bytes(sampled) if sampled is not None else None], pa.binary()),
        "sampled_from": pa.array([sample.seen if sample is not None else None], pa.int64()),
        "partitions": pa.array([json.dumps([[*key, n] for key, n in counts.items()]) if counts else None], pa.string()),
    }
    return pa.RecordBatch.from_pydict(values)


@dataclass(frozen=True)
class Staged:
    """The combined answers of all staging tasks.

    Attributes:
        paths: Paths of the staged files.
        path_rows: Number of rows in each staged file.
        inline: Rows that came inline with the answers.
        rows: Total number of rows.
        arrow_bytes: Size of the rows in memory.
        bytes_per_row: Measured bytes of a row in a file. None if nothing was measured.
        samples: Samples, each with the number of rows that it was drawn from.
    """

    paths: tuple[str, ...]
    path_rows: tuple[int, ...]
    inline: tuple[pa.Table, ...]
    rows: int
    arrow_bytes: int
    bytes_per_row: float | None
    samples: tuple[tuple[int, pa.Table], ...]
    rows_by_partition: Mapping[PartitionKey, int]

    @classmethod
    def of(cls, answers: Iterable[Any]) -> Staged:
        """Combines answers, which are rows of ``RESULT_SCHEMA``."""
        answers = list(answers)
        counts: dict[PartitionKey, int] = {}
        for answer in answers:
            for *key, rows in json.loads(answer.partitions or "[]"):
                known = tuple(value or None for value in key)
                counts[known] = counts.get(known, 0) + rows
        measured = [(answer.rows, answer.bytes_per_row) for answer in answers if answer.bytes_per_row is not None]
        weight = sum(rows for rows, _ in measured)
        return cls(
            paths=tuple(answer.path for answer in answers if answer.path),
            path_rows=tuple(answer.rows for answer in answers if answer.path),
            inline=tuple(table_of(bytes(answer.inline)) for answer in answers if answer.inline),
            rows=sum(answer.rows for answer in answers),
            arrow_bytes=sum(answer.arrow_bytes for answer in answers),
            bytes_per_row=sum(rows * each for rows, each in measured) / weight if weight else None,
            samples=tuple((answer.sampled_from, table_of(bytes(answer.sample))) for answer in answers if answer.sample),
            rows_by_partition=counts,
        )

    @property
    def row_bytes(self) -> float:
        """Bytes of a row in a file or, if that was not measured, in memory."""
        return self.bytes_per_row or self.arrow_bytes / max(1, self.rows)

    @property
    def starts(self) -> tuple[float, ...]:
        """The share of staged rows that come before each staged file, from 0 to below 1."""
        before = np.cumsum([0, *self.path_rows])
        return tuple((before[:-1] / max(1, before[-1])).tolist())

    def uniform_sample(self, most_rows: int | None = None) -> pa.Table:
        """Returns the tasks' samples, thinned so that every row has the same chance to be in the result.

        Args:
            most_rows: The approximate maximum. None for all rows that the tasks have.
        """
        wanted = 1.0 if most_rows is None else most_rows / max(most_rows, self.rows)
        share = min(wanted, *(table.num_rows / max(1, rows) for rows, table in self.samples))
        rng = np.random.default_rng()
        thinned = []
        for rows, table in self.samples:
            count = min(table.num_rows, round(share * rows))
            thinned.append(table.take(pa.array(np.sort(rng.choice(table.num_rows, count, replace=False)))))
        return pa.concat_tables(thinned)

    def key_sample(
        self, partition_columns: int, most_rows: int | None = None
    ) -> tuple[pa.Table, list[PartitionKey] | None]:
        """Returns the uniform sample of the keys, and each row's partition or None without partition columns."""
        sample = self.uniform_sample(most_rows)
        if not partition_columns:
            return sample, None
        names = [f"p{number}" for number in range(partition_columns)]
        texts = zip(*(sample.column(name).to_pylist() for name in names), strict=True)
        return sample.drop_columns(names), [tuple(value or None for value in key) for key in texts]


def model_of(
    staged: Staged,
    build: BuildTask,
    curve: str,
    row_group_rows: int | None,
    along: CurveModel | None = None,
    asked: QueryBoxes | None = None,
) -> CurveModel:
    """Builds a curve with cuts for staged rows from their sample. If ``along`` is given, it keeps those boundaries."""
    # Many tasks have a larger sample than the cuts need, and the driver sorts it alone.
    files = int(staged.rows * staged.row_bytes / build.target_file_bytes)
    sample, keys = staged.key_sample(len(build.partition_by), max(_SAMPLE_ROWS, files * _SAMPLE_ROWS_PER_FILE))
    return CurveModel.build(
        sample,
        build.keys,
        curve,
        total_rows=staged.rows,
        bytes_per_row=staged.row_bytes,
        target_file_bytes=build.target_file_bytes,
        row_group_rows=row_group_rows,
        partition_keys=keys,
        along=along,
        asked=asked,
    )
