"""Predicates as a small typed expression tree, independent of SQL text and of any engine."""
