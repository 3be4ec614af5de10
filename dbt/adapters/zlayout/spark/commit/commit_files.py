"""Commits files: their curve and their index slices first, then the log entry that makes them visible.

For each index partition, a commit writes a delta slice for its files. Of column statistics it now and then writes a
base slice for all files; many small slices of filters and lookups are folded into one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.slice_reading import SHARED
from dbt.adapters.zlayout.index.slice_writing import (
    COLUMN_STATS,
    PARTITION_STATS,
    partition_slice,
    slice_path,
    write_slices,
)
from dbt.adapters.zlayout.index.statistics.column_stats import (
    AlignedStatistics,
    bounds_of_stats,
    column_paths,
    stacked,
    with_null_columns,
)
from dbt.adapters.zlayout.index.statistics.merge import fields_of, group_rows
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.index.table_index import TableIndex
from dbt.adapters.zlayout.layout.depth import box_overlap
from dbt.adapters.zlayout.layout.spans import spans_of, validated
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.spark.commit.expression_stats import (
    joined_statistics,
    pieces_of_expressions,
    with_expressions,
)
from dbt.adapters.zlayout.spark.commit.optional_slices import (
    NOTHING_OPTIONAL,
    OPTIONAL_PARTITIONS,
    NewOptional,
)
from dbt.adapters.zlayout.spark.files.distinct_values import Pieces
from dbt.adapters.zlayout.spark.files.file_report import FileReport, statistics_of
from dbt.adapters.zlayout.spark.jobs.jobs import check_not_cancelled
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import curve_path
from dbt.adapters.zlayout.timeline.log.entry import Commit, IndexSlices
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_DELTAS = 10
# A commit reads old statistics of at most this many files (0.7 s for 32 columns). The statistics of larger partitions
# stay unknown until the next base slice. Until then, pruning looks at each of their files.
_MOST_RESTATED_FILES = 20_000
# Beyond every limit: the next build makes a new curve.
UNKNOWN_DRIFT = 1e9


def stored_drift(layout: Mapping[str, Any]) -> float:
    """Returns the `drift_of` the files for which a version's curve was made."""
    return float(layout.get("drift", UNKNOWN_DRIFT))


def put_slices(
    store: Store, instant: str, files: DataFiles, column_stats: pa.Table, optional: NewOptional = NOTHING_OPTIONAL
) -> IndexSlices:
    """Writes base slices for the given files.

    Returns:
        The paths of the slices, by index partition.
    """
    return {**_put(store, instant, write_slices(files, column_stats)), **optional.put(store, instant, files)}


@dataclass(frozen=True)
class Renewed:
    """New statistics of existing files, which replace those in the index.

    Attributes:
        files: The files as they were when they were read. A file that has changed since keeps its old statistics.
        column_stats: One row per file.
    """

    files: DataFiles
    column_stats: pa.Table

    def over(self, known: pa.Table, live: DataFiles) -> pa.Table:
        """Returns the statistics of live files, with the renewed ones in place of the known ones.

        Columns that only the known ones have, because another writer added them in the meantime, stay.
        """
        unchanged = live.filter(live.same_as(self.files, IDENTITY)).column("path")
        renewed = self.column_stats.filter(pc.is_in(self.column_stats.column("path"), value_set=contiguous(unchanged)))
        rest = known.filter(pc.invert(pc.is_in(known.column("path"), value_set=contiguous(renewed.column("path")))))
        return stacked([rest, joined_statistics(joined_statistics(renewed, known), renewed)])


