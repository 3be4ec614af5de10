"""The store of a local (or mounted POSIX) file system: hard links create, renames replace."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dbt.adapters.zlayout.errors import AlreadyExistsError, FileMissingError, StoreError, UnsupportedError
from dbt.adapters.zlayout.store.inside import check_inside
from dbt.adapters.zlayout.store.protocol import MOST_BYTES_READ, StoredFile, StoredFiles, too_large
from dbt.adapters.zlayout.store.uri import escaped

SCRATCH_FOLDER = ".zlayout/staging"
# Gone meanwhile, a link to nothing, a loop of links.
_NO_SUCH_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class LocalStore:
    """Files below a folder of this machine.

    Every write goes to a hidden file of `local_scratch` first, is flushed to the disk, and then gets its name.

    Args:
        root: Absolute path of the folder; it need not exist yet.
    """

    def __init__(self, root: Path | str) -> None:
        self._root = Path(root)
        self._scratch = self._root / SCRATCH_FOLDER
        self.root_uri = "file://" + escaped(str(self._root))

    def read(self, path: str) -> bytes:
        """Return the bytes of a file."""
        with _errors(path), self._opened(path) as (file, size_bytes):
            if size_bytes > MOST_BYTES_READ:
                raise too_large(path, size_bytes)
            return file.read()

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        """Return the last bytes of a file, or all of a smaller one."""
        with _errors(path), self._opened(path) as (file, size_bytes):
            file.seek(max(0, size_bytes - most_bytes))
            return file.read()

    def create(self, path: str, data: bytes) -> None:
        """Write a file only if none has this name."""
        target = self._root / path
        with _errors(path), self._unfinished(data) as unfinished:
            target.parent.mkdir(parents=True, exist_ok=True)
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
        """Write a file, in one step replacing the one that may be there."""
        target = self._root / path
        with _errors(path), self._unfinished(data) as unfinished:
            if target.parent.parent != self._root or not self._put_with_folder(unfinished, target):
                target.parent.mkdir(parents=True, exist_ok=True)
                unfinished.replace(target)
            _flush_folder(target.parent)

    def put_file(self, path: str, local_file: Path) -> None:
        """Move a finished local file into place, replacing the one that may be there."""
        target = self._root / path
        with _errors(path):
            _flush_file(local_file)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                local_file.replace(target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                self._copy_across(local_file, target)
            _flush_folder(target.parent)

    def move(self, path: str, target: str) -> None:
        """Give a finished file of this store another name, replacing the file that may have it."""
        self.put_file(target, self._root / path)

    def exists(self, path: str) -> bool:
        """Tell whether a file (not a folder) has this name."""
        with _errors(path):
            return (self._root / path).is_file()

    def list(self, prefix: str, *, recursive: bool = False) -> StoredFiles:
        """List the files of a folder, sorted by path; a missing folder is empty."""
        with _errors(prefix):
            found = list(_files_below(str(self._root / prefix), prefix.rstrip("/"), recursive))
        found.sort(key=lambda file: file.path)
        return found

    def stat(self, path: str) -> StoredFile:
        """Return size and time of one file."""
        with _errors(path):
            status = (self._root / path).stat()
        return StoredFile(path, status.st_size, status.st_mtime_ns // 1_000_000)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; those that are missing already, or that lie behind a linked folder, are passed over."""
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
        """Delete a folder with all that is in it ('' is the root); a missing one is passed over."""
        folder = self._root / prefix
        # A file that another process deletes meanwhile is as good as deleted, so one more pass is made.
        for _ in range(2):
            with _errors(prefix), suppress(FileNotFoundError):
                shutil.rmtree(folder)
                return

    def local_path(self, path: str) -> Path:
        """Return where a local program can open the file."""
        return self._root / path

    def local_scratch(self) -> Path:
        """Return the existing folder for unfinished files."""
        try:
            self._scratch.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = folder_problem(self._scratch) or f"no folder can be made there ({error.strerror})"
            raise StoreError(
                f"{self._root} cannot hold a table: {why}; set location_root to a folder that can be written"
            ) from error
        return self._scratch

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[IO[bytes], int]]:
        """Open a file; a pipe, which would have this process wait for whoever writes into it, is none."""
        descriptor = os.open(self._root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(f"{path} is not a regular file")
            yield file, status.st_size

    def _is_within(self, folder: Path) -> bool:
        """Whether no link leads from the root to a folder: what lies behind one is somebody else's."""
        root = Path(os.path.realpath(self._root))
        return Path(os.path.realpath(folder)) == root / folder.relative_to(self._root)

    def _put_with_folder(self, unfinished: Path, target: Path) -> bool:
        """Put the first file of a new folder into place together with the folder; false if the folder is there.

        Spark takes a table whose manifest folder is empty for an empty table.
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
            # open() and not tempfile: the file must get the mode that the umask gives every other file of the table.
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


def folder_problem(folder: Path) -> str | None:
    """Tell why nothing can be written into a folder, which need not exist yet; None where nothing speaks against it."""
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not there.is_dir():
        return f"{there} is a file, not a folder"
    return None if os.access(there, os.W_OK | os.X_OK) else f"this user may not write into {there}"


def _files_below(folder: str, relative: str, recursive: bool) -> Iterator[StoredFile]:
    # Folders that vanish while they are listed were deleted by a cleaner or a drop: they have no files.
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
                # A linked folder belongs to somebody else; what is found here may be deleted.
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
    # The name of a file lives in its folder: without this a power cut may forget a commit that was reported done.
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
        raise AlreadyExistsError(f"{path} is there already") from error
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise FileMissingError(f"{path}: no such file ({error})") from error
    except (OSError, ValueError) as error:  # a name that no file can have is a ValueError
        raise StoreError(f"{path}: {error}") from error
