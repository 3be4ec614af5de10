"""What run-operations, hooks and generic tests call."""
