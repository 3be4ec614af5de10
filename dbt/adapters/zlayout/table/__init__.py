"""``ZTable``: the Python interface of a table."""
