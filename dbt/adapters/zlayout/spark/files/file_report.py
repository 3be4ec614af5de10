"""The report of a file that a task has written, small enough to collect."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.index.footers.footer import ColumnFooter, footer_statistics, footer_table
from dbt.adapters.zlayout.index.footers.parquet_values import Bounds
from dbt.adapters.zlayout.index.lookup.lookup_key import LookupKey, RunPiece
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.files.parquet_file import FloatFacts, WrittenFile
from dbt.adapters.zlayout.spark.schema.arrow_columns import table_bytes, table_of
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.files.data_files import DataFile
from dbt.adapters.zlayout.timeline.files.naming import staging_folder

REPORT_SCHEMA = (
    "file string, statistics binary, missing string, filters binary, staged string, hashes binary, staged_hashes string"
)
_MOST_BYTES_IN_REPORT = 64 << 10

FilterPiece = bytes | str
"""Bloom filters of files, as an Arrow stream of `filter_table`; or the path of a file that holds it."""


@dataclass(frozen=True)
class Tracking:
    """The columns that a report covers.

    Attributes:
        columns: Columns with statistics in the index.
        required: Top-level columns that must not hold nulls.
        filtered: Columns with Bloom filters.
    """

    columns: tuple[TrackedColumn, ...]
    required: tuple[str, ...] = ()
    filtered: tuple[TrackedColumn, ...] = ()
    looked_up: tuple[LookupKey, ...] = ()


@dataclass(frozen=True)
class FileReport:
    """The report of one file that is in the table's folder.

    Attributes:
        file: The file's entry in the snapshot.
        statistics: The file's row of ``column_stats`` in the index.
        nulls: Number of nulls in each required column.
        filters: The file's Bloom filters; None if it has none.
        hashes: The hashes of its values for lookup indexes; None if it has none.
    """

    file: DataFile
    statistics: pa.Table
    nulls: Mapping[str, int]
    filters: FilterPiece | None = None
    hashes: RunPiece | None = None

    @classmethod
    def of(
        cls,
        stored: StoredFile,
        partition: tuple[tuple[str, str | None], ...],
        group: str,
        written: WrittenFile,
        tracking: Tracking,
    ) -> FileReport:
        """Returns the report of a file that this package has just written."""
        file = DataFile(stored.path, partition, written.row_count, stored.size_bytes, stored.modified_ms, group)
        statistics = _statistics(file.path, written.metadata, written.floats, tracking)
        values = dict(partition)
        nulls = {
            name: (written.row_count if values[name] is None else 0) if name in values else written.null_counts[name]
            for name in tracking.required
        }
        return cls(file, statistics, nulls)

    @classmethod
    def of_foreign(
        cls,
        stored: StoredFile,
        partition: tuple[tuple[str, str | None], ...],
        group: str,
        metadata: pq.FileMetaData,
        tracking: Tracking,
    ) -> FileReport:
        """Returns the report of a file that Spark's own writer made. Its nulls are counted elsewhere."""
        file = DataFile(stored.path, partition, metadata.num_rows, stored.size_bytes, stored.modified_ms, group)
        return cls(file, _statistics(file.path, metadata, {}, tracking), {})

    @classmethod
    def of_row(cls, row: Any) -> FileReport:
        """Returns the report in a collected row of ``REPORT_SCHEMA``."""
        raw = json.loads(row.file)
        raw["partition"] = tuple(tuple(each) for each in raw["partition"])
        filters, hashes = piece_in(row.filters, row.staged), piece_in(row.hashes, row.staged_hashes)
        return cls(DataFile(**raw), table_of(bytes(row.statistics)), json.loads(row.missing), filters, hashes)

    def to_batch(self) -> pa.RecordBatch:
        """Returns the report as a batch of ``REPORT_SCHEMA``."""
        (filters, staged), (hashes, staged_hashes) = cells_of(self.filters), cells_of(self.hashes)
        return pa.RecordBatch.from_pydict(
            {
                "file": [json.dumps(vars(self.file))],
                "statistics": pa.array([table_bytes(self.statistics)], pa.binary()),
                "missing": [json.dumps(dict(self.nulls))],
                "filters": pa.array([filters], pa.binary()),
                "staged": pa.array([staged], pa.string()),
                "hashes": pa.array([hashes], pa.binary()),
                "staged_hashes": pa.array([staged_hashes], pa.string()),
            }
        )


def filter_piece(store: Store, instant: str, filters: pa.Table) -> FilterPiece:
    """Returns the filters for a report, see `piece_of`.

    Args:
        instant: Instant of the transaction.
        filters: From `filter_table`.
    """
    return piece_of(store, instant, table_bytes(filters), "filters.arrow")


def piece_of(store: Store, instant: str, content: bytes, name: str) -> bytes | str:
    """Returns a part of a report. A large one goes to a staged file, since the driver collects all reports at once.

    Args:
        instant: Instant of the transaction.
        content: The part.
        name: Name of the staged file.
    """
    if len(content) <= _MOST_BYTES_IN_REPORT:
        return content
    staged = f"{staging_folder(instant)}/{name}"
    store.put(staged, content)
    return staged


def cells_of(piece: bytes | str | None) -> tuple[bytes | None, str | None]:
    """Returns the two cells that hold a piece in a batch: its content, and the path of its staged file."""
    return (piece, None) if isinstance(piece, bytes) else (None, piece)


def piece_in(content: bytes | bytearray | None, staged: str | None) -> bytes | str | None:
    """Returns the piece in two cells, see `cells_of`; None if there is none."""
    return staged if content is None else bytes(content)


def filters_of(store: Store, piece: FilterPiece) -> pa.Table:
    """Returns the filters of a report.

    Raises:
        StoreError: Their staged file cannot be read.
    """
    return table_of(piece if isinstance(piece, bytes) else store.read(piece))


def statistics_of(files: Sequence[FileReport], tracked: Sequence[TrackedColumn]) -> pa.Table:
    """Returns the statistics of all files, one row per file, as the index stores them."""
    return pa.concat_tables([each.statistics for each in files]) if files else footer_table([], [], tracked)


def _statistics(
    path: str, metadata: pq.FileMetaData, floats: Mapping[ColumnPath, FloatFacts], tracking: Tracking
) -> pa.Table:
    found = footer_statistics(metadata, tracking.columns)
    columns = [
        _float_footer(floats[column.path], metadata.num_rows) if column.path in floats else footer
        for column, footer in zip(tracking.columns, found.columns, strict=True)
    ]
    return footer_table([path], [replace(found, columns=tuple(columns))], tracking.columns)


def _float_footer(facts: FloatFacts, rows: int) -> ColumnFooter:
    """Returns the statistics seen while writing. Footers never mention NaN, and lack statistics where there is one."""
    bounds = None if facts.minimum is None else Bounds(facts.minimum, facts.maximum)
    return ColumnFooter(bounds, facts.null_count, facts.nan_count, rows)
