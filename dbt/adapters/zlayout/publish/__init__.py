"""Publishing: makes snapshots visible to readers, with one module for each kind of reader."""
