"""Column and partition statistics in Arrow, and how they are merged."""
