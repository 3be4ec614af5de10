"""The store for Hadoop file systems, through the driver's JVM. It creates files by a rename that must not overwrite."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.zlayout.errors import AlreadyExistsError, FileMissingError, StoreError, UnsupportedError
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.spark.jvm.lifetime import HAS_ENDED, java_has_ended
from dbt.adapters.zlayout.spark.jvm.scala import Jvm
from dbt.adapters.zlayout.store import StoredFile, StoredFiles, qualified
from dbt.adapters.zlayout.store.local import SCRATCH_FOLDER
from dbt.adapters.zlayout.store.opening import no_jvm, open_hadoop_with
from dbt.adapters.zlayout.store.protocol import MOST_BYTES_READ, LocalScratch, check_inside, checked_parts, too_large
from dbt.adapters.zlayout.store.uri import escaped

_FILE_STATUS = "org.apache.hadoop.fs.FileStatus"
# On HDFS the name node executes a rename under its lock.
_RENAME_IS_ATOMIC = frozenset({"hdfs"})
_COPY_BUFFER_BYTES = 4 << 20
_EXISTS = frozenset({"org.apache.hadoop.fs.FileAlreadyExistsException"})
_MISSING = frozenset({"java.io.FileNotFoundException", "org.apache.hadoop.fs.ParentNotDirectoryException"})


@dataclass(frozen=True)
class _Listed:
    """One entry of a folder. The folder's path and the entry's name are unescaped."""

    folder: str
    name: str
    size_bytes: int
    modified_ms: int
    is_file: bool


class _HadoopJvm:
    """Hadoop's classes, and one ``FileContext`` for each file system. It lives as long as the Spark context."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._configuration: Any = jvm.root.org.apache.spark.SparkContext.getOrCreate().hadoopConfiguration()
        self._contexts: dict[tuple[str, str], Any] = {}
        self.root: Any = jvm.root
        self.fs: Any = self.root.org.apache.hadoop.fs
        self.io: Any = self.root.org.apache.hadoop.io.IOUtils
        self.no_overwrite = self._rename_option("NONE")
        self.overwrite = self._rename_option("OVERWRITE")
        self.default_permission: Any = self.fs.FileContext.DIR_DEFAULT_PERM

    def file_context(self, location: str) -> Any:
        """Returns the cached context of a location's file system. A new one would open connections that never close."""
        parts = urlsplit(location)
        key = (parts.scheme.lower(), parts.netloc)
        if key not in self._contexts:
            uri = self.root.java.net.URI.create(f"{parts.scheme}://{parts.netloc}/")
            self._contexts[key] = self.fs.FileContext.getFileContext(uri, self._configuration)
        return self._contexts[key]

    def path(self, uri: str) -> Any:
        """Returns Hadoop's ``Path`` for an escaped URI. In plain text, Hadoop would take a colon for a scheme's end."""
        return self.fs.Path(self.root.java.net.URI.create(uri))

    def entries(self, statuses: Any) -> list[_Listed]:
        """Returns the entries of an array of ``FileStatus``."""
        found = self._as_list.apply(statuses)
        if not found.size():
            return []
        joining = self.root.java.util.stream.Collectors.joining("\n")
        columns = [str(found.stream().map(text).collect(joining)).split("\n") for text in self._texts]
        return [
            _Listed(unquote(folder), unquote(name), int(size), int(time), is_file == "true")
            for (folder, _, name), size, time, is_file in zip(
                (path.rpartition("/") for path in columns[0]), *columns[1:], strict=True
            )
        ]

    @cached_property
    def _as_list(self) -> Any:
        """``Arrays.asList`` for arrays of any class. Py4J finds it for ``Object[]`` only."""
        handle = self._jvm.static("java.util.Arrays", "asList", "([Ljava/lang/Object;)Ljava/util/List;")
        return self._jvm.function(handle.asFixedArity())

    @cached_property
    def _texts(self) -> Sequence[Any]:
        """Functions from ``FileStatus`` to text. They transfer a listing in four calls, not in four calls per file."""
        jvm, text = self._jvm, "java.lang.String"
        path = jvm.then(
            jvm.virtual(_FILE_STATUS, "getPath", "()Lorg/apache/hadoop/fs/Path;"),
            jvm.virtual("org.apache.hadoop.fs.Path", "toUri", "()Ljava/net/URI;"),
            jvm.virtual("java.net.URI", "getRawPath", "()Ljava/lang/String;"),
        )
        size, time, is_file = (
            jvm.then(
                jvm.virtual(_FILE_STATUS, name, f"(){kind}"), jvm.static(text, "valueOf", f"({kind})Ljava/lang/String;")
            )
            for name, kind in (("getLen", "J"), ("getModificationTime", "J"), ("isFile", "Z"))
        )
        return [jvm.function(each) for each in (path, size, time, is_file)]

    def _rename_option(self, name: str) -> Any:
        options = self._jvm.gateway.new_array(self.fs.Options.Rename, 1)
        options[0] = getattr(self.fs.Options.Rename, name)
        return options


