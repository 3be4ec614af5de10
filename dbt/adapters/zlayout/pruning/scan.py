"""Scan planning in stages: partitions, files, columns, expressions, lookup indexes, Bloom filters.

Each stage looks at the files that the previous one left.

A report says which verdict and reason each file got, and what each condition skips by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.expr import EXPRESSION, ColumnPath, Expr, columns_of, leaves
from dbt.adapters.zlayout.predicate.normal_form import normal_form
from dbt.adapters.zlayout.pruning.evaluation import values_of, verdicts_of_normal
from dbt.adapters.zlayout.pruning.reasons import ConjunctReport, explained_verdicts
from dbt.adapters.zlayout.pruning.statistics.column_bounds import (
    ColumnBounds,
    Membership,
    SomeMembership,
    SomeStatistics,
    Statistics,
    worth_taking,
)
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags, Verdict
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

# Which of a table's files some statistics describe.
Where = npt.NDArray[np.int64] | slice
# An evaluation of more conditions than this is a large part of a scan's planning.
_MANY_CONDITIONS = 500
STAGES = ("partition_stats", "files", "column_stats", "expression_stats", "lookup", "bloom")


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
    """The part of the index that a scan uses."""

    def statistics(
        self, files: DataFiles, columns: Collection[ColumnPath], positions: npt.NDArray[np.int64] | None = None
    ) -> Statistics:
        """Returns the statistics of each file, or of those at some positions, in ascending order."""
        ...

    def partition_statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> StatisticsOfPartitions:
        """Returns the statistics of each partition."""
        ...

    def membership(self, files: DataFiles, positions: npt.NDArray[np.int64] | None = None) -> Membership | None:
        """Returns the Bloom filters of files, for the files at the positions or all; None if there are none."""
        ...

    def lookups(self, files: DataFiles) -> Membership | None:
        """Returns the entries of files in lookup indexes; None if there are none."""
        ...


@dataclass(frozen=True)
class _NoStatistics:
    """The statistics of files about whose columns nothing is known."""

    row_count: pa.Array

    def column(self, _: ColumnPath) -> ColumnBounds | None:
        return None


@dataclass(frozen=True)
class _Named:
    """The statistics of some columns and no others, whatever else has been read before."""

    whole: Statistics
    paths: frozenset[ColumnPath]

    @property
    def row_count(self) -> pa.Array:
        return self.whole.row_count

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        return self.whole.column(path) if path in self.paths else None


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


def plan_scan(  # noqa: C901 - one function per stage
    expr: Expr,
    files: DataFiles,
    index: Index,
    before: Preselection | None = None,
    stages_wanted: Collection[str] = STAGES,
) -> ScanPlan:
    """Selects the files that may hold a row for which a predicate is TRUE.

    Args:
        expr: The conjunction of the scan's filters, without those that ``before`` has decided.
        files: All files of the snapshot.
        index: The statistics of the files.
        before: What partition values have already decided; counts towards the first stage.
        stages_wanted: The stages that may skip files, of `STAGES`. What ``before`` has decided always counts.
    """
    every, normal = columns_of(expr), normal_form(expr)
    columns = frozenset(each for each in every if each[0] != EXPRESSION)
    stages: list[ScanStage] = []
    left = np.ones(len(files), dtype=bool)
    stage_of_file = np.full(len(files), -1, dtype=np.int8)

    def stage(name: str, keep: Callable[[], Flags], decided: Preselection | None = None) -> None:
        count, start = int(left.sum()), time.perf_counter()
        kept = keep() if name in stages_wanted else np.ones(len(files), dtype=bool)
        if decided is not None:
            kept = kept & decided.kept
        seconds_before = 0.0 if decided is None else decided.seconds
        stage_of_file[left & ~kept] = len(stages)
        np.logical_and(left, kept, out=left)
        stages.append(ScanStage(name, count, int(left.sum()), seconds_before + time.perf_counter() - start))

    def by_partition() -> Flags:
        partitions = index.partition_statistics(files, columns)
        # A single partition's bounds skip nothing that the bounds of its files keep, and cost a second evaluation.
        if len(partitions.statistics.row_count) == 1 and _is_large(normal):
            return np.ones(len(files), dtype=bool)
        possible = verdicts_of_normal(normal, _Named(partitions.statistics, columns)) != Verdict.SKIP
        kept: Flags = possible[partitions.partition_of_file]
        return kept

    def by_column() -> Flags:
        return by_bounds(*bounds_of(columns))

    def by_expression() -> Flags:
        if every == columns or not left.any():
            return np.ones(len(files), dtype=bool)
        return by_bounds(*bounds_of(bounds_wanted()))

    def bounds_wanted() -> frozenset[ColumnPath]:
        """Returns the columns and expressions whose bounds the stages that are switched on use."""
        of_columns, of_expressions = (STAGES[number] in stages_wanted for number in (2, 3))
        return (columns if of_columns else frozenset()) | (every - columns if of_expressions else frozenset())

    def bounds_of(wanted: frozenset[ColumnPath]) -> tuple[Statistics, Where]:
        """Returns the bounds of the files that are left, or of all, and which files these are."""
        positions = worth_taking(left)
        where = slice(None) if positions is None else positions
        if wanted:
            return _Named(index.statistics(files, wanted, positions), wanted), where
        known = _NoStatistics(contiguous(files.column("row_count")))
        return (known if positions is None else SomeStatistics(known, positions)), where

    def by_bounds(found: Statistics, where: Where) -> Flags:
        kept = np.zeros(len(files), dtype=bool)
        kept[where] = verdicts_of_normal(normal, found) != Verdict.SKIP
        return kept

    lookups = index.lookups(files) if _looks_for_values(normal) and STAGES[4] in stages_wanted else None

    def by_membership(*memberships: Membership | None) -> Flags:
        if memberships[-1] is None or not left.any():
            return np.ones(len(files), dtype=bool)
        found, where = bounds_of(bounds_wanted())
        some = [SomeMembership(each, where) for each in memberships if each is not None]
        kept = np.zeros(len(files), dtype=bool)
        kept[where] = verdicts_of_normal(normal, found, some) != Verdict.SKIP
        return kept

    def by_filter() -> Flags:
        filters = index.membership(files, np.flatnonzero(left)) if _looks_for_values(normal) else None
        # With both, a condition whose alternatives name columns of either can skip, too.
        return by_membership(lookups, filters)

    stage(STAGES[0], by_partition, before)

    stage(STAGES[1], lambda: np.asarray(files.column("row_count").to_numpy() > 0))
    stage(STAGES[2], by_column)
    stage(STAGES[3], by_expression)
    stage(STAGES[4], lambda: by_membership(lookups))
    stage(STAGES[5], by_filter)
    return ScanPlan(left, tuple(stages), stage_of_file)


def _is_large(normal: Expr) -> bool:
    return next(islice(leaves(normal), _MANY_CONDITIONS, None), None) is not None


def _looks_for_values(normal: Expr) -> bool:
    return any(values_of(leaf) is not None for leaf in leaves(normal))


@dataclass(frozen=True)
class PartitionCondition:
    """A condition on partition columns only, decided by the partition values.

    Attributes:
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
        index: The statistics of the files.
        partition_conditions: The conditions that were decided before planning.
    """
    columns = columns_of(expr)
    # Prunes all files and not only those left by each stage: a report counts what its conjunct skips by itself.
    memberships = [each for each in (index.lookups(files), index.membership(files)) if each is not None]
    pruned = explained_verdicts(expr, index.statistics(files, columns), reasons=True, memberships=memberships)
    reason = pruned.reason
    by_partition = (plan.stage_of_file == 0) & (pruned.verdict != Verdict.SKIP)
    if by_partition.any():
        partitions = index.partition_statistics(files, columns)
        merged = explained_verdicts(expr, partitions.statistics, reasons=True)
        of_file = pa.array(partitions.partition_of_file)
        skipped = pa.array((merged.verdict == Verdict.SKIP)[partitions.partition_of_file] & by_partition)
        text = pc.binary_join_element_wise("its partition: ", merged.reason.take(of_file), "")
        reason = pc.if_else(skipped, text, reason)
    reason = pc.if_else(pa.array(plan.stage_of_file == 1), "the file has no rows", reason)
    for condition in reversed(partition_conditions):
        text = pc.binary_join_element_wise(condition.values, f": no row matches {condition.sql}", "")
        reason = pc.if_else(pa.array(~condition.kept), text, reason)
    verdict = np.where(plan.candidates, pruned.verdict, np.int8(Verdict.SKIP)).astype(np.int8)
    switched_off = plan.candidates & (verdict == Verdict.SKIP)
    if switched_off.any():
        verdict[switched_off] = Verdict.READ
        reason = pc.if_else(
            pa.array(switched_off), pc.binary_join_element_wise("its stage is switched off: ", reason, ""), reason
        )
    decided = tuple(
        ConjunctReport(each.sql, usable=True, skips=int((~each.kept).sum()), why_not=None)
        for each in partition_conditions
    )
    return ScanReport(
        verdict=verdict,
        reason=reason,
        stage=pa.array(STAGES).take(pa.array(plan.stage_of_file, mask=plan.stage_of_file < 0)),
        conjuncts=decided + pruned.conjuncts,
    )
