"""Older versions: reading them, comparing them, going back to them."""
