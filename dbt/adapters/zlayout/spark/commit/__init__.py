"""The work around a commit: its index slices, and the steps that follow it."""
