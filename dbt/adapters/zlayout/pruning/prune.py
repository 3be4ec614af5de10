"""Pruning entry points: evaluate a predicate on statistics and return a verdict per file and a report per conjunct."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import Expr
from dbt.adapters.zlayout.predicate.normal_form import conjuncts, normal_form
from dbt.adapters.zlayout.pruning.evaluation import Evaluation
from dbt.adapters.zlayout.pruning.reasons import file_reasons
from dbt.adapters.zlayout.pruning.statistics.column_bounds import Statistics


@dataclass(frozen=True)
class ConjunctReport:
    """What one conjunct does by itself.

    Attributes:
        sql: The conjunct with NOT pushed into it.
        usable: Whether it can skip files.
        skips: Number of files that it skips by itself.
        why_not: Why it is not usable; None if it is.
    """

    sql: str
    usable: bool
    skips: int
    why_not: str | None


@dataclass(frozen=True)
class Pruned:
    """The result for n files.

    Attributes:
        verdict: int8, length n, each a `Verdict`.
        reason: string, length n; null if reasons were not requested.
        conjuncts: One report per conjunct, in the order of the predicate.
    """

    verdict: npt.NDArray[np.int8]
    reason: pa.Array
    conjuncts: tuple[ConjunctReport, ...]


def verdicts(expr: Expr, statistics: Statistics) -> npt.NDArray[np.int8]:
    """Returns a verdict for each file.

    Args:
        expr: Any predicate; parts that are not understood keep files.
        statistics: Of n files or partitions.

    Returns:
        int8, length n, each a `Verdict`.
    """
    normal = normal_form(expr)
    return Evaluation(normal, statistics).match(normal).verdicts()


def prune(expr: Expr, statistics: Statistics, *, reasons: bool = False) -> Pruned:
    """Returns a verdict for each file and a report for each conjunct.

    Args:
        expr: Any predicate; each conjunct is evaluated separately.
        statistics: Of n files or partitions.
        reasons: Whether to also give the reason why each file is skipped or read.

    Returns:
        The same verdicts as `verdicts`, with the reports.

    >>> from dbt.adapters.zlayout.predicate import Column, Compare, Op
    >>> from dbt.adapters.zlayout.pruning import ColumnBounds
    >>> exact, none = pa.array([True, True]), pa.array([0, 0])
    >>> bounds = ColumnBounds(pa.int64(), pa.array([1, 50]), pa.array([40, 90]), exact, exact, none, none)
    >>> class TwoFiles:
    ...     row_count = pa.array([10, 10])
    ...     def column(self, path):
    ...         return bounds
    >>> result = prune(Compare(Op.GT, Column(("id",), pa.int64()), pa.scalar(60)), TwoFiles(), reasons=True)
    >>> result.verdict.tolist()
    [0, 1]
    >>> result.reason.to_pylist()
    ['id: [1, 40] has no value > 60', 'may match: id [50, 90]']
    """
    normal = normal_form(expr)
    evaluation = Evaluation(normal, statistics)
    verdict = evaluation.match(normal).verdicts()
    parts = conjuncts(normal)
    why = file_reasons(parts, evaluation, verdict) if reasons else pa.nulls(evaluation.file_count, pa.string())
    return Pruned(verdict, why, tuple(_report(part, evaluation) for part in parts))


def _report(part: Expr, evaluation: Evaluation) -> ConjunctReport:
    match = evaluation.match(part)
    return ConjunctReport(
        sql=part.sql(),
        usable=match.why_not is None,
        # An unusable conjunct can skip only files without rows; those do not count as its own.
        skips=int(np.count_nonzero(~match.possible)) if match.why_not is None else 0,
        why_not=match.why_not,
    )
