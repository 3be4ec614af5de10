"""The adapter methods that run-operations, hooks and generic tests call."""
