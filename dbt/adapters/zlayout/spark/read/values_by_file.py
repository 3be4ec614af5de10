"""Statistics, Bloom filters and lookup entries of columns and expressions by file, from rows that Spark reads.

Spark reads the data, so that values are what a query sees. Arrow compares them in Python workers, batch by batch,
without sorting or shuffling rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, functions

from dbt.adapters.zlayout.index.bloom.hashing import hashes_of
from dbt.adapters.zlayout.index.footers.footer import footer_table
from dbt.adapters.zlayout.index.footers.from_data import stats_of_values
from dbt.adapters.zlayout.index.lookup.lookup_key import may_have_nulls
from dbt.adapters.zlayout.index.statistics.column_stats import column_paths, column_stats_table
from dbt.adapters.zlayout.index.statistics.merge import merge_statistics
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, canonical
from dbt.adapters.zlayout.spark.files.distinct_values import (
    LACKING_SCHEMA,
    PIECES_SCHEMA,
    FileValues,
    Pieces,
    ValueTables,
    Wanted,
    value_slices,
)
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, run
from dbt.adapters.zlayout.spark.read.relations import frame_of
from dbt.adapters.zlayout.spark.schema.arrow_columns import table_bytes, table_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store, StoredFile, open_store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.entry import IndexSlices
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.timeline import Timeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "statistics binary"
_HASHES_SCHEMA = "path string, number int, hashes binary, nulls boolean"
_MOST_TASKS = 1_000


def statistics_by_file(
    session: SparkSession,
    store: Store,
    schema_json: str,
    files: DataFiles,
    columns: Sequence[TrackedColumn],
    values: Sequence[Column],
    progress: Progress | None,
) -> pa.Table:
    """Reads files in one Spark job, and returns statistics of what it computes for each row.

    Args:
        session: The session that reads.
        store: The folder of the files.
        schema_json: The columns in the files, as Spark's JSON.
        files: The files; they need not be part of a version.
        columns: What the values are stored as.
        values: For each of the columns the value of a row.

    Returns:
        One row per file, as the index stores it. Files without rows are left out.
    """
    wanted = tuple(columns)
    frame, path_of = _values_of(session, store, schema_json, files, values)
    reports = run(session, "statistics", progress, frame.mapInArrow(_Scan(wanted).__call__, _SCHEMA).collect)
    if not reports:
        return footer_table([], [], wanted)
    merged = _merged(pa.concat_tables([table_of(bytes(row.statistics)) for row in reports]), wanted)
    paths = pa.array([path_of[canonical(uri)] for uri in merged.column("path").to_pylist()], pa.string())
    names_of = column_paths(merged.schema)
    structs = [contiguous(merged.column(names_of[each.path])) for each in wanted]
    return column_stats_table(paths, [each.path for each in wanted], structs)


def pieces_by_file(
    session: SparkSession,
    store: Store,
    instant: str,
    schema_json: str,
    files: DataFiles,
    wanted: Wanted,
    values: Sequence[Column],
    progress: Progress | None = None,
) -> Pieces:
    """Reads files in one Spark job, and returns Bloom filters and lookup entries of what it computes for each row.

    The other arguments are those of `statistics_by_file`.

    Args:
        instant: Instant of the transaction, which stages large parts.
        wanted: What the files get. No lookup index has several columns.
        values: For each of its columns the value of a row.
    """
    hashed = _hashes_by_file(session, store, schema_json, files, wanted, values)
    task = _Pieces(wanted, store.root_uri, instant)
    return Pieces.of_rows(run(session, "index", progress, hashed.mapInArrow(task.__call__, PIECES_SCHEMA).collect))


def lacking_by_file(
    session: SparkSession,
    store: Store,
    index: IndexSlices,
    schema_json: str,
    files: DataFiles,
    wanted: Wanted,
    values: Sequence[Column],
) -> list[tuple[str, str, int, int]]:
    """Reads files in one Spark job, and compares what it computes for each row with filters and lookup entries.

    The other arguments are those of `pieces_by_file`.

    Args:
        index: The slices of the version.

    Returns:
        What lacks values: path, kind ('bloom' or 'lookup'), position among those of the kind, number of values.
    """
    slices = value_slices(index)
    if not any(slices.values()):
        return []
    hashed = _hashes_by_file(session, store, schema_json, files, wanted, values)
    task = _Lacking(wanted, store.root_uri, slices, files)
    found = run(session, "index", None, hashed.mapInArrow(task.__call__, LACKING_SCHEMA).collect)
    return [(str(row.path), str(row.kind), int(row.column), int(row.missing)) for row in found]


def _hashes_by_file(
    session: SparkSession,
    store: Store,
    schema_json: str,
    files: DataFiles,
    wanted: Wanted,
    values: Sequence[Column],
) -> DataFrame:
    """Returns the hashes of values, those of a file together: path, position of the column, hashes, nulls."""
    frame, path_of = _values_of(session, store, schema_json, files, values)
    hashed = frame.mapInArrow(_Hashes(tuple(wanted.columns), path_of).__call__, _HASHES_SCHEMA)
    return hashed.repartition(min(len(files), _MOST_TASKS), "path").sortWithinPartitions("path")


def _values_of(
    session: SparkSession, store: Store, schema_json: str, files: DataFiles, values: Sequence[Column]
) -> tuple[DataFrame, dict[str, str]]:
    """Returns the values of each row and the URI of its file, and the path of each file by URI."""
    opened = _plain_table(store, schema_json, files)
    path_of = dict(zip(map(canonical, opened.file_uris()), opened.files["path"].to_pylist(), strict=True))
    names = [each.alias(f"c{i}") for i, each in enumerate(values)]
    return frame_of(Catalog(session), opened).select(*names, functions.input_file_name().alias("file")), path_of


@dataclass(frozen=True)
class _Hashes:
    """Task spec: the distinct hashes of the values in each batch. The rows are those of `_Scan`."""

    columns: tuple[TrackedColumn, ...]
    path_of: dict[str, str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for uri, part in (each for batch in batches for each in _parts_by_file(batch)):
            path = self.path_of[canonical(uri[0].as_py())]
            for number, column in enumerate(self.columns):
                try:
                    hashes = hashes_of(part.column(number), column.type).tobytes()
                except pa.ArrowException:
                    hashes = None
                cells = [path], [number], [hashes], [may_have_nulls(part.column(number))]
                kinds = pa.string(), pa.int32(), pa.binary(), pa.bool_()
                arrays = [pa.array(cell, kind) for cell, kind in zip(cells, kinds, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names=["path", "number", "hashes", "nulls"])


def _values_by_file(batches: Iterable[pa.RecordBatch], wanted: Wanted) -> Iterator[tuple[str, FileValues]]:
    """Yields the values of each file, given rows of `_Hashes` sorted by path."""
    rows = (row for batch in batches for row in zip(*(each.to_pylist() for each in batch.columns), strict=True))
    columns = wanted.columns
    for path, group in groupby(rows, key=itemgetter(0)):
        values = FileValues.of_columns(wanted, columns)
        for _, number, hashes, nulls in group:
            found = None if hashes is None else np.frombuffer(hashes, np.uint64)
            values.add_hashes(columns[number], found, with_nulls=nulls)
        yield path, values


@dataclass(frozen=True)
class _Pieces:
    """Task spec: what the index gets of each file, from the rows of `_Hashes`."""

    wanted: Wanted
    root_uri: str
    instant: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = open_store(self.root_uri)
        for path, values in _values_by_file(batches, self.wanted):
            yield values.pieces(store, self.instant, path, self.wanted)


@dataclass(frozen=True)
class _Lacking:
    """Task spec: what the index lacks of each file, from the rows of `_Hashes`."""

    wanted: Wanted
    root_uri: str
    slices: Mapping[str, tuple[str, ...]]
    files: DataFiles

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store, position = open_store(self.root_uri), {path: i for i, path in enumerate(self.files["path"].to_pylist())}
        stored = ValueTables.of(store, self.slices).of_files(self.files)
        for path, values in _values_by_file(batches, self.wanted):
            yield from stored.lacking(path, position[path], values, self.wanted)


@dataclass(frozen=True)
class _Scan:
    """Task spec of the scan. Its rows have the columns in this order, followed by the URI of the file."""

    columns: tuple[TrackedColumn, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = (self._piece(*part) for batch in batches for part in _parts_by_file(batch))
        for _, group in groupby(pieces, key=lambda piece: piece.column("path")[0].as_py()):
            merged = _merged(pa.concat_tables(list(group)), self.columns)
            yield pa.RecordBatch.from_arrays([pa.array([table_bytes(merged)], pa.binary())], names=["statistics"])

    def _piece(self, uri: pa.Array, part: pa.RecordBatch) -> pa.Table:
        structs = [stats_of_values(part.column(i), each.type) for i, each in enumerate(self.columns)]
        return column_stats_table(uri, [each.path for each in self.columns], structs)


def _parts_by_file(batch: pa.RecordBatch) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """Yields the rows of each file, with the file's URI as an array of one text."""
    if not batch.num_rows:
        return
    file = batch.column(batch.num_columns - 1).dictionary_encode()
    numbers = file.indices.to_numpy()
    starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
    for start, end in zip(starts, np.r_[starts[1:], len(numbers)], strict=True):
        uri = file.dictionary.slice(int(numbers[start]), 1).cast(pa.string())
        yield uri, batch.slice(int(start), int(end - start))


def _merged(pieces: pa.Table, columns: Sequence[TrackedColumn]) -> pa.Table:
    """Merges the rows of each file's pieces into one row per file."""
    encoded = contiguous(pieces.column("path")).dictionary_encode()
    groups, count = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
    structs = [merge_statistics(contiguous(pieces.column(f"c{i}")), groups, count) for i in range(len(columns))]
    return column_stats_table(encoded.dictionary, [each.path for each in columns], structs)


def _plain_table(store: Store, schema_json: str, files: DataFiles) -> TableSnapshot:
    # Partition values do not matter for the data. Without partitions, the files are a plain list.
    names = [name for name in files.arrow.schema.names if name != "partition"]
    plain = DataFiles.from_columns((), partition_values=[], **{name: contiguous(files[name]) for name in names})
    snapshot = Snapshot(
        version=0,
        instant="",
        action=Action.INDEXING,
        operation=Operation.INDEXING.value,
        committed_ms=0,
        last_instant="",
        schema_json=schema_json,
        partition_by=(),
        files=plain,
    )
    nothing = StoredFile("", 0, 0)
    return TableSnapshot(Timeline(store), "", store.root_uri, snapshot, "UTC", managed=True, entry_file=nothing)
