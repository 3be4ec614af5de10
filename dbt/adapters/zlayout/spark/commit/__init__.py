"""What belongs to a commit: its index slices, and what follows it."""
