"""A store in memory that counts what is read."""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.zlayout.errors import FileMissingError
from dbt.adapters.zlayout.store import StoredFile


class MemoryStore:
    """Files by path.

    Attributes:
        reads: The path of each read, in order.
        bytes_read: Their size.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.root_uri = f"memory://{id(self.files)}"
        self.reads: list[str] = []
        self.bytes_read = 0

    def stat(self, path: str) -> StoredFile:
        return StoredFile(path, len(self._content(path)), 0)

    def put(self, path: str, content: bytes) -> None:
        self.files[path] = content

    def read(self, path: str) -> bytes:
        return self._counted(path, [self._content(path)])[0]

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        return self._counted(path, [self._content(path)[-most_bytes:]])[0]

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        content = self._content(path)
        return self._counted(path, [content[a : a + size] for a, size in zip(starts, lengths, strict=True)])

    def _content(self, path: str) -> bytes:
        if path not in self.files:
            raise FileMissingError(f"{path} is not there")
        return self.files[path]

    def _counted(self, path: str, parts: list[bytes]) -> list[bytes]:
        self.reads.append(path)
        self.bytes_read += sum(map(len, parts))
        return parts
