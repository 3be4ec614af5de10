"""Data files: reads footers and rows, writes Parquet, and reports what was written."""
