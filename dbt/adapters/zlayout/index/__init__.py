"""The metadata table: the files of a snapshot and the statistics of their columns, in slices beside the data."""
