"""Spark's ``FileIndex`` in Python over Py4J: plain SQL plans with it and reads only the files that may match.

A managed table's log lists its files. Spark lists the files of an indexed table, and our index says which to skip.

Source: ``org.apache.spark.sql.execution.datasources.FileIndex``. Spark calls ``listFiles`` once for each scan during
planning, from whichever thread does the planning. Spark does not apply partition filters again, so the answer here is
final and comes from Spark's own evaluator. Data filters only choose candidates; Spark still filters the rows. The
functions at the end list files and partitions with a few JVM calls, however many files there are.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.table_config import OptionalIndexes
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.expr import And, Expr
from dbt.adapters.zlayout.predicate.normal_form import TRUE
from dbt.adapters.zlayout.pruning.scan import PartitionCondition, Preselection, ScanPlan, ScanReport
from dbt.adapters.zlayout.spark.catalyst.expressions import (
    KnownExpressions,
    session_of_thread,
)
from dbt.adapters.zlayout.spark.catalyst.predicates import to_predicate
from dbt.adapters.zlayout.spark.catalyst.values import line_evaluator
from dbt.adapters.zlayout.spark.jvm.scala import Jvm, members
from dbt.adapters.zlayout.spark.jvm.session_settings import SessionSettings, settings_of
from dbt.adapters.zlayout.spark.read.scan_log import (
    LoggedScan,
    active_log,
    condition_text,
    looks_up_log_keys,
    shape_of,
)
from dbt.adapters.zlayout.spark.read.skipping_stages import session_setting, session_stages
from dbt.adapters.zlayout.spark.schema.table_schema import FIELD_ID
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

_LOG = logging.getLogger(__name__)
# Spark then finds a column in a file by this number, whatever the column is called there.
_READS_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
_STATUS = re.compile(r"path=(.*?); isDirectory=false; length=(\d+);.*?modification_time=(\d+);")
_DIGITS = 19
_SUBSTRING = "(II)Ljava/lang/String;"


@dataclass(frozen=True)
class ExplainedFilters:
    """What the filters of one scan keep.

    Attributes:
        predicate: All filters as one predicate.
        plan: The files that are read.
        report: Why each of these files is read.
    """

    predicate: Expr
    plan: ScanPlan
    report: ScanReport


class ZlayoutFileIndex(ABC):
    """Base class of the file indexes for managed and for indexed tables.

    Args:
        opened: The table at one version. For an indexed table: its index at one version.
        schema_json: Spark's JSON of the relation's columns, partition columns included.

    Attributes:
        last_scan: Number of files that the last planned scan kept, and the number of all files.
        logged_as: The table's name in the scan log; None if its scans are not logged.
    """

    def __init__(self, jvm: Jvm, opened: TableSnapshot, schema_json: str) -> None:
        self.opened = opened
        self.last_scan: tuple[int, int] | None = None
        self.logged_as: str | None = None
        self._jvm = jvm
        self._schema_json = schema_json
        self._expressions: dict[SessionSettings, KnownExpressions] = {}

    @abstractmethod
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802 - Spark's name
        """Returns a ``Seq[PartitionDirectory]`` of the files that may hold a matching row."""

    @abstractmethod
    def explained(self, partition_filters: Any, data_filters: Any, others: Sequence[Any] = ()) -> ExplainedFilters:
        """Returns which files ``listFiles`` keeps for these filters, and why.

        Args:
            partition_filters: As for ``listFiles``.
            data_filters: As for ``listFiles``.
            others: Conditions of the query that Spark does not pass to a file index. Rows must meet them, but they do
                not choose files.
        """

    def _log(self, start: float, kept: npt.NDArray[np.bool_], partition_filters: Any, rest: Expr | None) -> None:
        """Adds a scan to the scan log, if there is one. Never raises.

        Args:
            start: When planning began.
            kept: The files that are read.
            partition_filters: As for ``listFiles``.
            rest: The other filters; None if they were not read, and then the scan is not logged.
        """
        if self.logged_as is None or rest is None:
            return
        try:
            seconds, files = time.perf_counter() - start, self.opened.files
            log = active_log(partial(session_setting, self._jvm))
            if log is None:
                return
            predicate = rest if partition_filters.isEmpty() else And((self.predicate(partition_filters), rest))
            if looks_up_log_keys(predicate):
                return
            sizes = np.asarray(files.column("size_bytes").to_numpy())
            log.add(
                LoggedScan(
                    at_ms=int(time.time() * 1000),
                    table=self.logged_as,
                    version=self.opened.version,
                    shape=shape_of(predicate),
                    where=condition_text(predicate) if log.constants else None,
                    files_total=len(files),
                    files_read=int(kept.sum()),
                    bytes_total=int(sizes.sum()),
                    bytes_read=int(sizes[kept].sum()),
                    seconds=round(seconds, 6),
                )
            )
        except Exception:  # a log never stops a query
            _LOG.debug("a scan of %s is not logged", self.opened.location, exc_info=True)

    def metadataOpsTimeNs(self) -> Any:  # noqa: N802 - Spark's name
        """Spark's metric for the time spent on listing. It is not measured."""
        return self._jvm.none()

    def isTimeTravel(self) -> bool:  # noqa: N802 - Spark's name
        """Returns whether Spark should treat the relation as a past version."""
        return False

    def hashCode(self) -> int:  # noqa: N802 - Java's name
        """Returns a hash of table and version as a non-negative 32-bit integer."""
        return hash(self.opened.identity) & 0x7FFFFFFF

    def toString(self) -> str:  # noqa: N802 - Java's name
        """Returns the location as a query plan shows it."""
        return f"zlayout({self.opened.location}, version {self.opened.version})"

    def _stages(self) -> tuple[str, ...]:
        """Returns the stages that may skip files for the session on this thread."""
        # Statistics are of columns by their names.
        if (
            FIELD_ID in self._schema_json
            and self._jvm.root.org.apache.spark.sql.internal.SQLConf.get().getConfString(_READS_FIELD_IDS, "false")
            == "true"
        ):
            return ()
        return session_stages(self._jvm)

    def predicate(self, *filters: Any, others: Sequence[Any] = ()) -> Expr:
        """Returns the conjunction of Catalyst filters (each a Scala ``Seq``) as one predicate; others skip no files."""
        every = [each for group in filters for each in members(group)]
        known = self._known_expressions()
        return to_predicate(self._jvm, every, self._schema_json, len(self.opened.files), others, known)

    def _known_expressions(self) -> KnownExpressions | None:
        """Returns the expressions that the index knows, as the session on this thread understands them."""
        texts = OptionalIndexes.of_stored(self.opened.snapshot.layout).expressions
        if not texts:
            return None
        try:
            native = session_of_thread(self._jvm)
            mode = settings_of(self._jvm, native)
            if mode not in self._expressions:
                self._expressions[mode] = KnownExpressions.of(self._jvm, native, self.opened.row_schema_json, texts)
            return self._expressions[mode]
        except Exception:  # conditions on expressions then read all files
            _LOG.warning("expressions of %s have no statistics", self.opened.location, exc_info=True)
            return None

    class Java:
        """Tells Py4J which Java interface this class implements."""

        implements = ("org.apache.spark.sql.execution.datasources.FileIndex",)


