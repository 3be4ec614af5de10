"""Merge-on-read tables: logs, tagging and compaction."""
