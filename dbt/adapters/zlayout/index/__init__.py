"""The metadata table: which files a snapshot has and what their columns hold, in slices beside the data."""
