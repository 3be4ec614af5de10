"""What the timeline, the index and the writers need of a place that keeps files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dbt.adapters.zlayout.errors import StoreError


@dataclass(frozen=True)
class StoredFile:
    """A file as the store lists it.

    Attributes:
        path: Relative to the root, '/'-separated, the real name (nothing is URI-escaped).
        size_bytes: Length of the file.
        modified_ms: Time of the last change, milliseconds since the epoch.
    """

    path: str
    size_bytes: int
    modified_ms: int


StoredFiles = list[StoredFile]

# Metadata of a million files is some hundred megabytes; what is read whole and is larger was damaged.
MOST_BYTES_READ = 2 << 30


def too_large(path: str, size_bytes: int) -> StoreError:
    """The error of a file that is too large to be read into memory."""
    return StoreError(
        f"{path} has {size_bytes:,} bytes; no file of a table's metadata has more than {MOST_BYTES_READ:,}"
    )


class Store(Protocol):
    """The files below one root; every path is relative to it, '/'-separated and unescaped.

    A reader never sees half a file: `create`, `put`, `put_file` and `move` make a file appear whole or not at all.
    Failures that no method names are raised as `StoreError`.
    """

    @property
    def root_uri(self) -> str:
        """The root as an absolute URI without a trailing slash, escaped as in `java.net.URI`."""
        ...

    def read(self, path: str) -> bytes:
        """Return the bytes of a file.

        Raises:
            FileMissingError: There is no such file.
            StoreError: It is larger than `MOST_BYTES_READ`, or no regular file.
        """
        ...

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        """Return the last bytes of a file, or all of a smaller one.

        Raises:
            FileMissingError: There is no such file.
        """
        ...

    def create(self, path: str, data: bytes) -> None:
        """Write a file only if none has this name: of several writers exactly one succeeds.

        Raises:
            AlreadyExistsError: The file is there already; it is left as it is.
        """
        ...

    def put(self, path: str, data: bytes) -> None:
        """Write a file, in one step replacing the one that may be there."""
        ...

    def put_file(self, path: str, local_file: Path) -> None:
        """Move a finished local file into place, replacing the one that may be there."""
        ...

    def move(self, path: str, target: str) -> None:
        """Give a finished file of this store another name, replacing the file that may have it.

        Its bytes do not pass through this process.

        Raises:
            FileMissingError: There is no such file.
        """
        ...

    def exists(self, path: str) -> bool:
        """Tell whether a file (not a folder) has this name."""
        ...

    def list(self, prefix: str, *, recursive: bool = False) -> StoredFiles:
        """List the files of a folder, sorted by path; a missing folder is empty, and linked ones are not entered.

        Args:
            prefix: A folder; '' is the root.
            recursive: Whether files of folders below it are listed too.
        """
        ...

    def stat(self, path: str) -> StoredFile:
        """Return size and time of one file.

        Raises:
            FileMissingError: There is no such file.
        """
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; those that are missing already are passed over."""
        ...

    def delete_tree(self, prefix: str) -> None:
        """Delete a folder with all that is in it ('' is the root); a missing one is passed over."""
        ...

    def local_path(self, path: str) -> Path | None:
        """Return where a local program can open the file, or None where it cannot."""
        ...

    def local_scratch(self) -> Path:
        """Return an existing local folder for unfinished files, on the store's own file system where that is local."""
        ...
