"""The store protocol: what the timeline, the index and the writers need from a place that holds files.

Here is also what all stores share: safe paths, the size of the largest file, a local scratch folder, and a file of a
store for readers that take a Python file.
"""

from __future__ import annotations

import io
import re
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dbt.adapters.zlayout.errors import StoreError

# Metadata of a million files takes some hundred megabytes; a larger file that is read whole must be damaged.
MOST_BYTES_READ = 2 << 30

# An empty segment (also at the start of an absolute path), '.' or '..'.
_LEADS_OUT = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|\x00", re.ASCII)


@dataclass(frozen=True)
class StoredFile:
    """A file as the store lists it.

    Attributes:
        path: Relative to the root, '/'-separated, the real name (nothing is URI-escaped).
        size_bytes: Length of the file.
        modified_ms: Time of the last modification, milliseconds since the epoch.
    """

    path: str
    size_bytes: int
    modified_ms: int


StoredFiles = list[StoredFile]


def too_large(path: str, size_bytes: int) -> StoreError:
    """Returns the error for a file that is too large to read into memory."""
    return StoreError(
        f"{path} has {size_bytes:,} bytes; a metadata file has at most {MOST_BYTES_READ:,}, so this one is damaged"
    )


class Store(Protocol):
    """The files below one root; every path is relative to it, '/'-separated and unescaped.

    Readers never see partial files: `create`, `put`, `put_file` and `move` make a file appear complete or not at all.
    Failures that a method does not list are raised as `StoreError`.
    """

    @property
    def root_uri(self) -> str:
        """The root as an absolute URI without a trailing slash, escaped as in `java.net.URI`."""
        ...

    def read(self, path: str) -> bytes:
        """Returns the bytes of a file.

        Raises:
            FileMissingError: There is no such file.
            StoreError: It is larger than `MOST_BYTES_READ`, or is not a regular file.
        """
        ...

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        """Returns the last bytes of a file, or the whole file if it is smaller.

        Raises:
            FileMissingError: There is no such file.
        """
        ...

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Returns parts of a file.

        Args:
            starts: The first byte of each part.
            lengths: The length of each part, at least 1.

        Raises:
            FileMissingError: There is no such file.
            StoreError: A part is not inside the file.
        """
        ...

    def create(self, path: str, data: bytes) -> None:
        """Writes a file unless it exists; of several concurrent writers exactly one succeeds.

        Raises:
            AlreadyExistsError: The file already exists; it is left unchanged.
        """
        ...

    def put(self, path: str, data: bytes) -> None:
        """Writes a file, atomically replacing an existing one."""
        ...

    def put_file(self, path: str, local_file: Path) -> None:
        """Moves a finished local file into place, replacing an existing one."""
        ...

    def move(self, path: str, target: str) -> None:
        """Renames a finished file of this store, replacing an existing one.

        Its bytes do not pass through this process.

        Raises:
            FileMissingError: There is no such file.
        """
        ...

    def exists(self, path: str) -> bool:
        """Returns whether a file (not a folder) with this name exists."""
        ...

    def list(self, prefix: str, *, recursive: bool = False) -> StoredFiles:
        """Lists the files of a folder, sorted by path; a missing folder is empty, and linked folders are not entered.

        Args:
            prefix: A folder; '' is the root.
            recursive: Whether to list files of folders below it as well.
        """
        ...

    def stat(self, path: str) -> StoredFile:
        """Returns size and time of one file.

        Raises:
            FileMissingError: There is no such file.
        """
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files; missing ones are ignored."""
        ...

    def delete_tree(self, prefix: str) -> None:
        """Deletes a folder with all its content ('' is the root); a missing folder is ignored."""
        ...

    def local_path(self, path: str) -> Path | None:
        """Returns the local path of a file, or None if local programs cannot open it."""
        ...

    def local_scratch(self) -> Path:
        """Returns an existing local folder for unfinished files, on the store's own file system if that is local."""
        ...


def is_inside(path: str) -> bool:
    """Returns whether a path is the canonical path of a file below the root.

    >>> is_inside("k=1/a.parquet"), is_inside("k=1/../../a.parquet"), is_inside("/a.parquet")
    (True, False, False)
    """
    return _LEADS_OUT.search(path) is None


def check_inside(path: str) -> None:
    """Checks that a path is below the root.

    Raises:
        StoreError: It is absolute, or has a segment that is empty, '.' or '..': it may lead out of the table's folder.
    """
    if not is_inside(path):
        raise StoreError(f"{path!r} is not the path of a file below the table's folder; the store does not touch it")


def checked_parts(path: str, parts: list[bytes], lengths: Sequence[int]) -> list[bytes]:
    """Returns the parts of a file that were read, after checking that none is shorter than was asked for.

    Raises:
        StoreError: The file ends before a part does.
    """
    if any(len(part) != length for part, length in zip(parts, lengths, strict=True)):
        raise StoreError(f"{path} is shorter than it was; it has been damaged or replaced")
    return parts


class LocalScratch:
    """A folder for unfinished files, created on first use and deleted with its owner."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def path(self) -> Path:
        """Returns the existing folder."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="zlayout-")
            weakref.finalize(self, self._folder.cleanup)
        return Path(self._folder.name)


class PartsFile(io.RawIOBase):
    """A file of a store, of which only those bytes are read that a reader asks for.

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
