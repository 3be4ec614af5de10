"""What run-operations, hooks and generic tests do, behind the methods of the adapter."""
