"""How well files are laid out: overlap, depth and cost, measured from statistics."""
