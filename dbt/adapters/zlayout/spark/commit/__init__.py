"""The work around a commit: its index slices, the steps that follow it, publishing, and catalog entries of tables."""
