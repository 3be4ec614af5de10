"""Schemas and types of Spark and Arrow, and values in the exact types of the files."""
