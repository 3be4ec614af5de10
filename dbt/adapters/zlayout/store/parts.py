"""A file of a store that is read in parts, for readers that take a Python file."""

from __future__ import annotations

import io

from dbt.adapters.zlayout.store.protocol import Store


class PartsFile(io.RawIOBase):
    """A file of a store, of which only those bytes are read that a reader asks for.

    Args:
        store: The store.
        path: The file.

    Raises:
        StoreError: It cannot be read, here and in each `read`.
    """

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        self._size = store.stat(path).size_bytes
        self._at = 0

    def readable(self) -> bool:
        """Returns True."""
        return True

    def seekable(self) -> bool:
        """Returns True."""
        return True

    def tell(self) -> int:
        """Returns the position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to a position and returns it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Returns the next bytes, at most ``size`` of them, or all if it is negative."""
        left = max(0, self._size - self._at)
        length = left if size < 0 else min(size, left)
        if not length:
            return b""
        (part,) = self._store.read_ranges(self._path, [self._at], [length])
        self._at += length
        return part
