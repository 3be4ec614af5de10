"""Merge-on-read tables: log records, tagging and compaction."""
