"""Pruning: file statistics and a predicate give a verdict for each file.

The contract: a file is skipped only if no row of it can make the predicate TRUE. When in doubt, the file is read.
Statistics that are missing, contradictory or of another type, functions without a rule and uncounted NaNs are doubts.
Each conjunct is evaluated separately, so a doubt about one does not weaken the others.
"""

from dbt.adapters.zlayout.pruning.evaluation import verdicts
from dbt.adapters.zlayout.pruning.prune import ConjunctReport, Pruned, prune
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds, Statistics
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict

__all__ = ["ColumnBounds", "ConjunctReport", "Pruned", "Statistics", "Verdict", "prune", "verdicts"]
