"""Writes rows as clustered files: staging, sampling, the shuffle by leaf, and the writers."""
