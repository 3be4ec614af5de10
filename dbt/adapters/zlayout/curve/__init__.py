"""Keys to bits: quantile encoding, space-filling curves, and where files and row groups are cut."""
