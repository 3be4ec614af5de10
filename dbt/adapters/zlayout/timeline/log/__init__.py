"""The log of versions: entries, checkpoints and the snapshots that they produce."""
