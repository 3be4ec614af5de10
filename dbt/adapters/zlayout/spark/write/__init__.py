"""Writes that change rows: replace, append, overwrite, merge and delete."""
