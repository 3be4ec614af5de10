"""Clustering: from measuring a layout to rewriting groups of files."""
