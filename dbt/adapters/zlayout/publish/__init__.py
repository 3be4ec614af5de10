"""Publishing: makes snapshots visible to readers, with one file per kind of reader."""
