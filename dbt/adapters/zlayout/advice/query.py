"""A query: a condition of a workload, read."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.zlayout.config.workload import WeightedCondition
from dbt.adapters.zlayout.predicate.expr import Expr


@dataclass(frozen=True)
class Query:
    """A condition of a workload that is read: SQL has become a predicate.

    Attributes:
        condition: As it was given.
        predicate: What it means for the table.
    """

    condition: WeightedCondition
    predicate: Expr

    @property
    def weight(self) -> float:
        """The weight of the condition."""
        return self.condition.weight
