"""The session catalog: entries, their locations, statistics and columns."""