@dataclass(frozen=True)
class IndexUpdate:
    """The change of the index by a commit. Called with the version that it follows, it returns the live slices.

    Attributes:
        instant: Instant of the commit.
        adds: Files that the commit adds.
        column_stats: Statistics of the added files.
        removes: Paths of files that the commit removes.
        new_columns: Columns that older files do not have. They are null in all rows of those files.
        renewed: New statistics of files that stay. If given, one base slice replaces all slices.
        optional: What is new in the optional parts of the index.
    """

    store: Store
    instant: str
    adds: DataFiles
    column_stats: pa.Table
    removes: tuple[str, ...] = ()
    new_columns: tuple[TrackedColumn, ...] = ()
    renewed: Renewed | None = None
    optional: NewOptional = NOTHING_OPTIONAL

    def __call__(self, head: Snapshot | None) -> IndexSlices:
        """Returns the slices after the commit. Statistics of files that others added in the meantime stay."""
        statistics = self._statistics_after(head)
        rest = {partition: paths for partition, paths in statistics.items() if partition not in OPTIONAL_PARTITIONS}
        return {**rest, **self._optional_after(head)}

    def _optional_after(self, head: Snapshot | None) -> IndexSlices:
        if head is None or not any(head.index.get(each) for each in OPTIONAL_PARTITIONS):
            return self._new_optional
        _, kept = self._split(head)
        before, removes = head.index, bool(self.removes)
        return self.optional.after(self.store, self.instant, before, self._new_optional, kept, removes=removes)

    @cached_property
    def _new_optional(self) -> IndexSlices:
        return self.optional.put(self.store, self.instant, self.adds)

    def _statistics_after(self, head: Snapshot | None) -> IndexSlices:
        before: IndexSlices = head.index if head is not None else {}
        remade = self.new_columns or self.renewed is not None
        if head is not None and (remade or len(before.get(COLUMN_STATS, ())) >= _MOST_DELTAS):
            return self._base(head)
        written = dict(self._delta)
        if head is not None and self.removes:
            written |= _put(self.store, self.instant, {PARTITION_STATS: self._partitions_after(head)})
        return {
            partition: (*before.get(partition, ()), *paths)
            for partition, paths in {**dict.fromkeys(before, ()), **written}.items()
        }

    @cached_property
    def _delta(self) -> IndexSlices:
        if not len(self.adds) and not self.removes:
            return {}
        contents = write_slices(self.adds, self.column_stats)
        if self.removes:
            del contents[PARTITION_STATS]  # depends on the version that the commit follows
        return _put(self.store, self.instant, contents)

    def _partitions_after(self, head: Snapshot) -> bytes:
        """Returns the slice of partition statistics. A partition that loses a file is computed from all its files."""
        gone, kept = self._split(head)
        every = gone.plus(kept)
        partition = group_rows(
            [contiguous(every.partition_values(name)) for name in every.partition_by], len(every)
        ).group_of_row
        touched = kept.filter(pc.is_in(pa.array(partition[len(gone) :]), value_set=pa.array(partition[: len(gone)])))
        if len(touched) > _MOST_RESTATED_FILES:
            return partition_slice(self.adds, self.column_stats, gone[:0])
        known = self._index(head).stored(touched)
        return partition_slice(touched.plus(self.adds), stacked([known, self.column_stats]), gone)

    def _base(self, head: Snapshot) -> IndexSlices:
        _, kept = self._split(head)
        known = self._index(head).stored(kept)
        if self.renewed is not None:
            known = self.renewed.over(known, kept)
        if self.new_columns:
            paths, rows = (kept.column(name).combine_chunks() for name in ("path", "row_count"))
            known = with_null_columns(known, paths, rows, self.new_columns)
        # Without files, ``adds`` may still have the partition columns of the base, which another writer has changed.
        live = kept.plus(self.adds) if len(self.adds) else kept
        return put_slices(self.store, self.instant, live, stacked([known, self.column_stats]))

    def _index(self, head: Snapshot) -> TableIndex:
        return TableIndex(self.store, head.index, read=partial(SHARED.read, self.store))

    def _split(self, head: Snapshot) -> tuple[DataFiles, DataFiles]:
        """Returns the files of a version that the commit removes, and those that stay."""
        goes = pc.is_in(head.files["path"], value_set=pa.array(self.removes, pa.string()))
        return head.files.filter(goes), head.files.filter(pc.invert(goes))


def _put(store: Store, instant: str, contents: Mapping[str, bytes]) -> IndexSlices:
    written: dict[str, tuple[str, ...]] = {}
    for partition, content in contents.items():
        path = slice_path(partition, instant, content)
        store.put(path, content)
        written[partition] = (path,)
    return written


