"""Layout measures: overlap, depth and cost, computed from statistics."""
