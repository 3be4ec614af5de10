"""Data files: reading footers and rows, writing Parquet, reporting what was written."""