def serve_hadoop_stores() -> None:
    """Lets ``open_store`` open Hadoop file systems in this process while a Spark driver runs in it."""
    open_hadoop_with(open_hadoop_store)


def open_hadoop_store(location: str) -> HadoopStore:
    """Opens the store of a table on a Hadoop file system.

    Args:
        location: For example 'hdfs://namenode:8020/warehouse/t'.

    Raises:
        UnsupportedError: No Spark driver runs here, or the file system does not guarantee create-if-absent.
        StoreError: The file system cannot be reached.
    """
    if SparkContext._active_spark_context is None:
        raise no_jvm(location)
    store = HadoopStore(SparkSession.builder.getOrCreate(), location)
    scheme = store.scheme_of_the_files()
    if scheme not in _RENAME_IS_ATOMIC:
        raise UnsupportedError(
            f"location {location!r} is on {scheme!r} through Hadoop, whose rename looks for the target and then "
            "overwrites it, so two writers could commit the same version; allowed are "
            f"{', '.join(_RENAME_IS_ATOMIC)}, a path of this machine ('file:///path') and object stores "
            "('s3a://bucket/path')"
        )
    return store


class HadoopStore:
    """Files below a folder of a Hadoop file system, accessed through ``FileContext``.

    Every write goes to a hidden file in the table's scratch folder first. The file is flushed to the disks of the data
    nodes and then renamed.

    Args:
        spark: A session with its own JVM.
        location: Absolute URI of the folder; it need not exist yet.
    """

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._hadoop: _HadoopJvm = Jvm.of(spark).once(_HadoopJvm)
        with store_errors(location):
            self._files: Any = self._hadoop.file_context(location)
            root = self._files.makeQualified(self._hadoop.path(location)).toUri()
            self.root_uri = f"{root.getScheme()}://{root.getAuthority() or ''}{escaped(str(root.getPath()))}".rstrip(
                "/"
            )
        self._scratch = LocalScratch()

    def scheme_of_the_files(self) -> str:
        """Returns the scheme of the file system that holds the folder. For ``viewfs``, that is another file system."""
        folder = self._path("")
        with store_errors(self.root_uri):
            while folder.getParent() is not None and not self._files.util().exists(folder):
                folder = folder.getParent()
            return str(self._files.resolvePath(folder).toUri().getScheme())

    def read(self, path: str) -> bytes:
        """Returns the bytes of a file."""
        size_bytes = self.stat(path).size_bytes
        if size_bytes > MOST_BYTES_READ:
            raise too_large(path, size_bytes)
        return self._read(path, 0)

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        """Returns the last bytes of a file, or the whole file if it is smaller."""
        return self._read(path, max(0, self.stat(path).size_bytes - most_bytes))

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Returns parts of a file."""
        with store_errors(path):
            stream = self._files.open(self._path(path))
            try:
                parts = []
                for start, length in zip(starts, lengths, strict=True):
                    stream.seek(start)
                    parts.append(bytes(stream.readNBytes(length)))
            finally:
                stream.close()
        return checked_parts(path, parts, lengths)

    def create(self, path: str, data: bytes) -> None:
        """Writes a file unless it exists."""
        with store_errors(path), self._unfinished() as unfinished:
            self._write(unfinished, data)
            self._rename(unfinished, path, self._hadoop.no_overwrite)

    def put(self, path: str, data: bytes) -> None:
        """Writes a file, atomically replacing an existing one."""
        with store_errors(path), self._unfinished() as unfinished:
            self._write(unfinished, data)
            self._rename(unfinished, path, self._hadoop.overwrite)

    def put_file(self, path: str, local_file: Path) -> None:
        """Copies a finished local file into place and deletes the local file."""
        with store_errors(path), self._unfinished() as unfinished:
            source = self._hadoop.root.java.io.FileInputStream(str(local_file))
            try:
                with self._output(unfinished) as output:
                    self._hadoop.io.copyBytes(source, output, _COPY_BUFFER_BYTES, False)
            finally:
                source.close()
            self._rename(unfinished, path, self._hadoop.overwrite)
        local_file.unlink()

    def move(self, path: str, target: str) -> None:
        """Renames a finished file of this store, replacing an existing one."""
        with store_errors(path):
            self._rename(self._path(path), target, self._hadoop.overwrite)

    def exists(self, path: str) -> bool:
        """Returns whether a file (not a folder) with this name exists."""
        try:
            self.stat(path)
        except FileMissingError:
            return False
        return True

    def list(self, prefix: str, *, recursive: bool = False) -> StoredFiles:
        """Lists the files of a folder, sorted by path. A missing folder is empty."""
        with store_errors(prefix):
            return sorted(self._below(prefix.strip("/"), recursive), key=lambda file: file.path)

    def stat(self, path: str) -> StoredFile:
        """Returns size and modification time of one file."""
        with store_errors(path):
            status = self._files.getFileStatus(self._path(path))
            if not status.isFile():
                raise FileMissingError(f"{path} is a folder, not a file")
            return StoredFile(path, int(status.getLen()), int(status.getModificationTime()))

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files and ignores missing ones."""
        for path in paths:
            check_inside(path)
            with suppress(FileMissingError), store_errors(path):
                self._files.delete(self._path(path), False)

    def delete_tree(self, prefix: str) -> None:
        """Deletes a folder with everything in it ('' is the root). A missing folder is ignored."""
        with suppress(FileMissingError), store_errors(prefix):
            self._files.delete(self._path(prefix), True)

    def local_path(self, path: str) -> None:  # noqa: ARG002 - the protocol's signature
        """Returns None: files of this store have no local path."""
        return

    def local_scratch(self) -> Path:
        """Returns a temporary folder on this machine. It is deleted with the store."""
        return self._scratch.path()

    def _path(self, path: str) -> Any:
        return self._hadoop.path(qualified(self.root_uri, path).rstrip("/"))

    def _read(self, path: str, start: int) -> bytes:
        with store_errors(path):
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
            # The folder usually exists. If not, this is the first file in it.
            self._files.mkdir(path.getParent(), self._hadoop.default_permission, True)
            self._files.rename(source, path, option)

    def _below(self, folder: str, recursive: bool) -> Iterator[StoredFile]:
        path_of_folder = self._path(folder)
        folder_path = str(path_of_folder.toUri().getPath())
        try:
            entries = self._hadoop.entries(self._files.util().listStatus(path_of_folder))
        except Py4JJavaError as error:
            # A clean or a drop may delete a folder while it is listed. It then has no files.
            if _class_of(error) not in _MISSING:
                raise
            return
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if not entry.is_file:
                if recursive:
                    yield from self._below(path, recursive)
            # If the path is a file, Hadoop lists the file itself.
            elif entry.folder == folder_path:
                yield StoredFile(path, entry.size_bytes, entry.modified_ms)


def _class_of(error: Py4JJavaError) -> str:
    return str(error.java_exception.getClass().getName())


@contextmanager
def store_errors(path: str) -> Iterator[None]:
    """Turns errors of Hadoop's file systems into those of stores, with the path that they are about."""
    try:
        yield
    except Py4JJavaError as error:
        name = _class_of(error)
        if name in _EXISTS:
            raise AlreadyExistsError(f"{path} already exists") from error
        message = str(error.java_exception.getMessage() or "").strip().split("\n")[0]
        if name in _MISSING:
            raise FileMissingError(f"{path}: no such file ({message})") from error
        raise StoreError(f"{path}: {name.rpartition('.')[2]}: {message}") from error
    except (Py4JError, PySparkException, OSError) as error:
        if java_has_ended(error):
            raise StoreError(HAS_ENDED) from error
        raise StoreError(f"{path}: {str(error).strip().split(chr(10))[0]}") from error
