"""Clustering: measures a table's layout and rewrites groups of files."""
