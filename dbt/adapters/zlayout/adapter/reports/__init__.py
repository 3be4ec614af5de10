"""The output of run-operations: text for people, JSON for programs."""
