"""Retention: older versions and the files that they need, for time travel, cleaning and orphan removal."""
