"""The store for object storage (S3, Google Cloud, Azure); creates files by conditional put."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError as ObstoreAlreadyExistsError
from obstore.exceptions import BaseError
from obstore.store import from_url

from dbt.adapters.zlayout.errors import AlreadyExistsError, FileMissingError, StoreError
from dbt.adapters.zlayout.store.protocol import (
    MOST_BYTES_READ,
    LocalScratch,
    StoredFile,
    StoredFiles,
    check_inside,
    checked_parts,
    too_large,
)
from dbt.adapters.zlayout.store.uri import escaped

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# Maps Hadoop's name of a scheme to obstore's.
_OBSTORE_SCHEME = {"s3a": "s3"}
_DELETE_BATCH = 1000
# Parts with a gap of at most this many bytes are read in one request: a second request costs more than these bytes.
_GAP_BYTES = 64 << 10


class CloudStore:
    """Files below a prefix of a bucket or container; credentials come from the environment.

    Args:
        uri: The location of the table, for example 's3a://bucket/warehouse/t', in Hadoop's or obstore's spelling.
        object_store: An open obstore store whose root is the table, instead of one opened from the URI.
    """

    def __init__(self, uri: str, object_store: ObjectStore | None = None) -> None:
        parts = urlsplit(uri)
        path = unquote(parts.path).strip("/")
        self.root_uri = f"{parts.scheme}://{parts.netloc}/{escaped(path)}".rstrip("/")
        if object_store is None:
            scheme = _OBSTORE_SCHEME.get(parts.scheme, parts.scheme)
            with _errors(uri):
                object_store = from_url(f"{scheme}://{parts.netloc}/{quote(path)}")
        self._objects: Any = object_store
        self._scratch = LocalScratch()

    def read(self, path: str) -> bytes:
        """Returns the bytes of a file."""
        with _errors(path):
            found = obstore.get(self._objects, path)
            if found.meta["size"] > MOST_BYTES_READ:
                raise too_large(path, found.meta["size"])
            return bytes(found.bytes())

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        """Returns the last bytes of a file, or the whole file if it is smaller."""
        # Requests the size first, because Azure has no ranges relative to the end.
        size = self.stat(path).size_bytes
        start = max(0, size - most_bytes)
        if size == start:
            return b""
        with _errors(path):
            return bytes(obstore.get_range(self._objects, path, start=start, end=size))

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Returns parts of a file; those close to each other come in one request."""
        if not starts:
            return []
        with _errors(path):
            found = obstore.get_ranges(self._objects, path, starts=starts, lengths=lengths, coalesce=_GAP_BYTES)
            parts = [bytes(each) for each in found]
        return checked_parts(path, parts, lengths)

    def create(self, path: str, data: bytes) -> None:
        """Writes a file unless it exists."""
        with _errors(path):
            obstore.put(self._objects, path, data, mode="create")

    def put(self, path: str, data: bytes) -> None:
        """Writes a file, atomically replacing an existing one."""
        with _errors(path):
            obstore.put(self._objects, path, data)

    def put_file(self, path: str, local_file: Path) -> None:
        """Uploads a finished local file, then deletes the local copy."""
        with _errors(path):
            obstore.put(self._objects, path, local_file)
            local_file.unlink()

    def move(self, path: str, target: str) -> None:
        """Copies an object to another name within the service, then deletes the old one."""
        with _errors(path):
            obstore.copy(self._objects, path, target)
            obstore.delete(self._objects, path)

    def exists(self, path: str) -> bool:
        """Returns whether a file with this name exists."""
        try:
            self.stat(path)
        except FileMissingError:
            return False
        return True

    def list(self, prefix: str, *, recursive: bool = False) -> StoredFiles:
        """Lists the files of a folder, sorted by path; a missing folder is empty."""
        folder = prefix.strip("/") or None
        with _errors(prefix):
            if recursive:
                objects = [entry for batch in obstore.list(self._objects, prefix=folder) for entry in batch]
            else:
                objects = list(obstore.list_with_delimiter(self._objects, prefix=folder)["objects"])
        return sorted((_stored(entry) for entry in objects), key=lambda file: file.path)

    def stat(self, path: str) -> StoredFile:
        """Returns size and time of one file."""
        with _errors(path):
            return _stored(obstore.head(self._objects, path))

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files; missing ones are ignored."""
        # Deletes one by one if a batch fails: some services report one missing object as an error of the whole batch.
        pending = list(paths)
        for path in pending:
            check_inside(path)
        for start in range(0, len(pending), _DELETE_BATCH):
            batch = pending[start : start + _DELETE_BATCH]
            try:
                with _errors(batch[0]):
                    obstore.delete(self._objects, batch)
            except FileMissingError:
                for path in batch:
                    self._delete_one(path)

    def delete_tree(self, prefix: str) -> None:
        """Deletes all files of a folder ('' is the root)."""
        self.delete([file.path for file in self.list(prefix, recursive=True)])

    def local_path(self, path: str) -> None:  # noqa: ARG002 - the protocol's signature
        """Returns None: files in a cloud have no local path."""
        return

    def local_scratch(self) -> Path:
        """Returns a temporary local folder, deleted with the store."""
        return self._scratch.path()

    def _delete_one(self, path: str) -> None:
        try:
            with _errors(path):
                obstore.delete(self._objects, path)
        except FileMissingError:
            return


def _stored(entry: Any) -> StoredFile:
    return StoredFile(entry["path"], entry["size"], int(entry["last_modified"].timestamp() * 1000))


@contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except (ObstoreAlreadyExistsError, FileExistsError) as error:
        raise AlreadyExistsError(f"{path} already exists") from error
    except FileNotFoundError as error:
        raise FileMissingError(f"{path}: no such file") from error
    except (BaseError, OSError) as error:
        raise StoreError(f"{path}: {error}") from error
