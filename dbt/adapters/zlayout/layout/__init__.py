"""Layout quality and rewrite plans: file overlap, read cost and which files to rewrite, from statistics alone."""
