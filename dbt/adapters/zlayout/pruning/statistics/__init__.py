"""Statistics for pruning: validated, widened to the column's type and reduced to the remaining files."""
