"""Lookup indexes: which files hold a value, exactly, found by the hash of the value."""
