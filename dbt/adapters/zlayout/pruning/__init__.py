"""Pruning: file statistics and a predicate give a verdict for each file.

The contract: a file is skipped only if no row of it can make the predicate TRUE. When in doubt, the file is read.
Statistics that are missing, contradictory or of another type, functions without a rule and uncounted NaNs are doubts.
Each conjunct is evaluated separately, so a doubt about one does not weaken the others.
"""
