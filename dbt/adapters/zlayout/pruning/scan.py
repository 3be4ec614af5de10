"""Scan planning in stages: partitions, then files, then columns, each on the files that the previous one left."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.predicate.expr import ColumnPath, Expr, columns_of
from dbt.adapters.zlayout.pruning.prune import verdicts
from dbt.adapters.zlayout.pruning.statistics.column_bounds import Statistics
from dbt.adapters.zlayout.pruning.statistics.some_files import statistics_of
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags, Verdict
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

STAGES = ("partition_stats", "files", "column_stats")


class StatisticsOfPartitions(Protocol):
    """Statistics per partition, and the partition of each file."""

    @property
    def statistics(self) -> Statistics:
        """One entry per partition."""
        ...

    @property
    def partition_of_file(self) -> npt.NDArray[np.int64]:
        """Partition number of each file."""
        ...


class Index(Protocol):
    """The part of the metadata table that a scan uses."""

    def statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> Statistics:
        """Statistics per file."""
        ...

    def partition_statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> StatisticsOfPartitions:
        """Statistics per partition."""
        ...


@dataclass(frozen=True)
class Preselection:
    """Files already decided by their partition values: the files kept, and the wall time in seconds."""

    kept: Flags
    seconds: float


@dataclass(frozen=True)
class ScanStage:
    """One stage: its name, the number of files before and after it, and its wall time in seconds."""

    name: str
    files_before: int
    files_after: int
    seconds: float


@dataclass(frozen=True)
class ScanPlan:
    """The files that a scan reads.

    Attributes:
        candidates: bool[n]; False for a file that cannot hold a matching row.
        stages: The stages named in `STAGES`, in that order.
        stage_of_file: int8[n], the position of the stage that skipped the file; -1 for a candidate.
    """

    candidates: Flags
    stages: tuple[ScanStage, ...]
    stage_of_file: npt.NDArray[np.int8]


def plan_scan(expr: Expr, files: DataFiles, index: Index, before: Preselection | None = None) -> ScanPlan:
    """Selects the files that may hold a row for which a predicate is TRUE.

    Args:
        expr: The conjunction of the scan's filters, without those that ``before`` has decided.
        files: All files of the snapshot.
        index: The statistics of the files.
        before: What partition values have already decided; counts towards the first stage.
    """
    columns = columns_of(expr)
    stages: list[ScanStage] = []
    left = np.ones(len(files), dtype=bool)
    stage_of_file = np.full(len(files), -1, dtype=np.int8)

    def stage(name: str, keep: Callable[[], Flags], seconds_before: float = 0.0) -> None:
        count, start = int(left.sum()), time.perf_counter()
        kept = keep()
        stage_of_file[left & ~kept] = len(stages)
        np.logical_and(left, kept, out=left)
        stages.append(ScanStage(name, count, int(left.sum()), seconds_before + time.perf_counter() - start))

    def by_partition() -> Flags:
        partitions = index.partition_statistics(files, columns)
        possible = verdicts(expr, partitions.statistics) != Verdict.SKIP
        kept: Flags = possible[partitions.partition_of_file]
        return kept if before is None else kept & before.kept

    def by_column() -> Flags:
        found, where = statistics_of(index.statistics(files, columns), left)
        kept = np.zeros(len(files), dtype=bool)
        kept[where] = verdicts(expr, found) != Verdict.SKIP
        return kept

    stage(STAGES[0], by_partition, 0.0 if before is None else before.seconds)
    stage(STAGES[1], lambda: np.asarray(files.column("row_count").to_numpy() > 0))
    stage(STAGES[2], by_column)
    return ScanPlan(left, tuple(stages), stage_of_file)
