"""Older versions of a table: reads them, compares them, and rolls back to them."""
