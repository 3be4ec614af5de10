"""Statistics as pruning takes them in: validated, widened to the column's type, reduced to the files that are left."""
