"""Schemas and types: Spark's, Arrow's, and values in the exact types that files hold."""
