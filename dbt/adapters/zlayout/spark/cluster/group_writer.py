"""Writes the files of a clustering: each clustering group becomes new files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.types import ArrayType, DataType, StructType

from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.quantities import counted, size_text
from dbt.adapters.zlayout.spark.catalog.schema_evolution import cast_to
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, unescaped
from dbt.adapters.zlayout.spark.cluster.planning import CutGroup, CutPlan
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.spark.files.file_report import FileReport
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, failing_as_write_error
from dbt.adapters.zlayout.spark.read.record_tables import joined_by_file
from dbt.adapters.zlayout.spark.read.relations import frame_of, with_file_and_row
from dbt.adapters.zlayout.spark.rewrite.arrow_rows import Written
from dbt.adapters.zlayout.spark.rewrite.file_writer import FileWriter, needs_spark
from dbt.adapters.zlayout.spark.rewrite.route import slot_keys
from dbt.adapters.zlayout.spark.schema.table_schema import PLACE
from dbt.adapters.zlayout.spark.schema.types import arrow_schema, raw_fields, schema_json_of
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


WrittenGroup = tuple[CutGroup, tuple[FileReport, ...]]


@dataclass(frozen=True)
class GroupWriter:
    """Writes the groups of a plan.

    Attributes:
        plan: The plan that the groups belong to.
        verify: Compare checksums of all columns before and after.
        progress: Called with one line per group.
    """

    spark: SparkSession
    subject: str
    plan: CutPlan
    verify: bool = False
    progress: Progress | None = None

    def write(self, cut: CutGroup, transaction: Transaction) -> tuple[FileReport, ...]:
        """Writes the rows of a group as new files. Readers see nothing of them yet. Threads may call this concurrently.

        Raises:
            WriteError: Rows could not be read or written, or differ after the rewrite.
        """
        with failing_as_write_error(self.subject):
            files = self._rewrite(cut, transaction)
        if self.progress is not None:
            number, total = self.plan.groups.index(cut) + 1, len(self.plan.groups)
            place = f" ({cut.reported.partition})" if cut.reported.partition else ""
            size = sum(each.file.size_bytes for each in files)
            self.progress(
                f"group {number:,} of {total:,}{place}: {counted(len(cut.reported.paths), 'file')} "
                f"({size_text(cut.reported.size_bytes)}) → {counted(len(files), 'file')} ({size_text(size)})"
            )
        return files

    def _rewrite(self, cut: CutGroup, transaction: Transaction) -> tuple[FileReport, ...]:
        survey, layout = self.plan.survey, self.plan.survey.layout
        writer, store = FileWriter(self.spark, self.subject, layout), survey.opened.store
        if cut.reported.strategy.name == "binpack":
            written = self._packed(writer, cut, transaction)
        elif cut.reported.strategy.name == "sort":
            parts, order = cut.reported.files_after, sort_order(cut.reported.strategy.sort_by)
            written = self._in_order(
                writer,
                cut,
                transaction,
                self._rows(cut),
                lambda rows: rows.repartitionByRange(parts, *order).sortWithinPartitions(*order),
            )
        elif cut.source is not None and cut.model is not None:
            written = writer.rewrite(store, transaction, cut.source, cut.model)
        else:
            written = writer.write(store, transaction, self._rows(cut), cuts=cut.model)
        count = sum(each.file.row_count for each in written.files)
        if count != cut.reported.rows:
            raise WriteError(
                f"{self.subject}: a group has {counted(cut.reported.rows, 'row')}, but {count:,} were written; "
                "its files stay as they are"
            )
        if self.verify:
            files = DataFiles.of([each.file for each in written.files], layout.partition_by)
            fresh = survey.opened.with_files(files)
            after = frame_of(Catalog(self.spark), fresh, np.ones(len(files), bool))
            check_same_rows(self._rows(cut), cast_to(after, layout.schema_json), self.subject)
        return written.files

    def _packed(self, writer: FileWriter, cut: CutGroup, transaction: Transaction) -> Written:
        survey, layout = self.plan.survey, self.plan.survey.layout
        opened = survey.opened
        source = None
        if not needs_spark(layout):
            kinds = arrow_schema(layout.partition_json).types
            values = opened.partition_keys[cut.partition] if layout.partition_by else ()
            partition = list(zip(values, kinds, strict=True))
            source = ArrowSource.of(opened.store, cut.reported.paths, layout.data_schema, partition)
        if source is not None:
            packs = [opened.files["path"].take(pa.array(pack)).to_pylist() for pack in cut.packs]
            return writer.pack(opened.store, transaction, source.packed(packs), self._row_group_rows)
        return self._in_order(
            writer,
            cut,
            transaction,
            self._placed_rows(cut),
            lambda rows: rows.repartition(len(cut.packs), PLACE[0]).sortWithinPartitions(*PLACE),
            least_rows=max((int(survey.rows[pack].sum()) for pack in cut.packs if len(pack) > 1), default=0),
        )

    def _placed_rows(self, cut: CutGroup) -> DataFrame:
        """Returns the rows of a group, as Spark reads them, with their place in the new files."""
        catalog, opened = Catalog(self.spark), self.plan.survey.opened
        uris = [unescaped(uri) for uri in opened.file_uris()]
        places = [
            (uris[file], slot, number)
            for slot, pack in zip(slot_keys(len(cut.packs)).tolist(), cut.packs, strict=True)
            for number, file in enumerate(pack.tolist())
        ]
        slot, number, row = PLACE
        rows = with_file_and_row(frame_of(catalog, opened, cut.files), row)
        kinds = {slot: "integer", number: "integer", row: "long"}
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
        columns = [*raw_fields(self.plan.survey.layout.schema_json), *fields]
        return cast_to(joined_by_file(catalog, rows, places, f"{slot} int, {number} int"), schema_json_of(columns))

    def _in_order(
        self,
        writer: FileWriter,
        cut: CutGroup,
        transaction: Transaction,
        rows: DataFrame,
        arrange: Callable[[DataFrame], DataFrame],
        least_rows: int = 1,
    ) -> Written:
        """Writes the rows of a group in the order into which they are brought.

        Args:
            writer: Writes the files.
            arrange: Spreads the rows over tasks and sorts them.
            least_rows: So many rows fit into a file, however large they are.
        """
        opened, target_bytes = self.plan.survey.opened, self.plan.survey.cost_model.target_bytes
        raw = opened.partition_keys[cut.partition] if opened.partition_columns else ()
        per_file = target_bytes * cut.reported.rows // max(1, cut.reported.size_bytes)
        partition = tuple(value or None for value in raw)
        return writer.write_in_order(
            opened.store, transaction, rows, arrange, partition, self._row_group_rows, max(1, per_file, least_rows)
        )

    @property
    def _row_group_rows(self) -> int | None:
        stored = self.plan.survey.stored
        return self.plan.survey.layout.config.file_sizing.row_group_rows or (
            stored.row_group_rows if stored is not None else None
        )

    def _rows(self, cut: CutGroup) -> DataFrame:
        """Returns the rows of a group as Spark reads them."""
        survey = self.plan.survey
        return cast_to(frame_of(Catalog(self.spark), survey.opened, cut.files), survey.layout.schema_json)


def sort_order(columns: Sequence[ColumnPath]) -> list[Column]:
    """Returns the columns by which rows are sorted, ascending and nulls first, as Spark sorts by default."""
    return [functions.expr(".".join(map(backquoted, path))).asc_nulls_first() for path in columns]


# Groups submitted per thread, running or queued, so that threads have work even while a batch is being committed.
_AHEAD = 2

Write = Callable[[CutGroup, Transaction], tuple[FileReport, ...]]


@dataclass(eq=False)
class Batch:
    """Groups that are committed together.

    Attributes:
        groups: All groups of the batch.
        transaction: The transaction that their files are written for. The receiver of the batch ends it.
        written: Groups whose new files are in place.
        failed: Groups that failed, each with its error.
    """

    groups: Sequence[CutGroup]
    transaction: Transaction
    written: list[WrittenGroup] = field(default_factory=list)
    failed: list[tuple[CutGroup, Exception]] = field(default_factory=list)

    @property
    def has_ended(self) -> bool:
        """Whether every group is written or has failed."""
        return len(self.written) + len(self.failed) == len(self.groups)


def ended_batches(write: Write, batches: Iterable[Batch], at_once: int) -> Generator[Batch, None, None]:
    """Writes the groups of all batches in one pool. A group that fails does not stop the others.

    Close the iterator if you stop early: it waits for running writes and rolls back batches that were not yielded.

    Args:
        write: Writes one group.
        batches: The batches, in the order of their rewrite. The next one is requested when the pool runs low on groups.
        at_once: Number of groups to write at the same time.

    Yields:
        Each batch when its last group has ended.
    """
    pending: dict[Future[tuple[FileReport, ...]], tuple[Batch, CutGroup]] = {}
    begun: list[Batch] = []
    pool = ThreadPoolExecutor(at_once)

    def ended() -> Iterator[Batch]:
        for future in wait(pending, return_when=FIRST_COMPLETED).done:
            batch, cut = pending.pop(future)
            error = future.exception()
            if error is None:
                batch.written.append((cut, future.result()))
            elif isinstance(error, Exception):
                batch.failed.append((cut, error))
            else:
                raise error
            if batch.has_ended:
                begun.remove(batch)
                yield batch

    try:
        for batch in batches:
            begun.append(batch)
            pending |= {pool.submit(write, cut, batch.transaction): (batch, cut) for cut in batch.groups}
            while len(pending) >= _AHEAD * at_once:
                yield from ended()
        while pending:
            yield from ended()
    finally:
        pool.shutdown(cancel_futures=True)
        for batch in begun:
            batch.transaction.rollback()


_NO_HASH = ("map", "variant")


def checksums(rows: DataFrame) -> dict[str, Any]:
    """Returns a checksum of each column by name, and the number of rows under an empty name.

    A column's checksum is the sum of the hashes of its values, as decimals so that it cannot overflow.
    """
    sums = [
        functions.sum(
            functions.xxhash64(_hashable(field.name, field.dataType), functions.lit(position)).cast("decimal(38,0)")
        )
        for position, field in enumerate(rows.schema.fields)
    ]
    found = rows.agg(functions.count("*"), *sums).collect()[0]
    return dict(zip(["", *rows.columns], found, strict=True))


def check_same_rows(before: DataFrame, after: DataFrame, subject: str) -> None:
    """Checks that the checksums of all columns are equal.

    Raises:
        WriteError: Some columns differ. The message names them. Nothing was committed.
    """
    old, new = checksums(before), checksums(after)
    wrong = [name or "the number of rows" for name in old if old[name] != new[name]]
    if wrong:
        raise WriteError(f"{subject}: the rewritten files differ in {', '.join(wrong)}; nothing was committed")


def _hashable(name: str, kind: DataType) -> Any:
    """Returns a column in a form that Spark can hash. Maps and variants have no hash, so they become JSON text."""
    column = functions.col(backquoted(name))
    return functions.to_json(functions.struct(column)) if _has_no_hash(kind) else column


def _has_no_hash(kind: DataType) -> bool:
    if kind.typeName() in _NO_HASH:
        return True
    if isinstance(kind, ArrayType):
        return _has_no_hash(kind.elementType)
    return isinstance(kind, StructType) and any(_has_no_hash(field.dataType) for field in kind.fields)
