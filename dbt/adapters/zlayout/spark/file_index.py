"""Spark's ``FileIndex`` in Python over Py4J: plain SQL plans on it and reads only the files that may match.

Source: ``org.apache.spark.sql.execution.datasources.FileIndex``. Spark calls ``listFiles`` once a scan while it plans,
from whichever thread plans. Partition filters are decided here for good (Spark does not apply them again), so
Spark's own evaluator decides them; data filters only choose candidates, Spark filters the rows.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from dbt.adapters.zlayout.predicate.expr import And, Constant, Expr
from dbt.adapters.zlayout.spark.catalyst import to_predicate
from dbt.adapters.zlayout.spark.jvm import Jvm
from dbt.adapters.zlayout.spark.opened import OpenTable

_LOG = logging.getLogger(__name__)
_DIGITS = 19


class ZlayoutFileIndex(ABC):
    """What both kinds of tables have in common.

    Args:
        jvm: The driver's JVM.
        opened: The table, or the index of somebody else's table, at one version.
        schema_json: Spark's JSON of the relation's columns, partition columns included.

    Attributes:
        last_scan: Files kept and files in all by the last scan that was planned.
    """

    def __init__(self, jvm: Jvm, opened: OpenTable, schema_json: str) -> None:
        self.opened = opened
        self.last_scan: tuple[int, int] | None = None
        self._jvm = jvm
        self._schema_json = schema_json

    @abstractmethod
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802 - Spark's name
        """``Seq[PartitionDirectory]`` of the files that may hold a matching row."""

    def metadataOpsTimeNs(self) -> Any:  # noqa: N802 - Spark's name
        """Spark's metric of time spent on listing; not kept."""
        return self._jvm.none()

    def isTimeTravel(self) -> bool:  # noqa: N802 - Spark's name
        """Whether Spark should treat the relation as a past version."""
        return False

    def hashCode(self) -> int:  # noqa: N802 - Java's name
        """32-bit hash of table and version."""
        return hash(self.opened.identity) & 0x7FFFFFFF

    def toString(self) -> str:  # noqa: N802 - Java's name
        """What a plan shows as the location."""
        return f"zlayout({self.opened.location}, version {self.opened.version})"

    def predicate(self, *filters: Any) -> Expr:
        """The conjunction of Catalyst filters (each a Scala ``Seq``) as one predicate."""
        every = [group.apply(position) for group in filters for position in range(group.size())]
        return And(tuple(to_predicate(each, self._schema_json) for each in every)) if every else Constant(True)

    class Java:
        """Names the interface to Py4J."""

        implements = ("org.apache.spark.sql.execution.datasources.FileIndex",)


