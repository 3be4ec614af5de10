"""The index: statistics of the files of a snapshot and of its partitions, in slices beside the data."""
