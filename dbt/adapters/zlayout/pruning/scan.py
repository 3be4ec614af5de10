"""One scan in its steps: partitions first, then files, then columns, each on what the one before has left."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.predicate.expr import ColumnPath, Expr, columns_of
from dbt.adapters.zlayout.pruning.prune import Pruned, prune
from dbt.adapters.zlayout.pruning.statistics import Statistics
from dbt.adapters.zlayout.pruning.verdict import Verdict
from dbt.adapters.zlayout.timeline.files import DataFiles


class StatisticsOfPartitions(Protocol):
    """Statistics a partition, and the partition of each file."""

    @property
    def statistics(self) -> Statistics:
        """One entry a partition."""
        ...

    @property
    def partition_of_file(self) -> npt.NDArray[np.int64]:
        """Partition number of each file."""
        ...


class Index(Protocol):
    """What a scan asks of the metadata table."""

    def statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> Statistics:
        """Statistics a file."""
        ...

    def partition_statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> StatisticsOfPartitions:
        """Statistics a partition."""
        ...


@dataclass(frozen=True)
class ScanStage:
    """One step: its name, the files before and after it, and its wall time in seconds."""

    name: str
    files_before: int
    files_after: int
    seconds: float


@dataclass(frozen=True)
class ScanPlan:
    """What a scan reads.

    Attributes:
        candidates: bool[n]; False for a file that cannot hold a matching row.
        stages: In their order.
        pruned: The verdicts on all files with the reports a conjunct.
    """

    candidates: npt.NDArray[np.bool_]
    stages: tuple[ScanStage, ...]
    pruned: Pruned


def plan_scan(expr: Expr, files: DataFiles, index: Index, *, reasons: bool = False) -> ScanPlan:
    """Chooses the files that may hold a row for which a predicate is TRUE.

    Args:
        expr: The conjunction of all filters of the scan.
        files: All files of the snapshot.
        index: The statistics beside them.
        reasons: Whether to say for each file why; costs time that a query need not spend.
    """
    columns = columns_of(expr)
    stages: list[ScanStage] = []
    left = np.ones(len(files), dtype=bool)

    def stage(name: str, keep: Callable[[], npt.NDArray[np.bool_]]) -> None:
        before, start = int(left.sum()), time.perf_counter()
        np.logical_and(left, keep(), out=left)
        stages.append(ScanStage(name, before, int(left.sum()), time.perf_counter() - start))

    def by_partition() -> npt.NDArray[np.bool_]:
        partitions = index.partition_statistics(files, columns)
        possible = prune(expr, partitions.statistics).verdict != Verdict.SKIP
        kept: npt.NDArray[np.bool_] = possible[partitions.partition_of_file]
        return kept

    results: list[Pruned] = []

    def by_column() -> npt.NDArray[np.bool_]:
        # Over all files and not over what is left: a conjunct's report says what it skips alone.
        results.append(prune(expr, index.statistics(files, columns), reasons=reasons))
        kept: npt.NDArray[np.bool_] = results[0].verdict != Verdict.SKIP
        return kept

    stage("partition_stats", by_partition)
    stage("files", lambda: np.asarray(files.column("row_count").to_numpy() > 0))
    stage("column_stats", by_column)
    return ScanPlan(left, tuple(stages), results[0])
