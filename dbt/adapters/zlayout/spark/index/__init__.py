"""Builds, refreshes and verifies the index of a table."""