class SnapshotFileIndex(ZlayoutFileIndex):
    """The files of one version of a table. The same version gives the same answer for as long as its files are kept.

    Args:
        jvm: The driver's JVM.
        opened: The table at the version to show.
        partition_schema: Spark's ``StructType`` of the partition columns (Py4J object).
    """

    def __init__(self, jvm: Jvm, opened: OpenTable, partition_schema: Any) -> None:
        super().__init__(jvm, opened, opened.schema_json)
        self._partition_schema = partition_schema
        self._lock = threading.Lock()
        self._statuses: Any = None
        self._partition_rows: list[Any] | None = None

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802 - Spark's name
        """``Seq[PartitionDirectory]`` of the files that may hold a matching row."""
        kept = self._kept_partitions(partition_filters)
        candidates = np.isin(self.opened.partition_of_file, kept) if kept is not None else self.opened.all_files()
        candidates &= self._may_match(data_filters)
        self.last_scan = (int(candidates.sum()), len(self.opened.files))
        return self._directories(candidates)

    def rootPaths(self) -> Any:  # noqa: N802 - Spark's name
        """``Seq[Path]`` of the table's folder."""
        return self._jvm.seq([self._jvm.root.org.apache.hadoop.fs.Path(self.opened.location)])

    def inputFiles(self) -> Any:  # noqa: N802 - Spark's name
        """``String[]`` of every file's URI."""
        # Pattern.split is the one call that makes a String[] of any length.
        uris = self.opened.file_uris()
        empty = self._jvm.gateway.new_array(self._jvm.lang.String, 0)
        return self._jvm.root.java.util.regex.Pattern.compile("\n").split("\n".join(uris)) if uris else empty

    def sizeInBytes(self) -> int:  # noqa: N802 - Spark's name
        """Bytes of all files."""
        return self.opened.files.total_bytes

    def partitionSchema(self) -> Any:  # noqa: N802 - Spark's name
        """``StructType`` of the partition columns."""
        return self._partition_schema

    def refresh(self) -> None:
        """Nothing to do: a version does not change; a newer one gets an index of its own."""

    def equals(self, other: object) -> bool:
        """Two indexes are equal when they show the same version of the same table, so that Spark may reuse plans."""
        return isinstance(other, SnapshotFileIndex) and other.opened.identity == self.opened.identity

    def _may_match(self, data_filters: Any) -> np.ndarray:
        try:
            if data_filters.isEmpty():
                return self.opened.all_files()
            return self.opened.scan(self.predicate(data_filters)).candidates
        except Exception:  # a broken index costs speed, never a result
            _LOG.warning("skipping is off for one scan of %s", self.opened.location, exc_info=True)
            return self.opened.all_files()

    def _kept_partitions(self, filters: Any) -> np.ndarray | None:
        """Numbers of the partitions whose values make every filter TRUE, by Spark's own evaluation; None for all."""
        if filters.isEmpty() or not self.opened.partition_columns:
            return None
        expressions = self._jvm.catalyst.expressions
        condition = filters.apply(0)
        for position in range(1, filters.size()):
            condition = expressions.And(condition, filters.apply(position))
        bound = expressions.BindReferences.bindReference(condition, self._attributes(condition), False)
        evaluator = self._jvm.companion("org.apache.spark.sql.catalyst.expressions.Predicate").createInterpreted(bound)
        rows = self._rows()
        return np.array([number for number, row in enumerate(rows) if evaluator.eval(row)], dtype=np.int64)

    def _attributes(self, condition: Any) -> Any:
        """The partition columns in their order, under the identities that the condition uses."""
        referenced = condition.references().toSeq()
        by_name = {str(referenced.apply(i).name()).lower(): referenced.apply(i) for i in range(referenced.size())}
        fields = [self._partition_schema.apply(i) for i in range(self._partition_schema.size())]
        fresh = self._jvm.root.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttribute
        ordered = [by_name.get(str(each.name()).lower()) or fresh(each) for each in fields]
        return getattr(self._jvm.catalyst.expressions, "package$AttributeSeq")(self._jvm.seq(ordered))

    def _directories(self, candidates: np.ndarray) -> Any:
        numbers = np.flatnonzero(candidates)
        if not len(numbers):
            return self._jvm.seq([])
        chosen = self._all_statuses()
        if len(numbers) < len(candidates):
            chosen = self._jvm.pick(chosen, np.packbits(candidates, bitorder="little").tobytes())
        partitions = self.opened.partition_of_file[numbers]
        starts = np.flatnonzero(np.r_[True, partitions[1:] != partitions[:-1]])
        ends = np.r_[starts[1:], len(numbers)]
        rows = self._rows()
        make = self._jvm.datasources.PartitionDirectory
        return self._jvm.seq(
            [
                make(rows[int(partitions[start])], self._jvm.seq_of(chosen.subList(int(start), int(end))))
                for start, end in zip(starts, ends, strict=True)
            ]
        )

    def _all_statuses(self) -> Any:
        with self._lock:
            if self._statuses is None:
                self._statuses = _file_statuses(self._jvm, self.opened)
            return self._statuses

    def _rows(self) -> list[Any]:
        with self._lock:
            if self._partition_rows is None:
                self._partition_rows = _partition_rows(self._jvm, self._partition_schema, self.opened.partition_keys)
            return self._partition_rows