class SnapshotFileIndex(ZlayoutFileIndex):
    """The files of one version of a managed table. The answers do not change as long as the version is retained.

    Args:
        opened: The table at the version to read.
        partition_schema: Spark's ``StructType`` of the partition columns (Py4J object).
    """

    def __init__(self, jvm: Jvm, opened: TableSnapshot, partition_schema: Any) -> None:
        super().__init__(jvm, opened, opened.schema_json)
        self._partition_schema = partition_schema
        self._lock = threading.Lock()
        self._statuses: Any = None
        self._partition_rows: Any = None

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802 - Spark's name
        """Returns a ``Seq[PartitionDirectory]`` of the files that may hold a matching row."""
        start = time.perf_counter()
        kept = self._in_kept_partitions(partition_filters)
        candidates, predicate = self._may_match(data_filters, Preselection(kept, time.perf_counter() - start))
        self.last_scan = (int(candidates.sum()), len(self.opened.files))
        self._log(start, candidates, partition_filters, predicate)
        return self._directories(candidates)

    def rootPaths(self) -> Any:  # noqa: N802 - Spark's name
        """Returns a ``Seq[Path]`` with the table's folder."""
        return self._root_paths

    @cached_property
    def _root_paths(self) -> Any:
        """Cached: Spark asks several times for each query, even to build strings that nobody reads."""
        return self._jvm.seq([self._jvm.root.org.apache.hadoop.fs.Path(self.opened.location)])

    def inputFiles(self) -> Any:  # noqa: N802 - Spark's name
        """Returns a ``String[]`` with the URI of every file."""
        # Only Pattern.split makes a String[] of any length in one call.
        uris = self.opened.file_uris()
        empty = self._jvm.gateway.new_array(self._jvm.lang.String, 0)
        return self._jvm.root.java.util.regex.Pattern.compile("\n").split("\n".join(uris)) if uris else empty

    def sizeInBytes(self) -> int:  # noqa: N802 - Spark's name
        """Returns the total size of all files in bytes."""
        return self.opened.files.total_bytes

    def partitionSchema(self) -> Any:  # noqa: N802 - Spark's name
        """Returns the ``StructType`` of the partition columns."""
        return self._partition_schema

    def refresh(self) -> None:
        """Does nothing: a version never changes, and a newer version gets its own file index."""

    def equals(self, other: object) -> bool:
        """Returns whether both read the same version of the same table. Spark may then reuse plans."""
        # Spark may compare with an index of some of the files, too.
        if not isinstance(other, SnapshotFileIndex) or type(other) is not type(self):
            return False
        return other.opened.identity == self.opened.identity

    def explained(self, partition_filters: Any, data_filters: Any, others: Sequence[Any] = ()) -> ExplainedFilters:
        """Returns which files ``listFiles`` keeps for these filters, and why."""
        start = time.perf_counter()
        before = Preselection(self._in_kept_partitions(partition_filters), time.perf_counter() - start)
        values = self._partition_texts()
        conditions = [
            PartitionCondition(self.predicate(one).sql(), self._in_kept_partitions(one), values)
            for one in (self._jvm.seq([each]) for each in members(partition_filters))
        ]
        rest = self.predicate(data_filters, others=others)
        plan = self.opened.scan(rest, before, self._stages())
        report = self.opened.report(plan, rest, conditions)
        return ExplainedFilters(self.predicate(partition_filters, data_filters, others=others), plan, report)

    def _may_match(self, data_filters: Any, before: Preselection) -> tuple[npt.NDArray[np.bool_], Expr | None]:
        """Returns the candidates, and the filters as a predicate; None if they were not read."""
        try:
            if data_filters.isEmpty():
                return before.kept, TRUE
            if not (stages := self._stages()):
                return before.kept, None
            predicate = self.predicate(data_filters)
            return self.opened.scan(predicate, before, stages).candidates, predicate
        except Exception:  # a broken index costs speed, never a result
            _LOG.warning("skipping is off for one scan of %s", self.opened.location, exc_info=True)
            return before.kept, None

    def _in_kept_partitions(self, filters: Any) -> npt.NDArray[np.bool_]:
        """Returns a mask of files: True where the partition's values make every filter TRUE in Spark's evaluation."""
        if filters.isEmpty() or not self.opened.partition_columns:
            return self.opened.all_files()
        expressions = self._jvm.catalyst.expressions
        condition = filters.apply(0)
        for position in range(1, filters.size()):
            condition = expressions.And(condition, filters.apply(position))
        bound = expressions.BindReferences.bindReference(condition, self._attributes(condition), False)
        evaluator = self._jvm.companion("org.apache.spark.sql.catalyst.expressions.Predicate").createInterpreted(bound)
        return _rows_that_match(self._jvm, self._rows(), evaluator)[self.opened.partition_of_file]

    def _partition_texts(self) -> pa.Array:
        """Returns ``column=value, …`` for each file, as in its folder names but unescaped."""
        texts = [
            ", ".join(
                f"{name}={'null' if value is None else value}"
                for name, value in zip(self.opened.partition_columns, key, strict=True)
            )
            for key in self.opened.partition_keys
        ]
        return pa.array(texts, pa.string()).take(pa.array(self.opened.partition_of_file))

    def _attributes(self, condition: Any) -> Any:
        """Returns the partition columns in order, with the expression ids that the condition uses."""
        referenced = condition.references().toSeq()
        by_name = {str(each.name()).lower(): each for each in members(referenced)}
        fields = members(self._partition_schema)
        fresh = self._jvm.root.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttribute
        ordered = [by_name.get(str(each.name()).lower()) or fresh(each) for each in fields]
        return getattr(self._jvm.catalyst.expressions, "package$AttributeSeq")(self._jvm.seq(ordered))

    def _directories(self, candidates: npt.NDArray[np.bool_]) -> Any:
        chosen = self._all_statuses()
        if not candidates.all():
            chosen = self._jvm.pick(chosen, candidates)
        return _partition_directories(self._jvm, chosen, self.opened.partition_of_file[candidates], self._rows())

    def _all_statuses(self) -> Any:
        with self._lock:
            if self._statuses is None:
                self._statuses = _file_statuses(self._jvm, self.opened)
            return self._statuses

    def _rows(self) -> Any:
        with self._lock:
            if self._partition_rows is None:
                self._partition_rows = _typed_rows(self._jvm, self._partition_schema, self.opened.partition_keys)
            return self._partition_rows


