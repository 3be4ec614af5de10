"""Writers: transactions, their conflicts, their heartbeat, and recovery from writers that died."""
