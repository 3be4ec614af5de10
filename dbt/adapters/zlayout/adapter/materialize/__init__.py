"""Turns a model, seed or snapshot into a commit."""