@dataclass(frozen=True)
class NewFiles:
    """Files that a transaction has written or found.

    Attributes:
        column_stats: Their statistics, one row per file.
        optional: What they add to the optional parts of the index.
    """

    files: DataFiles
    column_stats: pa.Table
    optional: NewOptional

    @classmethod
    def of(
        cls, spark: SparkSession, store: Store, instant: str, reports: Sequence[FileReport], layout: TableLayout
    ) -> NewFiles:
        """Returns the files that tasks report, and what the index gets of the table's expressions."""
        files = DataFiles.of([each.file for each in reports], layout.partition_by)
        of_columns = Pieces(
            tuple(each.filters for each in reports if each.filters is not None),
            tuple(each.hashes for each in reports if each.hashes is not None),
        )
        of_expressions = pieces_of_expressions(spark, store, instant, files, layout)
        column_stats = with_expressions(spark, store, files, statistics_of(reports, layout.tracked), layout)
        return cls(files, column_stats, NewOptional.of(Pieces.together([of_columns, of_expressions])))

    def overlap_depth(self, keys: Sequence[ColumnPath]) -> float:
        """Returns how much the files overlap in the key space, see `depth_of`."""
        return round(depth_of(self.column_stats, keys, [each.partition for each in self.files]), 4)


def commit_files(
    store: Store,
    transaction: Transaction,
    change: Change,
    column_stats: pa.Table,
    *,
    curve: bytes | None = None,
    new_columns: tuple[TrackedColumn, ...] = (),
    optional: NewOptional = NOTHING_OPTIONAL,
    renewed: Renewed | None = None,
) -> Commit:
    """Commits a change of files with its curve and its index slices.

    For commits that add or remove files, or give files new index slices. Conversions, rollbacks, refreshes of the
    index, and changes of the published formats use their transaction directly.

    Args:
        transaction: The transaction. If it overwrites the table, base slices replace those of the index.
        change: The change, without its curve.
        column_stats: Statistics of the files that the change adds.
        curve: The curve that placed the files. None keeps the table's curve.
        new_columns: Columns that older files do not have.
        optional: What is new in the optional parts of the index.
        renewed: New statistics of files that stay.

    Raises:
        CancelledError: This thread was cancelled.
        ConflictError: Another writer committed a change that this one cannot follow.
        StoreError: The store failed.
    """
    check_not_cancelled()
    if curve is not None:
        path = curve_path(transaction.instant)
        store.put(path, curve)
        change = replace(change, curve=path)
    if transaction.operation == Operation.OVERWRITE.value:
        slices = put_slices(store, transaction.instant, change.adds, column_stats, optional)
        commit = transaction.commit(change, index=slices)
    else:
        update = IndexUpdate(
            store, transaction.instant, change.adds, column_stats, change.removes, new_columns, renewed, optional
        )
        commit = transaction.commit(change, index=update)
    optional.forget_staged(store)
    return commit


def depth_of(column_stats: pa.Table, keys: Sequence[ColumnPath], partitions: Sequence[Hashable]) -> float:
    """Returns the average number of files, itself included, whose boxes intersect the box of a file.

    Args:
        column_stats: One row per file, as the index stores it.
        partitions: Partition of each file. Files of different partitions never overlap.
    """
    names = column_paths(column_stats.schema)
    numbers: dict[Hashable, int] = {}
    partition = np.array([numbers.setdefault(each, len(numbers)) for each in partitions], dtype=np.int64)
    stats = {key: column_stats.column(names[key]).combine_chunks() for key in keys if key in names}
    spans = []
    for key, each in stats.items():
        bounds = bounds_of_stats(fields_of(each))
        facts = validated(AlignedStatistics(each.field("value_count"), {key: bounds}), {key: bounds.type})
        spans.append(spans_of(facts[key], bounds.type, len(each)))
    return box_overlap([each.low for each in spans], [each.high for each in spans], partition).average_depth


def drift_of(files: Sequence[FileReport], target_file_bytes: int) -> float:
    """Returns how far file sizes are off target: the mean against the target, or the largest against twice the mean.

    1.0 is on target. Fewer than two files give `UNKNOWN_DRIFT`.
    """
    if len(files) < 2:
        return UNKNOWN_DRIFT
    sizes = [each.file.size_bytes for each in files]
    mean = sum(sizes) / len(sizes)
    return round(max(mean / target_file_bytes, target_file_bytes / max(1.0, mean), max(sizes) / mean / 2), 3)
