"""The share of a table's rows in the files that queries read, in files of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.advice.sample import FilesOfSample, Sample
from dbt.adapters.zlayout.predicate.expr import And, Column, ColumnPath, Compare, Expr, In, Op
from dbt.adapters.zlayout.predicate.normal_form import conjuncts, normal_form
from dbt.adapters.zlayout.pruning.evaluation import Evaluation
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict

Shares = npt.NDArray[np.float64]

FALSE_POSITIVES = 0.01
"""The share of files that a Bloom filter keeps although they lack the value."""
_MOSTLY_UNIQUE = 0.9


@dataclass(frozen=True)
class Weighted:
    """Predicates in normal form, with weights that sum to 1.

    Attributes:
        weights: float64[n].
    """

    predicates: tuple[Expr, ...]
    weights: Shares

    @classmethod
    def of(cls, predicates: Sequence[Expr], weights: Sequence[float]) -> Weighted:
        """Brings predicates to their normal form, and weights to the sum 1."""
        given = np.asarray(weights, np.float64)
        return cls(tuple(map(normal_form, predicates)), given / given.sum())

    def mixed(self, other: Weighted, share: float) -> Weighted:
        """Returns both, where the other's part has a share of the weights."""
        weights = np.concatenate([self.weights * (1 - share), other.weights * share])
        return Weighted((*self.predicates, *other.predicates), weights)

    def mean(self, shares: Shares) -> float:
        """Returns the weighted mean of one number for each predicate."""
        return float(self.weights @ shares)


def shares_read(
    queries: Weighted, files: FilesOfSample, found_by_value: Mapping[ColumnPath, float] | None = None
) -> Shares:
    """Returns for each query the share of the rows that lie in files it reads.

    Args:
        found_by_value: For each column whose values an index of files finds, such as by Bloom filters, the share of all
            files that hold a value of it on average.
    """
    total = max(1, int(files.rows.sum()))
    found = []
    # One evaluation for all queries: the statistics of a column are validated once.
    evaluation = Evaluation(And(queries.predicates), files)
    for predicate in queries.predicates:
        kept = evaluation.match(predicate).verdicts() != Verdict.SKIP
        share = float(files.rows[kept].sum()) / total
        for path, values in values_wanted(predicate):
            if found_by_value and path in found_by_value:
                share = min(share, values * found_by_value[path] + FALSE_POSITIVES * share)
        found.append(share)
    return np.asarray(found, np.float64)


def values_wanted(normal: Expr) -> list[tuple[ColumnPath, int]]:
    """Returns the columns that a predicate compares with values by ``=`` or ``IN``, and with how many.

    Args:
        normal: In normal form. Only conditions that every row must meet count.
    """
    found: list[tuple[ColumnPath, int]] = []
    for part in conjuncts(normal):
        match part:
            case Compare(Op.EQ | Op.EQ_NULL_SAFE, Column(path), value) if value.is_valid:
                found.append((path, 1))
            case In(Column(path), values):
                found.append((path, len(values)))
    return found


def rows_of_a_value(sample: Sample, path: ColumnPath, table_rows: int) -> float:
    """Returns how many rows of the table have the same value of a column on average, at least 1.

    Source of the estimate of distinct values: M. Charikar et al., Towards estimation error guarantees for distinct
    values (GEE), PODS 2000.

    Args:
        sample: A uniform sample of the table.
        path: A column of the sample.
    """
    column = sample.columns[path]
    ranks = column.rank[column.rank >= 0]
    if not len(ranks):
        return 1.0
    counts = np.unique(ranks, return_counts=True)[1]
    once = int((counts == 1).sum())
    factor = max(1.0, table_rows / sample.row_count)
    distinct = np.sqrt(factor) * once + (len(counts) - once)
    if once > _MOSTLY_UNIQUE * len(ranks):
        distinct = factor * len(counts)
    return max(1.0, table_rows / max(1.0, float(distinct)))


def share_of_files_with_a_value(sample: Sample, path: ColumnPath, table_rows: int, files: int) -> float:
    """Returns which share of the files holds a value of a column on average, if its rows lie anywhere."""
    rows = rows_of_a_value(sample, path, table_rows)
    return float(1 - (1 - 1 / max(1, files)) ** rows)
