"""Statistics from Parquet footers, and from data where footers leave something open."""
