"""The store of Hadoop file systems, through the driver's JVM: a rename that may not overwrite creates."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.zlayout.errors import AlreadyExistsError, FileMissingError, StoreError, UnsupportedError
from dbt.adapters.zlayout.spark.jvm.hadoop import HadoopJvm
from dbt.adapters.zlayout.store import StoredFile, StoredFiles, qualified
from dbt.adapters.zlayout.store.inside import check_inside
from dbt.adapters.zlayout.store.local import SCRATCH_FOLDER
from dbt.adapters.zlayout.store.opening import no_jvm, open_hadoop_with
from dbt.adapters.zlayout.store.protocol import MOST_BYTES_READ, too_large
from dbt.adapters.zlayout.store.scratch import LocalScratch
from dbt.adapters.zlayout.store.uri import escaped

# The name node decides a rename under its lock.
_RENAME_IS_ATOMIC = frozenset({"hdfs"})
_COPY_BUFFER_BYTES = 4 << 20
_EXISTS = frozenset({"org.apache.hadoop.fs.FileAlreadyExistsException"})
_MISSING = frozenset({"java.io.FileNotFoundException", "org.apache.hadoop.fs.ParentNotDirectoryException"})


def serve_hadoop_stores() -> None:
    """Lets ``open_store`` open Hadoop file systems in this process, while a Spark driver runs in it."""
    open_hadoop_with(open_hadoop_store)


def open_hadoop_store(location: str) -> HadoopStore:
    """Opens the store of a table on a Hadoop file system.

    Args:
        location: For example 'hdfs://namenode:8020/warehouse/t'.

    Raises:
        UnsupportedError: No Spark driver runs here, or the file system cannot promise create-if-absent.
        StoreError: The file system cannot be reached.
    """
    if SparkContext._active_spark_context is None:
        raise no_jvm(location)
    store = HadoopStore(SparkSession.builder.getOrCreate(), location)
    scheme = store.scheme_of_the_files()
    if scheme not in _RENAME_IS_ATOMIC:
        raise UnsupportedError(
            f"location {location!r} lies on {scheme!r} through Hadoop, whose rename looks for the target and then "
            "overwrites it, so two writers could commit the same version; allowed are "
            f"{', '.join(_RENAME_IS_ATOMIC)}, a path of this machine ('file:///path') and object stores "
            "('s3a://bucket/path')"
        )
    return store


class HadoopStore:
    """Files below a folder of a Hadoop file system, as ``FileContext`` shows it.

    Every write goes to a hidden file of the table's scratch folder first, is flushed to the data nodes' disks, and then
    renamed.

    Args:
        spark: A session with a JVM of its own.
        location: Absolute URI of the folder; it need not exist yet.
    """

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._hadoop = HadoopJvm.of(spark)
        with _errors(location):
            self._files: Any = self._hadoop.file_context(location)
            root = self._files.makeQualified(self._hadoop.path(location)).toUri()
            self.root_uri = f"{root.getScheme()}://{root.getAuthority() or ''}{escaped(str(root.getPath()))}".rstrip(
                "/"
            )
        self._scratch = LocalScratch()

    def scheme_of_the_files(self) -> str:
        """Return the scheme of the file system that keeps the folder: a view (``viewfs``) shows those of others."""
        folder = self._path("")
        with _errors(self.root_uri):
            while folder.getParent() is not None and not self._files.util().exists(folder):
                folder = folder.getParent()
            return str(self._files.resolvePath(folder).toUri().getScheme())

    def read(self, path: str) -> bytes:
        """Return the bytes of a file."""
        size_bytes = self.stat(path).size_bytes
        if size_bytes > MOST_BYTES_READ:
            raise too_large(path, size_bytes)
        return self._read(path, 0)

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        """Return the last bytes of a file, or all of a smaller one."""
        return self._read(path, max(0, self.stat(path).size_bytes - most_bytes))

    def create(self, path: str, data: bytes) -> None:
        """Write a file only if none has this name."""
        with _errors(path), self._unfinished() as unfinished:
            self._write(unfinished, data)
            self._rename(unfinished, path, self._hadoop.no_overwrite)

    def put(self, path: str, data: bytes) -> None:
        """Write a file, in one step replacing the one that may be there."""
        with _errors(path), self._unfinished() as unfinished:
            self._write(unfinished, data)
            self._rename(unfinished, path, self._hadoop.overwrite)

    def put_file(self, path: str, local_file: Path) -> None:
        """Copy a finished local file into place and delete it here."""
        with _errors(path), self._unfinished() as unfinished:
            source = self._hadoop.root.java.io.FileInputStream(str(local_file))
            try:
                with self._output(unfinished) as output:
                    self._hadoop.io.copyBytes(source, output, _COPY_BUFFER_BYTES, False)
            finally:
                source.close()
            self._rename(unfinished, path, self._hadoop.overwrite)
        local_file.unlink()

    def move(self, path: str, target: str) -> None:
        """Give a finished file of this store another name, replacing the file that may have it."""
        with _errors(path):
            self._rename(self._path(path), target, self._hadoop.overwrite)

    def exists(self, path: str) -> bool:
        """Tell whether a file (not a folder) has this name."""
        try:
            self.stat(path)
        except FileMissingError:
            return False
        return True

    def list(self, prefix: str, *, recursive: bool = False) -> StoredFiles:
        """List the files of a folder, sorted by path; a missing folder is empty."""
        with _errors(prefix):
            return sorted(self._below(prefix.strip("/"), recursive), key=lambda file: file.path)

    def stat(self, path: str) -> StoredFile:
        """Return size and time of one file."""
        with _errors(path):
            status = self._files.getFileStatus(self._path(path))
            if not status.isFile():
                raise FileMissingError(f"{path}: a folder, no file")
            return StoredFile(path, int(status.getLen()), int(status.getModificationTime()))

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; those that are missing already are passed over."""
        for path in paths:
            check_inside(path)
            with suppress(FileMissingError), _errors(path):
                self._files.delete(self._path(path), False)

    def delete_tree(self, prefix: str) -> None:
        """Delete a folder with all that is in it ('' is the root); a missing one is passed over."""
        with suppress(FileMissingError), _errors(prefix):
            self._files.delete(self._path(prefix), True)

    def local_path(self, path: str) -> None:  # noqa: ARG002 - the protocol's signature
        """Return None: nothing here can be opened by a local path."""
        return

    def local_scratch(self) -> Path:
        """Return a temporary folder of this machine, deleted with the store."""
        return self._scratch.path()

    def _path(self, path: str) -> Any:
        return self._hadoop.path(qualified(self.root_uri, path).rstrip("/"))

    def _read(self, path: str, start: int) -> bytes:
        with _errors(path):
            stream = self._files.open(self._path(path))
            try:
                if start:
                    stream.seek(start)
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    @contextmanager
    def _unfinished(self) -> Iterator[Any]:
        path = self._path(f"{SCRATCH_FOLDER}/.{uuid.uuid4().hex}.tmp")
        try:
            yield path
        except BaseException:
            with suppress(Py4JError, PySparkException):
                self._files.delete(path, False)
            raise

    @contextmanager
    def _output(self, path: Any) -> Iterator[Any]:
        stream = self._files.create(path).create().recursive().build()
        try:
            yield stream
            stream.hsync()
        finally:
            stream.close()

    def _write(self, path: Any, data: bytes) -> None:
        with self._output(path) as stream:
            stream.write(bytes(data))

    def _rename(self, source: Any, target: str, option: Any) -> None:
        path = self._path(target)
        try:
            self._files.rename(source, path, option)
        except Py4JJavaError as error:
            if _class_of(error) not in _MISSING:
                raise
            # Mostly the folder is there; where it is not, this is the first file in it.
            self._files.mkdir(path.getParent(), self._hadoop.default_permission, True)
            self._files.rename(source, path, option)

    def _below(self, folder: str, recursive: bool) -> Iterator[StoredFile]:
        path_of_folder = self._path(folder)
        folder_path = str(path_of_folder.toUri().getPath())
        try:
            entries = self._hadoop.entries(self._files.util().listStatus(path_of_folder))
        except Py4JJavaError as error:
            # A folder that vanishes while it is listed was deleted by a cleaner or a drop: it has no files.
            if _class_of(error) not in _MISSING:
                raise
            return
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if not entry.is_file:
                if recursive:
                    yield from self._below(path, recursive)
            # Asked for a file, Hadoop lists that file itself.
            elif entry.folder == folder_path:
                yield StoredFile(path, entry.size_bytes, entry.modified_ms)


def _class_of(error: Py4JJavaError) -> str:
    return str(error.java_exception.getClass().getName())


@contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        name = _class_of(error)
        if name in _EXISTS:
            raise AlreadyExistsError(f"{path} is there already") from error
        message = str(error.java_exception.getMessage() or "").strip().split("\n")[0]
        if name in _MISSING:
            raise FileMissingError(f"{path}: no such file ({message})") from error
        raise StoreError(f"{path}: {name.rpartition('.')[2]}: {message}") from error
    except (Py4JError, PySparkException, OSError) as error:
        raise StoreError(f"{path}: {str(error).strip().split(chr(10))[0]}") from error
