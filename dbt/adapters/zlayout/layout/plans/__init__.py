"""Rewrite plans for clustering and compaction: groups of files, chosen from statistics within a budget."""
