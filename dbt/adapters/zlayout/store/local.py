"""The store for a local (or mounted POSIX) file system; creates by hard link and replaces by rename."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dbt.adapters.zlayout.errors import AlreadyExistsError, FileMissingError, StoreError, UnsupportedError
from dbt.adapters.zlayout.store.protocol import (
    MOST_BYTES_READ,
    StoredFile,
    StoredFiles,
    check_inside,
    checked_parts,
    too_large,
)
from dbt.adapters.zlayout.store.uri import escaped

SCRATCH_FOLDER = ".zlayout/staging"
# Deleted in the meantime, a broken link, or a loop of links.
_NO_SUCH_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class LocalStore:
    """Files below a local folder.

    Every write goes to a hidden file in `local_scratch` first, is flushed to disk, and then gets its name.

    Args:
        root: Absolute path of the folder; it need not exist yet.
    """

    def __init__(self, root: Path | str) -> None:
        self._root = Path(root)
        self._scratch = self._root / SCRATCH_FOLDER
        self.root_uri = "file://" + escaped(str(self._root))

    def read(self, path: str) -> bytes:
        """Returns the bytes of a file."""
        with _errors(path), self._opened(path) as (file, size_bytes):
            if size_bytes > MOST_BYTES_READ:
                raise too_large(path, size_bytes)
            return file.read()

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        """Returns the last bytes of a file, or the whole file if it is smaller."""
        with _errors(path), self._opened(path) as (file, size_bytes):
            file.seek(max(0, size_bytes - most_bytes))
            return file.read()

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Returns parts of a file."""
        with _errors(path), self._opened(path) as (file, _):
            descriptor = file.fileno()
            parts = [os.pread(descriptor, length, start) for start, length in zip(starts, lengths, strict=True)]
        return checked_parts(path, parts, lengths)

    def create(self, path: str, data: bytes) -> None:
        """Writes a file unless it exists."""
        target = self._root / path
        with _errors(path), self._unfinished(data) as unfinished:
            _make_folder(target.parent)
            try:
                os.link(unfinished, target)
            except OSError as error:
                if error.errno in _NO_HARD_LINKS:
                    raise UnsupportedError(
                        f"{self._root}: this file system has no hard links, so a commit cannot be atomic on it "
                        f"({error.strerror}); set location_root to a folder of a file system that has them"
                    ) from error
                raise
            _flush_folder(target.parent)

    def put(self, path: str, data: bytes) -> None:
        """Writes a file, atomically replacing an existing one."""
        target = self._root / path
        with _errors(path), self._unfinished(data) as unfinished:
            if target.parent.parent != self._root or not self._put_with_folder(unfinished, target):
                _make_folder(target.parent)
                unfinished.replace(target)
            _flush_folder(target.parent)

    def put_file(self, path: str, local_file: Path) -> None:
        """Moves a finished local file into place, replacing an existing one."""
        target = self._root / path
        with _errors(path):
            _flush_file(local_file)
            _make_folder(target.parent)
            try:
                local_file.replace(target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                self._copy_across(local_file, target)
            _flush_folder(target.parent)

    def move(self, path: str, target: str) -> None:
        """Renames a finished file of this store, replacing an existing one."""
        self.put_file(target, self._root / path)

    def exists(self, path: str) -> bool:
        """Returns whether a file (not a folder) with this name exists."""
        with _errors(path):
            return (self._root / path).is_file()

    def list(self, prefix: str, *, recursive: bool = False) -> StoredFiles:
        """Lists the files of a folder, sorted by path; a missing folder is empty."""
        with _errors(prefix):
            found = list(_files_below(str(self._root / prefix), prefix.rstrip("/"), recursive))
        found.sort(key=lambda file: file.path)
        return found

    def stat(self, path: str) -> StoredFile:
        """Returns size and time of one file."""
        with _errors(path):
            status = (self._root / path).stat()
        return StoredFile(path, status.st_size, status.st_mtime_ns // 1_000_000)

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files; missing files and files behind a linked folder are ignored."""
        within: dict[Path, bool] = {}
        for path in paths:
            check_inside(path)
            folder = (self._root / path).parent
            if folder not in within:
                within[folder] = self._is_within(folder)
            with _errors(path), suppress(FileNotFoundError, NotADirectoryError):
                if within[folder]:
                    (self._root / path).unlink()

    def delete_tree(self, prefix: str) -> None:
        """Deletes a folder with all its content ('' is the root); a missing folder is ignored."""
        folder = self._root / prefix
        # Another process may delete a file of the folder in the meantime, so a second pass is made.
        for _ in range(2):
            with _errors(prefix), suppress(FileNotFoundError):
                shutil.rmtree(folder)
                return

    def local_path(self, path: str) -> Path:
        """Returns the local path of a file."""
        return self._root / path

    def local_scratch(self) -> Path:
        """Returns the folder for unfinished files, which exists."""
        try:
            self._scratch.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = folder_problem(self._scratch) or f"its folder cannot be created ({error.strerror})"
            raise StoreError(
                f"{self._root} cannot hold a table: {why}; set location_root to a folder that can be written"
            ) from error
        return self._scratch

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[IO[bytes], int]]:
        """Opens a regular file; refuses pipes, on which reading would block until someone writes."""
        descriptor = os.open(self._root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(f"{path} is not a regular file")
            yield file, status.st_size

    def _is_within(self, folder: Path) -> bool:
        """Returns whether no link leads from the root to a folder: files behind a link belong to somebody else."""
        root = Path(os.path.realpath(self._root))
        return Path(os.path.realpath(folder)) == root / folder.relative_to(self._root)

    def _put_with_folder(self, unfinished: Path, target: Path) -> bool:
        """Creates a new folder together with its first file; returns False if the folder exists.

        Spark treats a table whose manifest folder is empty as an empty table.
        """
        if target.parent.exists():
            return False
        folder = self.local_scratch() / f".{uuid.uuid4().hex}.tmp"
        folder.mkdir()
        try:
            copy = folder / target.name
            os.link(unfinished, copy)
            folder.rename(target.parent)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            return False
        return True

    @contextmanager
    def _unfinished(self, data: bytes) -> Iterator[Path]:
        path = self.local_scratch() / f".{uuid.uuid4().hex}.tmp"
        try:
            # open() instead of tempfile: the umask must apply to this file as to all other files of the table.
            with path.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield path
        finally:
            with suppress(OSError):
                path.unlink()

    def _copy_across(self, local_file: Path, target: Path) -> None:
        copy = self.local_scratch() / f".{uuid.uuid4().hex}.tmp"
        try:
            shutil.copyfile(local_file, copy)
            _flush_file(copy)
            copy.replace(target)
        finally:
            with suppress(OSError):
                copy.unlink()
        local_file.unlink()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        # Not an `AlreadyExistsError`: that one says that another writer was first, so its caller tries the next name.
        raise StoreError(f"{folder_problem(folder)}; move it away and run this again") from error


def folder_problem(folder: Path) -> str | None:
    """Returns why nothing can be written into a folder, which need not exist yet; None if there is no known reason."""
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not there.is_dir():
        return f"{there} is a file, not a folder"
    return None if os.access(there, os.W_OK | os.X_OK) else f"this user cannot write to {there}"


def _files_below(folder: str, relative: str, recursive: bool) -> Iterator[StoredFile]:
    # Folders that vanish during the listing were deleted by a clean or a drop: they have no files.
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            path = f"{relative}/{entry.name}" if relative else entry.name
            if entry.is_dir(follow_symlinks=False):
                if recursive:
                    yield from _files_below(entry.path, path, recursive)
                continue
            try:
                # Linked folders belong to somebody else, and listed files may be deleted.
                if entry.is_symlink() and entry.is_dir():
                    continue
                status = entry.stat()
            except OSError as error:
                if error.errno in _NO_SUCH_FILE:
                    continue
                raise
            if stat.S_ISREG(status.st_mode):
                yield StoredFile(path, status.st_size, status.st_mtime_ns // 1_000_000)


def _flush_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    # The folder holds the names of its files: without this, a power failure may undo a commit that was reported done.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise AlreadyExistsError(f"{path} already exists") from error
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise FileMissingError(f"{path}: no such file ({error})") from error
    except (OSError, ValueError) as error:  # names that no file can have raise ValueError
        raise StoreError(f"{path}: {error}") from error
