"""Access to Hadoop in the JVM: file systems, paths and listings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from dbt.adapters.zlayout.spark.jvm.scala import Jvm

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_FILE_STATUS = "org.apache.hadoop.fs.FileStatus"


@dataclass(frozen=True)
class Listed:
    """One entry of a folder. The folder's path and the entry's name are unescaped."""

    folder: str
    name: str
    size_bytes: int
    modified_ms: int
    is_file: bool


class HadoopJvm:
    """Hadoop's classes, and one ``FileContext`` for each file system. It lives as long as the Spark context."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._jvm = Jvm.of(spark)
        self._configuration: Any = context._jsc.hadoopConfiguration()
        self._contexts: dict[tuple[str, str], Any] = {}
        self.root: Any = self._jvm.root
        self.fs: Any = self.root.org.apache.hadoop.fs
        self.io: Any = self.root.org.apache.hadoop.io.IOUtils
        self.no_overwrite = self._rename_option("NONE")
        self.overwrite = self._rename_option("OVERWRITE")
        self.default_permission: Any = self.fs.FileContext.DIR_DEFAULT_PERM

    @classmethod
    def of(cls, spark: SparkSession) -> HadoopJvm:
        """Returns the instance of a session's application."""
        context = spark.sparkContext
        if context not in _KNOWN:
            _KNOWN[context] = cls(spark)
        return _KNOWN[context]

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

    def entries(self, statuses: Any) -> list[Listed]:
        """Returns the entries of an array of ``FileStatus``."""
        found = self._as_list.apply(statuses)
        if not found.size():
            return []
        joining = self.root.java.util.stream.Collectors.joining("\n")
        columns = [str(found.stream().map(text).collect(joining)).split("\n") for text in self._texts]
        return [
            Listed(unquote(folder), unquote(name), int(size), int(time), is_file == "true")
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


_KNOWN: WeakKeyDictionary[SparkContext, HadoopJvm] = WeakKeyDictionary()
