"""Bloom filters: which values a file may hold, so that equality and lists skip files that bounds cannot skip."""
