"""Changes of rows: replace, append, overwrite, merge, delete."""
