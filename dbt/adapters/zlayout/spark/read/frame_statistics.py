"""Statistics of columns and expressions by file, from rows that Spark reads.

Spark reads the data, so that values are what a query sees. Arrow compares them in Python workers, batch by batch,
without sorting or shuffling rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, functions

from dbt.adapters.zlayout.index.footers.footer import footer_table
from dbt.adapters.zlayout.index.footers.from_data import stats_of_values
from dbt.adapters.zlayout.index.statistics.column_stats import column_paths, column_stats_table
from dbt.adapters.zlayout.index.statistics.merge import merge_statistics
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, canonical
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, run
from dbt.adapters.zlayout.spark.read.relations import frame_of
from dbt.adapters.zlayout.spark.schema.arrow_columns import table_bytes, table_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.timeline import Timeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = "statistics binary"


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
    opened, wanted = _plain_table(store, schema_json, files), tuple(columns)
    path_of = dict(zip(map(canonical, opened.file_uris()), opened.files["path"].to_pylist(), strict=True))
    names = [each.alias(f"c{i}") for i, each in enumerate(values)]
    frame = frame_of(Catalog(session), opened).select(*names, functions.input_file_name().alias("file"))
    reports = run(session, "statistics", progress, frame.mapInArrow(_Scan(wanted).__call__, _SCHEMA).collect)
    if not reports:
        return footer_table([], [], wanted)
    merged = _merged(pa.concat_tables([table_of(bytes(row.statistics)) for row in reports]), wanted)
    paths = pa.array([path_of[canonical(uri)] for uri in merged.column("path").to_pylist()], pa.string())
    names_of = column_paths(merged.schema)
    structs = [contiguous(merged.column(names_of[each.path])) for each in wanted]
    return column_stats_table(paths, [each.path for each in wanted], structs)


@dataclass(frozen=True)
class _Scan:
    """Task spec of the scan. Its rows have the columns in this order, followed by the URI of the file."""

    columns: tuple[TrackedColumn, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = (piece for batch in batches for piece in self._by_file(batch))
        for _, group in groupby(pieces, key=lambda piece: piece.column("path")[0].as_py()):
            merged = _merged(pa.concat_tables(list(group)), self.columns)
            yield pa.RecordBatch.from_arrays([pa.array([table_bytes(merged)], pa.binary())], names=["statistics"])

    def _by_file(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        if not batch.num_rows:
            return
        file = batch.column(batch.num_columns - 1).dictionary_encode()
        numbers = file.indices.to_numpy()
        starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
        for start, end in zip(starts, np.r_[starts[1:], len(numbers)], strict=True):
            part = batch.slice(int(start), int(end - start))
            structs = [stats_of_values(part.column(i), each.type) for i, each in enumerate(self.columns)]
            uri = file.dictionary.slice(int(numbers[start]), 1).cast(pa.string())
            yield column_stats_table(uri, [each.path for each in self.columns], structs)


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
