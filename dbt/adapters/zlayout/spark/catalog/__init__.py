"""The session catalog: entries with their locations, statistics and columns."""
