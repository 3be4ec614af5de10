"""Statistics + predicate → a verdict for each file, with a report for each conjunct."""

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
    """What one condition of the conjunction does by itself.

    Attributes:
        sql: The condition, NOT pushed into it.
        usable: It can skip files.
        skips: Files that it skips alone.
        why_not: Why it is not usable; None where it is.
    """

    sql: str
    usable: bool
    skips: int
    why_not: str | None


@dataclass(frozen=True)
class Pruned:
    """The outcome for n files.

    Attributes:
        verdict: int8, length n, each a `Verdict`.
        reason: string, length n; null where reasons were not asked for.
        conjuncts: One report each, in the order of the predicate.
    """

    verdict: npt.NDArray[np.int8]
    reason: pa.Array
    conjuncts: tuple[ConjunctReport, ...]


def verdicts(expr: Expr, statistics: Statistics) -> npt.NDArray[np.int8]:
    """Decides on each file.

    Args:
        expr: Any predicate; what is not understood keeps files.
        statistics: Of n files, or partitions.

    Returns:
        int8, length n, each a `Verdict`.
    """
    normal = normal_form(expr)
    return Evaluation(normal, statistics).match(normal).verdicts()


def prune(expr: Expr, statistics: Statistics, *, reasons: bool = False) -> Pruned:
    """Decides on each file and tells what each conjunct did.

    Args:
        expr: Any predicate; its conjuncts are evaluated each alone.
        statistics: Of n files, or partitions.
        reasons: Also tell for each file why it is skipped or read.

    Returns:
        The same verdicts as `verdicts`, with the reports.
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
        # What is not usable skips at most files without rows, and takes no credit for them.
        skips=int(np.count_nonzero(~match.possible)) if match.why_not is None else 0,
        why_not=match.why_not,
    )
