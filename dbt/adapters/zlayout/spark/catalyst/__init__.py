"""Catalyst expressions as predicates of the core."""
