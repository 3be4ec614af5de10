"""A table at one version: its files, its index and its layout."""
