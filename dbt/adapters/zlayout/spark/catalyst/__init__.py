"""Converts Catalyst expressions into predicates of the core."""
