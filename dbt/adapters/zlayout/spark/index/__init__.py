"""The index of a table: building, refreshing and verifying it."""
