"""Lists files and partitions for Spark's planner with a handful of JVM calls, however many files there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.spark.jvm.scala import Jvm
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

_DIGITS = 19
_SUBSTRING = "(II)Ljava/lang/String;"


def file_statuses(jvm: Jvm, opened: TableSnapshot) -> Any:
    """Returns a ``java.util.List<FileStatusWithMetadata>`` of a table's files, in their order."""
    if not len(opened.files):
        return jvm.array_list([])
    size, modified = (_digits(opened.files.column(name).combine_chunks()) for name in ("size_bytes", "modified_ms"))
    lines = pc.binary_join_element_wise(size, modified, opened.uris(), "")
    return jvm.lines(lines).map(jvm.once(_line_to_status)).toList()


def _line_to_status(jvm: Jvm) -> Any:
    """Returns the function that turns size, modification time and URI, in one line, into a file status."""
    text = "(I)Ljava/lang/String;"
    cut = jvm.virtual("java.lang.String", "substring", _SUBSTRING)
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
    return jvm.function(one)


def partition_directories(jvm: Jvm, files: Any, partition_of_file: npt.NDArray[np.int64], partition_rows: Any) -> Any:
    """Groups files by partition and returns a ``Seq[PartitionDirectory]``.

    Args:
        jvm: The driver's JVM.
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


def partition_rows(jvm: Jvm, schema: Any, keys: Sequence[tuple[str | None, ...]]) -> Any:
    """Returns the partition values as typed rows. Spark casts them from the text in the folder names.

    Args:
        jvm: The driver's JVM.
        schema: ``StructType`` of the partition columns.
        keys: The raw values of each partition.

    Returns:
        ``java.util.List[InternalRow]`` with one row for each partition.
    """
    expressions, types = jvm.catalyst.expressions, jvm.root.org.apache.spark.sql.types.DataTypes
    if not keys or not keys[0]:
        return jvm.array_list([jvm.catalyst.InternalRow.empty() for _ in keys])
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
    to_row = jvm.function(jvm.fixed(jvm.once(_line_to_row), 0, expressions.CreateNamedStruct(jvm.seq(named))))
    lines = [",".join("-" if text is None else text.encode().hex() for text in key) for key in keys]
    return jvm.lines(pa.array(lines, pa.string())).map(to_row).toList()


def _line_to_row(jvm: Jvm) -> Any:
    """Returns the method handle that evaluates a Catalyst expression on a line, which is the only column of its row."""
    to_text = jvm.static(
        "org.apache.spark.unsafe.types.UTF8String",
        "fromString",
        "(Ljava/lang/String;)Lorg/apache/spark/unsafe/types/UTF8String;",
    )
    to_row = jvm.collecting(
        jvm.constructor("org.apache.spark.sql.catalyst.expressions.GenericInternalRow", "([Ljava/lang/Object;)V"),
        1,
        "(Lorg/apache/spark/unsafe/types/UTF8String;)Lorg/apache/spark/sql/catalyst/InternalRow;",
    )
    evaluate = jvm.virtual(
        "org.apache.spark.sql.catalyst.expressions.Expression",
        "eval",
        "(Lorg/apache/spark/sql/catalyst/InternalRow;)Ljava/lang/Object;",
    )
    return jvm.with_filters(evaluate, 1, [jvm.then(to_text, to_row)])


def rows_that_match(jvm: Jvm, rows: Any, predicate: Any) -> npt.NDArray[np.bool_]:
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
