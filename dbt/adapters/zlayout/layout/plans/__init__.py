"""What clustering and compaction rewrite: groups of files, chosen from statistics within a budget."""
