"""Scan report: the verdict and reason of each file, and what each condition skips by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.expr import Expr, columns_of
from dbt.adapters.zlayout.pruning.prune import ConjunctReport, prune
from dbt.adapters.zlayout.pruning.scan import STAGES, Index, ScanPlan
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags, Verdict
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles


@dataclass(frozen=True)
class PartitionCondition:
    """A condition on partition columns only, decided by the partition values.

    Attributes:
        sql: The condition.
        kept: bool[n]: true if the condition is TRUE for every row of the file, false if for none.
        values: string[n], the partition of each file in readable form.
    """

    sql: str
    kept: Flags
    values: pa.Array


@dataclass(frozen=True)
class ScanReport:
    """The result for n files.

    Attributes:
        verdict: int8[n], each a `Verdict`; SKIP for exactly the files that the plan does not read.
        reason: string[n], without nulls.
        stage: string[n], the stage that skipped the file; null for a file that is read.
        conjuncts: One report per conjunct: first those on partitions only, then the others.
    """

    verdict: npt.NDArray[np.int8]
    reason: pa.Array
    stage: pa.Array
    conjuncts: tuple[ConjunctReport, ...]


def report_scan(
    plan: ScanPlan, expr: Expr, files: DataFiles, index: Index, partition_conditions: Sequence[PartitionCondition] = ()
) -> ScanReport:
    """Explains a scan plan.

    Args:
        plan: The plan of this predicate, these files and these conditions.
        expr: The predicate.
        files: All files.
        index: The statistics of the files.
        partition_conditions: The conditions that were decided before planning.
    """
    columns = columns_of(expr)
    # Prunes all files and not only those left by each stage: a report counts what its conjunct skips by itself.
    pruned = prune(expr, index.statistics(files, columns), reasons=True)
    reason = pruned.reason
    by_partition = np.flatnonzero((plan.stage_of_file == 0) & (pruned.verdict != Verdict.SKIP))
    if len(by_partition):
        partitions = index.partition_statistics(files, columns)
        merged = prune(expr, partitions.statistics, reasons=True)
        of_file = pa.array(partitions.partition_of_file)
        skipped = pa.array(
            (merged.verdict == Verdict.SKIP)[partitions.partition_of_file] & _at(by_partition, len(files))
        )
        told = pc.binary_join_element_wise("its partition: ", merged.reason.take(of_file), "")
        reason = pc.if_else(skipped, told, reason)
    reason = pc.if_else(pa.array(plan.stage_of_file == 1), "the file has no rows", reason)
    for condition in reversed(partition_conditions):
        told = pc.binary_join_element_wise(condition.values, f": no row matches {condition.sql}", "")
        reason = pc.if_else(pa.array(~condition.kept), told, reason)
    decided = tuple(
        ConjunctReport(each.sql, usable=True, skips=int((~each.kept).sum()), why_not=None)
        for each in partition_conditions
    )
    return ScanReport(
        verdict=np.where(plan.candidates, pruned.verdict, np.int8(Verdict.SKIP)).astype(np.int8),
        reason=reason,
        stage=pa.array(STAGES).take(pa.array(plan.stage_of_file, mask=plan.stage_of_file < 0)),
        conjuncts=decided + pruned.conjuncts,
    )


def _at(positions: npt.NDArray[np.int64], count: int) -> Flags:
    flags = np.zeros(count, dtype=bool)
    flags[positions] = True
    return flags
