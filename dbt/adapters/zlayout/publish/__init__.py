"""What readers see of a snapshot: one file for each kind of reader."""