class SomeFilesIndex(SnapshotFileIndex):
    """Some files of a version. It equals only itself, because other file subsets share its identity."""

    def equals(self, other: object) -> bool:
        """Returns whether the other is the same object."""
        return self is other


class IndexedFileIndex(ZlayoutFileIndex):
    """Spark's own file index without the files that cannot hold a matching row.

    A file is always read if the index does not know its path, or knows it with another size or modification time.

    Args:
        opened: The index at its newest version.
        schema_json: The table's current columns in the catalog.
        base: Spark's own ``FileIndex`` of the table (Py4J object).
    """

    def __init__(self, jvm: Jvm, opened: TableSnapshot, schema_json: str, base: Any) -> None:
        super().__init__(jvm, opened, schema_json)
        self.base = base

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802 - Spark's name
        """Returns a ``Seq[PartitionDirectory]`` of the files that may hold a matching row."""
        directories = self.base.listFiles(partition_filters, data_filters)
        if data_filters.isEmpty():
            return directories
        try:
            stages = self._stages()
            if not stages:
                return directories
            start = time.perf_counter()
            predicate = self.predicate(data_filters)
            candidates = self.opened.scan(predicate, stages_wanted=stages).candidates
            kept = self._pruned(directories, candidates)
            self._log(start, candidates, partition_filters, predicate)
            return kept
        except Exception:  # a broken index costs speed, never a result
            _LOG.warning("skipping is off for one scan of %s", self.opened.location, exc_info=True)
            return directories

    def explained(self, partition_filters: Any, data_filters: Any, others: Sequence[Any] = ()) -> ExplainedFilters:
        """Explains the files that the index knows. All other files are read."""
        predicate = self.predicate(partition_filters, data_filters, others=others)
        plan = self.opened.scan(predicate, stages_wanted=self._stages())
        return ExplainedFilters(predicate, plan, self.opened.report(plan, predicate))

    def rootPaths(self) -> Any:  # noqa: N802 - Spark's name
        """Same as in Spark's own file index."""
        return self.base.rootPaths()

    def inputFiles(self) -> Any:  # noqa: N802 - Spark's name
        """Same as in Spark's own file index."""
        return self.base.inputFiles()

    def sizeInBytes(self) -> int:  # noqa: N802 - Spark's name
        """Same as in Spark's own file index."""
        return int(self.base.sizeInBytes())

    def partitionSchema(self) -> Any:  # noqa: N802 - Spark's name
        """Same as in Spark's own file index."""
        return self.base.partitionSchema()

    def refresh(self) -> None:
        """Makes Spark list the files again."""
        self.base.refresh()

    def equals(self, other: object) -> bool:
        """Returns whether both have the same listing and the same version of the index."""
        return (
            isinstance(other, IndexedFileIndex)
            and other.opened.identity == self.opened.identity
            and bool(self.base.equals(other.base))
        )

    def _positions(self, listed: pa.Table) -> pa.Array:
        """Returns the position of each listed file in the index; null if the file is unknown or has changed."""
        files = self.opened.files
        root = self.opened.root_path()
        paths = pc.binary_join_element_wise(root, files.column("path").combine_chunks(), "/")
        position = pc.index_in(listed.column("uri").combine_chunks(), value_set=paths)
        same = pc.is_valid(position)
        for name in ("size_bytes", "modified_ms"):
            stored = files.column(name).combine_chunks().take(position)
            same = pc.and_(same, pc.fill_null(pc.equal(listed.column(name).combine_chunks(), stored), False))
        return pc.if_else(same, position, pa.scalar(None, position.type))

    def _pruned(self, directories: Any, candidates: npt.NDArray[np.bool_]) -> Any:
        make = self._jvm.datasources.PartitionDirectory
        kept = []
        left = total = 0
        for position in range(directories.size()):
            directory = directories.apply(position)
            listed = _statuses(directory)
            keep = self._keep(listed, candidates)
            left, total = left + int(keep.sum()), total + len(keep)
            if keep.all():
                kept.append(directory)
            elif keep.any():
                files = self._jvm.java_list(directory.files())
                chosen = self._jvm.pick(files, keep)
                kept.append(make(directory.values(), self._jvm.seq_of(chosen)))
        self.last_scan = (left, total)
        return self._jvm.seq(kept)

    def _keep(self, listed: pa.Table, candidates: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        position = self._positions(listed)
        keep = np.ones(len(position), dtype=bool)
        certain = np.flatnonzero(position.is_valid().to_numpy(zero_copy_only=False))
        keep[certain] = candidates[position.drop_null().to_numpy()]
        return keep


def _statuses(directory: Any) -> pa.Table:
    files = directory.files()
    found = _STATUS.findall(str(files.mkString("\n")))
    if len(found) != int(files.size()):
        raise ValueError("Spark's listing cannot be read")
    uris, sizes, times = zip(*found, strict=True) if found else ((), (), ())
    return pa.table(
        {
            "uri": pa.array(uris, pa.string()),
            "size_bytes": pa.array([int(each) for each in sizes], pa.int64()),
            "modified_ms": pa.array([int(each) for each in times], pa.int64()),
        }
    )


def _file_statuses(jvm: Jvm, opened: TableSnapshot) -> Any:
    """Returns a ``java.util.List<FileStatusWithMetadata>`` of a table's files, in their order."""
    if not len(opened.files):
        return jvm.list_of([])
    size, modified = (_digits(opened.files.column(name).combine_chunks()) for name in ("size_bytes", "modified_ms"))
    lines = pc.binary_join_element_wise(size, modified, opened.uris(), "")
    return jvm.lines(lines).map(jvm.once(_line_to_status)).toList()


def _line_to_status(jvm: Jvm) -> Any:
    """Returns the function that turns size, modification time and URI, in one line, into a file status."""
    cut = jvm.virtual("java.lang.String", "substring", _SUBSTRING)
    number = jvm.static("java.lang.Long", "parseLong", "(Ljava/lang/String;)J")
    length = jvm.then(jvm.fixed(cut, 1, 0, _DIGITS), number)
    changed = jvm.then(jvm.fixed(cut, 1, _DIGITS, 2 * _DIGITS), number)
    path = jvm.then(
        jvm.fixed(jvm.virtual("java.lang.String", "substring", "(I)Ljava/lang/String;"), 1, 2 * _DIGITS),
        jvm.static("java.net.URI", "create", "(Ljava/lang/String;)Ljava/net/URI;"),
        jvm.constructor("org.apache.hadoop.fs.Path", "(Ljava/net/URI;)V"),
    )
    status = jvm.constructor("org.apache.hadoop.fs.FileStatus", "(JZIJJLorg/apache/hadoop/fs/Path;)V")
    status = jvm.fixed(status, 1, False, 1)
    # The length is also the block size.
    one = jvm.of_one_argument(
        status, [length, length, changed, path], "(Ljava/lang/String;)Lorg/apache/hadoop/fs/FileStatus;"
    )
    with_metadata = jvm.constructor(
        "org.apache.spark.sql.execution.datasources.FileStatusWithMetadata",
        "(Lorg/apache/hadoop/fs/FileStatus;Lscala/collection/immutable/Map;)V",
    )
    one = jvm.then(one, jvm.fixed(with_metadata, 1, jvm.scala_map({})))
    return jvm.function(one)


def _partition_directories(jvm: Jvm, files: Any, partition_of_file: npt.NDArray[np.int64], partition_rows: Any) -> Any:
    """Groups files by partition and returns a ``Seq[PartitionDirectory]``.

    Args:
        files: ``java.util.List`` of file statuses, ordered by partition.
        partition_of_file: The partition number of each file, in ascending order.
        partition_rows: ``java.util.List`` with the values of every partition.
    """
    if not len(partition_of_file):
        return jvm.seq([])
    starts = np.flatnonzero(np.r_[True, partition_of_file[1:] != partition_of_file[:-1]])
    ends = np.r_[starts[1:], len(partition_of_file)]
    lines = [_digits(pa.array(each)) for each in (partition_of_file[starts], starts, ends)]
    to_directory = jvm.function(jvm.fixed(jvm.once(_line_to_directory), 0, files, partition_rows))
    return jvm.seq_of(jvm.lines(pc.binary_join_element_wise(*lines, "")).map(to_directory).toList())


def _line_to_directory(jvm: Jvm) -> Any:
    """Returns the method handle that turns files, partition rows and a line into a ``PartitionDirectory``.

    The line holds the number of the partition, and the positions of its first file and of the file after its last.
    """
    cut = jvm.virtual("java.lang.String", "substring", _SUBSTRING)
    number = jvm.static("java.lang.Integer", "parseInt", "(Ljava/lang/String;)I")
    partition, start, end = (
        jvm.then(jvm.fixed(cut, 1, position * _DIGITS, (position + 1) * _DIGITS), number) for position in range(3)
    )
    sub_list = jvm.with_filters(jvm.virtual("java.util.List", "subList", "(II)Ljava/util/List;"), 1, [start, end])
    sub_list = jvm.reordered(sub_list, [0, 1, 1], "(Ljava/util/List;Ljava/lang/String;)Ljava/util/List;")
    files = jvm.as_object(jvm.then(sub_list, *jvm.to_seq()), "(Ljava/util/List;Ljava/lang/String;)Ljava/lang/Object;")
    get = jvm.virtual("java.util.List", "get", "(I)Ljava/lang/Object;")
    row = jvm.with_filters(get, 1, [partition])
    make = jvm.as_object(
        jvm.any_constructor("org.apache.spark.sql.execution.datasources.PartitionDirectory"),
        "(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;",
    )
    made = jvm.with_result(jvm.with_result(make, 1, files), 0, row)
    return jvm.reordered(made, [1, 2, 0, 2], "(Ljava/util/List;Ljava/util/List;Ljava/lang/String;)Ljava/lang/Object;")


def _typed_rows(jvm: Jvm, schema: Any, keys: Sequence[tuple[str | None, ...]]) -> Any:
    """Returns the partition values as typed rows. Spark casts them from the text in the folder names.

    Args:
        schema: ``StructType`` of the partition columns.
        keys: The raw values of each partition.

    Returns:
        ``java.util.List[InternalRow]`` with one row for each partition.
    """
    expressions, types = jvm.catalyst.expressions, jvm.root.org.apache.spark.sql.types.DataTypes
    if not keys or not keys[0]:
        return jvm.list_of([jvm.catalyst.InternalRow.empty() for _ in keys])
    zone = jvm.some(jvm.root.org.apache.spark.sql.internal.SQLConf.get().sessionLocalTimeZone())
    legacy = expressions.EvalMode.LEGACY()
    line = expressions.BoundReference(0, types.StringType, False)
    parts = expressions.StringSplit(
        line, expressions.Literal.create(",", types.StringType), expressions.Literal.create(-1, types.IntegerType)
    )
    named: list[Any] = []
    for position in range(schema.size()):
        at = expressions.Literal.create(position, types.IntegerType)
        # Unhex returns null for text that is not hexadecimal, such as the "-" that stands for null.
        text = expressions.Cast(
            expressions.Unhex(expressions.GetArrayItem(parts, at, False)), types.StringType, zone, legacy
        )
        value = expressions.Cast(text, schema.apply(position).dataType(), zone, legacy)
        named += [expressions.Literal.create(f"c{position}", types.StringType), value]
    to_row = jvm.function(jvm.fixed(jvm.once(line_evaluator), 0, expressions.CreateNamedStruct(jvm.seq(named))))
    lines = [",".join("-" if text is None else text.encode().hex() for text in key) for key in keys]
    return jvm.lines(pa.array(lines, pa.string())).map(to_row).toList()


def _rows_that_match(jvm: Jvm, rows: Any, predicate: Any) -> npt.NDArray[np.bool_]:
    """Returns a mask of the rows in a ``java.util.List[InternalRow]`` that make a Catalyst ``BasePredicate`` TRUE."""
    evaluate = jvm.virtual(
        "org.apache.spark.sql.catalyst.expressions.BasePredicate",
        "eval",
        "(Lorg/apache/spark/sql/catalyst/InternalRow;)Z",
    ).bindTo(predicate)
    answers = str(rows.stream().map(jvm.function(evaluate)).toList().toString())
    return np.array([each == "true" for each in answers[1:-1].split(", ")] if len(answers) > 2 else [], dtype=np.bool_)


def _digits(numbers: pa.Array) -> pa.Array:
    """Returns non-negative integers as text, padded with zeros to one length."""
    return pc.utf8_lpad(numbers.cast(pa.string()), _DIGITS, "0")
