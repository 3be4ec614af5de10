"""What conditions read of a version, by its index alone, and which of their parts cannot skip files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dbt.adapters.zlayout.predicate.expr import Expr, columns_of
from dbt.adapters.zlayout.pruning.prune import ConjunctReport, prune
from dbt.adapters.zlayout.spark.read.conditions import predicates_that_fit
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ConditionReads:
    """What a condition reads.

    Attributes:
        condition: The condition.
        files_read: Files that it reads.
        files_total: Files of the table.
        rows_read: Rows in the files that it reads.
        rows_total: Rows of the table.
        bytes_read: Size of the files that it reads.
        bytes_total: Size of the table.
        parts: What each of its parts that AND joins does by itself.
    """

    condition: str
    files_read: int
    files_total: int
    rows_read: int
    rows_total: int
    bytes_read: int
    bytes_total: int
    parts: tuple[ConjunctReport, ...]

    @property
    def opened(self) -> float:
        """The share of the rows that lie in files which it reads, 0 … 1."""
        return self.rows_read / self.rows_total if self.rows_total else 0.0


def reads_of(opened: TableSnapshot, predicate: Expr, condition: str) -> ConditionReads:
    """Returns what a predicate reads of a version."""
    kept = opened.scan(predicate).candidates
    rows, sizes = (np.asarray(opened.files.column(name).to_numpy()) for name in ("row_count", "size_bytes"))
    statistics = opened.statistics.statistics(opened.files, columns_of(predicate))
    parts = prune(predicate, statistics).conjuncts
    return ConditionReads(
        condition,
        int(kept.sum()),
        len(kept),
        int(rows[kept].sum()),
        int(rows.sum()),
        int(sizes[kept].sum()),
        int(sizes.sum()),
        parts,
    )


def reads_of_conditions(
    spark: SparkSession, opened: TableSnapshot, conditions: Sequence[str]
) -> list[ConditionReads | None]:
    """Returns what conditions read of a version; None for each that does not fit its columns."""
    predicates = predicates_that_fit(spark, opened.row_schema_json, conditions)
    return [
        None if predicate is None else reads_of(opened, predicate, condition)
        for condition, predicate in zip(conditions, predicates, strict=True)
    ]
