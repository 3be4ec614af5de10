"""Statistics from Parquet footers, and from the data where footers are incomplete."""