class SomeFilesIndex(SnapshotFileIndex):
    """Some files of a version: equal to nothing but itself."""

    def equals(self, other: object) -> bool:
        """Whether the other is this very index."""
        return self is other


def _file_statuses(jvm: Jvm, opened: OpenTable) -> Any:
    """``java.util.List<FileStatusWithMetadata>`` of the files in their order: one call, whatever their number."""
    if not len(opened.files):
        return jvm.array_list([])
    size, modified = (opened.files.column(name).to_numpy() for name in ("size_bytes", "modified_ms"))
    uris = opened.file_uris()
    text = "(I)Ljava/lang/String;"
    cut = jvm.virtual("java.lang.String", "substring", "(II)Ljava/lang/String;")
    number = jvm.static("java.lang.Long", "parseLong", "(Ljava/lang/String;)J")
    length = jvm.then(jvm.fixed(cut, 1, 0, _DIGITS), number)
    changed = jvm.then(jvm.fixed(cut, 1, _DIGITS, 2 * _DIGITS), number)
    path = jvm.then(
        jvm.fixed(jvm.virtual("java.lang.String", "substring", text), 1, 2 * _DIGITS),
        jvm.static("java.net.URI", "create", "(Ljava/lang/String;)Ljava/net/URI;"),
        jvm.constructor("org.apache.hadoop.fs.Path", "(Ljava/net/URI;)V"),
    )
    status = jvm.constructor("org.apache.hadoop.fs.FileStatus", "(JZIJJLorg/apache/hadoop/fs/Path;)V")
    status = jvm.fixed(status, 1, False, 1)
    block = jvm.then(jvm.fixed(cut, 1, 0, _DIGITS), number)
    one = jvm.of_one_argument(
        status, [length, block, changed, path], "(Ljava/lang/String;)Lorg/apache/hadoop/fs/FileStatus;"
    )
    with_metadata = jvm.constructor(
        "org.apache.spark.sql.execution.datasources.FileStatusWithMetadata",
        "(Lorg/apache/hadoop/fs/FileStatus;Lscala/collection/immutable/Map;)V",
    )
    one = jvm.then(one, jvm.fixed(with_metadata, 1, jvm.scala_map({})))
    lines = [f"{s:0{_DIGITS}d}{m:0{_DIGITS}d}{uri}" for s, m, uri in zip(size, modified, uris, strict=True)]
    return jvm.lines(lines).map(jvm.function(one)).toList()


def _partition_rows(jvm: Jvm, schema: Any, keys: Sequence[tuple[str | None, ...]]) -> list[Any]:
    """Catalyst rows of typed partition values, cast by Spark from the text that the folder names hold."""
    expressions = jvm.catalyst.expressions
    if not keys or not keys[0]:
        return [jvm.catalyst.InternalRow.empty() for _ in keys]
    zone = jvm.some(jvm.root.org.apache.spark.sql.internal.SQLConf.get().sessionLocalTimeZone())
    string_type = jvm.root.org.apache.spark.sql.types.DataTypes.StringType
    types = [schema.apply(i).dataType() for i in range(schema.size())]
    empty = jvm.catalyst.InternalRow.empty()
    legacy = jvm.root.org.apache.spark.sql.catalyst.expressions.EvalMode.LEGACY()
    rows = []
    for key in keys:
        named: list[Any] = []
        for text, type_ in zip(key, types, strict=True):
            value = expressions.Cast(expressions.Literal.create(text, string_type), type_, zone, legacy)
            named += [expressions.Literal.create(f"c{len(named)}", string_type), value]
        rows.append(expressions.CreateNamedStruct(jvm.seq(named)).eval(empty))
    return rows
