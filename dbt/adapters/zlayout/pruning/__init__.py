"""Pruning: statistics and a predicate give a verdict for each file.

The contract: a file is skipped only if no row of it can make the predicate TRUE; anything unknown keeps the file.
Unknown is a missing, contradictory or differently typed statistic, a function that is not understood, a NaN that was
not counted. Each conjunct is evaluated alone, so that what is unknown to one of them takes nothing from the others.
"""

from dbt.adapters.zlayout.pruning.prune import ConjunctReport, Pruned, prune, verdicts
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds, Statistics
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict

__all__ = ["ColumnBounds", "ConjunctReport", "Pruned", "Statistics", "Verdict", "prune", "verdicts"]
