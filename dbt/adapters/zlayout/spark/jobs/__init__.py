"""Our own Spark jobs, and the Python of their workers."""
