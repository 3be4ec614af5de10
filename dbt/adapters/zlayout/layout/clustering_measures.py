"""Clustering measures: how well files are laid out for some columns, from statistics alone."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.layout.depth import Overlap, box_overlap, interval_overlap
from dbt.adapters.zlayout.layout.expected_reads import RowRanges, files_of_a_range, files_of_a_row, row_ranges
from dbt.adapters.zlayout.layout.spans import Spans, spans_of, validated
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.column_bounds import SomeStatistics, Statistics
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

# By name of a random range condition, the share of rows that it selects in each column.
_RANGES: Mapping[str, float] = {"range_1_percent": 0.01, "range_10_percent": 0.1}


@dataclass(frozen=True)
class ColumnClustering:
    """How well files are laid out for one column.

    Attributes:
        column: As spelled in settings.
        constant_files: Files in which all rows have the same value in the column, or are all null.
        unknown_files: Files with an unknown bound; they overlap everything on that side.
        overlap: Along the column, exact. The depth of a file is the largest number of files that share one value of it.
        expected_files: How many files a random condition on the column reads, by kind: ``point`` is equality with the
            value of a random row, ``range_1_percent`` and ``range_10_percent`` select that share of the rows.
    """

    column: str
    constant_files: int
    unknown_files: int
    overlap: Overlap
    expected_files: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values."""
        overlap = self.overlap.to_dict()
        return {
            "column": self.column,
            "constant_files": self.constant_files,
            "unknown_files": self.unknown_files,
            **{name: overlap[name] for name in ("average_overlaps", "average_depth", "depth_histogram")},
            "expected_files": dict(self.expected_files),
        }


@dataclass(frozen=True)
class ClusteringMeasures:
    """How well files are laid out for some columns. Files without rows are counted, but not measured.

    Attributes:
        columns: As spelled in settings.
        partitions: Partitions that have files, 1 for a table without partitions; different ones do not overlap.
        constant_files: Files in which all rows are equal in every one of the columns; clustering cannot improve these.
        overlap: The overlap of the boxes over all columns. The depth of a file is the number of files whose boxes
            intersect its box, itself included, as in the ``overlap_depth`` of a run.
        expected_files: How many files a random condition on all columns together reads, by kind: ``point`` is equality
            with the values of a random row, the ranges of the columns are drawn independently.
        by_column: One entry per column.
    """

    columns: tuple[str, ...]
    files: int
    rows: int
    bytes: int
    partitions: int
    constant_files: int
    overlap: Overlap
    expected_files: Mapping[str, float]
    by_column: tuple[ColumnClustering, ...]

    @property
    def average_overlaps(self) -> float:
        """Average number of other files whose boxes over all columns intersect a file's box."""
        return self.overlap.average_overlaps

    @property
    def average_depth(self) -> float:
        """Average number of files, itself included, whose boxes intersect the box of a file; 1.0 is best."""
        return self.overlap.average_depth

    @property
    def depth_histogram(self) -> Mapping[int, int]:
        """Number of files by the depth of their boxes, see `Overlap`."""
        return self.overlap.depth_histogram

    @property
    def curve_intervals(self) -> None:
        """Deprecated: None. Files are boxes, so their intervals on the curve said nothing about what a query reads."""
        warnings.warn("curve_intervals: not measured any more; read overlap", DeprecationWarning, stacklevel=2)

    @property
    def curve_interval_depth(self) -> None:
        """Deprecated: None, see `curve_intervals`."""
        warnings.warn(
            "curve_interval_depth: not measured any more; read average_depth", DeprecationWarning, stacklevel=2
        )

    def column(self, name: str) -> ColumnClustering:
        """Returns the figures of one of the columns.

        Raises:
            KeyError: It is not one of ``columns``.
        """
        return {each.column: each for each in self.by_column}[name]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values for JSON. docs/clustering.md lists the fields."""
        return {
            "columns": list(self.columns),
            "files": self.files,
            "rows": self.rows,
            "bytes": self.bytes,
            "partitions": self.partitions,
            "constant_files": self.constant_files,
            **self.overlap.to_dict(),
            "expected_files": dict(self.expected_files),
            "by_column": [each.to_dict() for each in self.by_column],
            # Deprecated, always null.
            "curve_interval_depth": None,
            "curve_intervals": None,
        }


def clustering_measures(
    files: DataFiles,
    statistics: Statistics,
    types: Mapping[ColumnPath, pa.DataType],
    partition_of_file: npt.NDArray[np.int64],
) -> ClusteringMeasures:
    """Measures the layout of files.

    Args:
        files: n files.
        statistics: The statistics of these files.
        types: The columns to measure, one or more, and their types in the table.
        partition_of_file: int64[n].
    """
    row_count = files.column("row_count").to_numpy()
    with_rows = np.flatnonzero(row_count > 0)
    measured = statistics if len(with_rows) == len(files) else SomeStatistics(statistics, with_rows)
    facts = validated(measured, types)
    partition, rows = partition_of_file[with_rows], row_count[with_rows]
    spans = {path: spans_of(facts[path], kind, len(rows)) for path, kind in types.items()}
    ranges = [row_ranges(each, rows) for each in spans.values()]
    return ClusteringMeasures(
        columns=tuple(map(format_column_path, types)),
        files=len(files),
        rows=files.total_rows,
        bytes=files.total_bytes,
        partitions=len(np.unique(partition_of_file)),
        constant_files=int(np.logical_and.reduce([each.constant for each in spans.values()]).sum()),
        overlap=box_overlap([each.low for each in spans.values()], [each.high for each in spans.values()], partition),
        expected_files=_expected(ranges, rows),
        by_column=tuple(
            _column(path, each, one, rows, partition) for (path, each), one in zip(spans.items(), ranges, strict=True)
        ),
    )


def _column(
    path: ColumnPath,
    spans: Spans,
    ranges: RowRanges,
    rows: npt.NDArray[np.int64],
    partition: npt.NDArray[np.int64],
) -> ColumnClustering:
    return ColumnClustering(
        column=format_column_path(path),
        constant_files=int(spans.constant.sum()),
        unknown_files=int(spans.unknown.sum()),
        overlap=interval_overlap(spans.low, spans.high, partition),
        expected_files=_expected([ranges], rows),
    )


def _expected(ranges: Sequence[RowRanges], rows: npt.NDArray[np.int64]) -> dict[str, float]:
    boxes = {name: files_of_a_range(ranges, fraction) for name, fraction in _RANGES.items()}
    return {"point": files_of_a_row(ranges, rows) if len(ranges) > 1 else files_of_a_range(ranges, 0.0), **boxes}
