"""Writes clustered files with Spark's own writer, for types that Arrow lacks or if Python workers cannot write.

The rows never leave the JVM: the cuts of the curve become a SQL expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions

from dbt.adapters.zlayout.curve.cuts import Sizing, Tree
from dbt.adapters.zlayout.curve.model import CurveModel, PartitionKey
from dbt.adapters.zlayout.curve.query_boxes import QueryBoxes
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.index.statistics.partitions import parse_partition_folder, partition_folder
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.predicate.literals import backquoted, day_time_literal, literal
from dbt.adapters.zlayout.spark.files.existing_files import GLOB, read_footers
from dbt.adapters.zlayout.spark.files.file_report import FileReport
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, in_session, run, timed, writing_session
from dbt.adapters.zlayout.spark.rewrite.arrow_rows import Written
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask
from dbt.adapters.zlayout.spark.rewrite.key_sample import key_sample
from dbt.adapters.zlayout.spark.rewrite.stage import model_of
from dbt.adapters.zlayout.spark.schema.table_schema import string_literal
from dbt.adapters.zlayout.store import Store, open_store, qualified
from dbt.adapters.zlayout.timeline.files.naming import data_file_path, is_data_path, new_group
from dbt.adapters.zlayout.timeline.log.file_slices import Partition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_FILE, _LEAF = "__zl_file", "__zl_leaf"
_MOST_LEAVES_IN_SQL = 512
_BIG_ROW_GROUP_BYTES = 16 << 20
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock, as TIMESTAMP_NTZ is


@dataclass
class SparkRowWriter:
    """Writes the rows of one query as files of one table, entirely inside Spark.

    Attributes:
        spark: The session that the query belongs to.
        build: How to write files.
        key_schema: Arrow types of the keys' top-level columns.
        key_types: Arrow type of each key.
        curve: 'zorder', 'hilbert' or 'linear'.
        row_group_rows: The configured value, or None.
        staging: Folder for staged rows, relative to the table's folder.
        required: Columns whose nulls are counted.
        asked: What queries ask for, if the cuts follow them.
    """

    spark: SparkSession
    build: BuildTask
    key_schema: pa.Schema
    key_types: tuple[pa.DataType, ...]
    curve: str
    row_group_rows: int | None
    staging: str
    required: tuple[str, ...]
    progress: Progress | None
    asked: QueryBoxes | None = None
    _phases: dict[str, float] = field(default_factory=dict)

    def write(self, frame: DataFrame) -> Written:
        """Runs the query once into staged Parquet files, and writes its rows from there."""
        store = open_store(self.build.root_uri)
        staging_uri = qualified(self.build.root_uri, self.staging)
        # Spark takes a path literally: an escape in it would be part of a name.
        staged_path, output_path = (f"{unquote(staging_uri)}/{name}" for name in ("rows", "out"))
        try:
            session = writing_session(self.spark)
            query = in_session(frame, session)
            with timed(self._phases, "query"):
                run(self.spark, "query", self.progress, lambda: query.write.parquet(staged_path))
            rows = session.read.schema(frame.schema).option(GLOB, False).parquet(staged_path)
            with timed(self._phases, "layout"):
                total_rows, bytes_per_row = self._measured(store)
                if not total_rows:
                    return Written((), None, 2, self._phases)
                model, sizing = (
                    None,
                    Sizing.of(total_rows, 0, bytes_per_row, self.build.target_file_bytes, self.row_group_rows),
                )
                if self.build.keys:
                    sample = key_sample(
                        rows,
                        self.key_schema,
                        self.build.keys,
                        self.build.partition_by,
                        self.build.settings,
                        self.progress,
                    )
                    staged = replace(sample, rows=total_rows, bytes_per_row=bytes_per_row)
                    model = model_of(staged, self.build, self.curve, self.row_group_rows, asked=self.asked)
            with timed(self._phases, "write"):
                parted = self._in_order(rows, sizing) if model is None else self._clustered(rows, model)
                write = self._output(parted, sizing)
                run(self.spark, "write", self.progress, lambda: write.parquet(output_path))
                nulls = self._nulls(rows)
                files = self._collected(store, f"{self.staging}/out", nulls)
            written = sum(each.file.row_count for each in files)
            if written != total_rows:
                raise WriteError(f"{total_rows:,} rows were read and {written:,} written; nothing was committed")
            one_task = total_rows <= sizing.rows_per_file and not self.build.partition_by
            curve = None if model is None or one_task else model.to_bytes()
            return Written(files, curve, 2 if model is None else 3, self._phases)
        finally:
            store.delete_tree(self.staging)

    def write_in_order(self, rows: DataFrame, partition: PartitionKey, rows_per_file: int) -> Written:
        """Writes each task's rows as a file, in their order.

        Args:
            rows: The data columns, of one partition.
            rows_per_file: Expected number of rows of a file of the target size.
        """
        store = open_store(self.build.root_uri)
        output = f"{unquote(qualified(self.build.root_uri, self.staging))}/out"
        try:
            with timed(self._phases, "write"):
                # The rows already have their order, and columns of folders would make Spark sort them again.
                write = self._file_options(rows.write, rows_per_file)
                run(self.spark, "write", self.progress, lambda: write.parquet(output))
                values = tuple(zip(self.build.partition_by, partition, strict=True))
                files = self._collected(store, f"{self.staging}/out", {}, values)
            return Written(files, None, 1, self._phases)
        finally:
            store.delete_tree(self.staging)

    def _measured(self, store: Store) -> tuple[int, float]:
        """Returns the number of rows in the staged files, by their footers, and the bytes per row."""
        stored = [each for each in store.list(f"{self.staging}/rows") if is_data_path(each.path.rpartition("/")[2])]
        rows = sum(footer.num_rows for footer in read_footers(store, [each.path for each in stored]))
        return rows, sum(each.size_bytes for each in stored) / max(1, rows)

    def _in_order(self, rows: DataFrame, sizing: Sizing) -> DataFrame:
        files = -(-sizing.total_rows // sizing.rows_per_file)
        folders = [functions.col(backquoted(name)) for name in self.build.partition_by]
        parted = rows.repartition(files, *folders) if folders else rows.coalesce(files)
        return parted.withColumn(_FILE, functions.lit(0))

    def _clustered(self, rows: DataFrame, model: CurveModel) -> DataFrame:
        leaf = self._number_sql(model, leaves=True)
        placed = rows.withColumn(_FILE, functions.expr(self._number_sql(model, leaves=False))).withColumn(
            _LEAF, functions.expr(leaf)
        )
        folders: list[Column] = [functions.col(backquoted(name)) for name in self.build.partition_by]
        order = [*folders, functions.col(_FILE), functions.col(_LEAF)]
        order += [functions.expr(_path_sql(path)) for path in self.build.keys]
        files = sum(model.files_of(key) for key in model.partition_trees or [()])
        parted = placed.repartition(max(1, files), *folders, functions.col(_FILE)).sortWithinPartitions(*order)
        return parted.drop(_LEAF)

    def _number_sql(self, model: CurveModel, *, leaves: bool) -> str:
        keys = [_path_sql(path) for path in self.build.keys]
        trees = [model.tree, *model.partition_trees.values()]
        if sum(tree.leaf_count for tree in trees) > _MOST_LEAVES_IN_SQL:
            # Spark compiles no larger expression: partitions share one tree, and rows are sorted by file and keys.
            trees = trees[:1]
            leaves = leaves and trees[0].leaf_count <= _MOST_LEAVES_IN_SQL
        texts = []
        for tree in trees:
            numbers = np.arange(tree.leaf_count, dtype=np.int32) if leaves else tree.file_of_leaf
            texts.append(numbers_sql(model, tree, keys, self.key_types, numbers))
        own = dict(zip(model.partition_trees, texts[1:], strict=False)) if len(trees) > 1 else {}
        return _partition_sql([backquoted(name) for name in self.build.partition_by], own, texts[0])

    def _output(self, parted: DataFrame, sizing: Sizing) -> Any:
        write = parted.write.partitionBy(*self.build.partition_by, _FILE)
        return self._file_options(write, sizing.rows_per_file)

    def _file_options(self, write: Any, rows_per_file: float) -> Any:
        group_bytes = max(1 << 20, min(_BIG_ROW_GROUP_BYTES, self.build.target_file_bytes // 8))
        return (
            write.option("compression", self.build.settings.compression)
            .option("maxRecordsPerFile", max(1, int(1.5 * rows_per_file)))
            .option("parquet.block.size", group_bytes)
        )

    def _nulls(self, rows: DataFrame) -> dict[str, int]:
        if not self.required:
            return {}
        counts = [functions.expr(f"count_if({backquoted(name)} IS NULL)") for name in self.required]
        return dict(zip(self.required, rows.select(*counts).collect()[0], strict=True))

    def _collected(
        self, store: Store, folder: str, nulls: dict[str, int], partition: Partition | None = None
    ) -> tuple[FileReport, ...]:
        """Moves Spark's files to their paths in the table and reads their footers.

        Args:
            folder: The folder that Spark has written.
            nulls: Number of nulls of each required column.
            partition: The partition of all files. None if the names of their folders show it.
        """
        found: list[tuple[str, str, tuple[tuple[str, str | None], ...]]] = []
        for file in store.list(folder, recursive=True):
            relative = file.path.removeprefix(f"{folder}/")
            if is_data_path(relative):
                named = parse_partition_folder(relative.rpartition("/")[0])[:-1]
                values = named if partition is None else partition
                group = new_group()
                path = data_file_path(partition_folder(values) if values else "", group, self.build.instant)
                store.move(file.path, path)
                found.append((path, group, values))
        footers = read_footers(store, [path for path, _, _ in found])
        reports = [
            FileReport.of_foreign(store.stat(path), values, group, footer, self.build.tracking)
            for (path, group, values), footer in zip(found, footers, strict=True)
        ]
        if reports and nulls:
            reports[0] = replace(reports[0], nulls=nulls)
        return tuple(reports)


def _path_sql(path: ColumnPath) -> str:
    return ".".join(backquoted(name) for name in path)


def numbers_sql(
    model: CurveModel, tree: Tree, keys: Sequence[str], types: Sequence[pa.DataType], values: npt.NDArray[np.int32]
) -> str:
    """Returns an expression that gives each row a number, by the leaf that it falls into.

    Args:
        model: The curve. The tree's thresholds are ranks among its boundaries.
        tree: The cuts.
        keys: SQL of each key.
        types: Arrow type of each key.
        values: int32[leaves], the number of each leaf.
    """

    def walk(reference: int) -> str:
        if reference < 0:
            return str(int(values[-1 - reference]))
        column, threshold = int(tree.column[reference]), int(tree.threshold[reference])
        left, right = walk(int(tree.left[reference])), walk(int(tree.right[reference]))
        if left == right:
            return left
        below = _below(keys[column], types[column], model.boundaries[column].values, threshold)
        return f"CASE WHEN {below} THEN {left} ELSE {right} END"

    return walk(0 if len(tree.column) else -1)


def _partition_sql(columns: Sequence[str], by_partition: Mapping[tuple[str | None, ...], str], default: str) -> str:
    """Returns an expression that selects the expression of a row's partition.

    Args:
        columns: SQL of the partition columns.
        by_partition: Expression of each partition, by the text of its values.
        default: Expression for all other partitions.
    """
    cases = []
    for key, expression in by_partition.items():
        tests = [
            f"{column} IS NULL" if text is None else f"CAST({column} AS STRING) = {string_literal(text)}"
            for column, text in zip(columns, key, strict=True)
        ]
        cases.append(f"WHEN {' AND '.join(tests)} THEN {expression}")
    return f"CASE {' '.join(cases)} ELSE {default} END" if cases else default


def _below(key: str, kind: pa.DataType, boundaries: npt.NDArray[Any], rank: int) -> str:
    """Returns a condition that the rank of a key is below a rank. Null has rank 0, and values start at 1."""
    if rank <= 1:
        return f"{key} IS NULL" if rank == 1 else "FALSE"
    if rank - 2 >= len(boundaries):
        return "TRUE"
    boundary = boundaries[rank - 2]
    return f"({key} IS NULL OR {_comparable_sql(key, kind)} < {_literal(boundary, kind)})"


def _comparable_sql(key: str, kind: pa.DataType) -> str:
    if pa.types.is_string(kind):
        return f"CAST({key} AS BINARY)"
    return f"CAST({key} AS INT)" if pa.types.is_boolean(kind) else key


def _literal(boundary: Any, kind: pa.DataType) -> str:
    """Returns a boundary as a SQL literal, from its comparable form of ``curve.keys``."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return f"X'{bytes(boundary).hex()}'"
    if pa.types.is_decimal(kind):
        unscaled = int(boundary) if kind.precision <= 18 else _unbiased(bytes(boundary))
        text = format(Decimal(unscaled).scaleb(-kind.scale), "f")
        return f"CAST('{text}' AS DECIMAL({kind.precision}, {kind.scale}))"
    return _number_literal(int(boundary), kind)


def _number_literal(number: int, kind: pa.DataType) -> str:  # noqa: PLR0911 - one return per type
    if pa.types.is_floating(kind):
        return f"DOUBLE('{_double(number)!r}')"
    if pa.types.is_date32(kind):
        return f"DATE '{date.fromordinal(date(1970, 1, 1).toordinal() + number).isoformat()}'"
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return f"TIMESTAMP_MICROS({number})"
    if pa.types.is_timestamp(kind):
        return f"TIMESTAMP_NTZ '{(_EPOCH + timedelta(microseconds=number)).isoformat(sep=' ')}'"
    if pa.types.is_duration(kind):
        return day_time_literal(number)
    if pa.types.is_time64(kind):
        return literal(pa.scalar(number, pa.int64()).cast(kind))
    return f"{number}L" if kind == pa.int64() else str(number)


def _unbiased(packed: bytes) -> int:
    return int.from_bytes(packed.ljust(16, b"\0"), "big") - (1 << 127)


def _double(ordered: int) -> float:
    bits = np.int64(ordered) if ordered >= 0 else np.int64(ordered) ^ np.int64(0x7FFFFFFFFFFFFFFF)
    return float(np.array([bits]).view(np.float64)[0])
