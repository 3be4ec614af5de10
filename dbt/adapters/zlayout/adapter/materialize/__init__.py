"""From a model, seed or snapshot to a commit."""
