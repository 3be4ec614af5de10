"""Spark jobs of our own, and the Python of their workers."""
