"""The metadata table of one snapshot as statistics for pruning; reading never depends on it.

A cache looks each column up once; later scans of the snapshot reuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError, ZlayoutError
from dbt.adapters.zlayout.index.bloom.filter_slices import BLOOM_FILTERS, FilterSlice, Positions
from dbt.adapters.zlayout.index.bloom.table_filters import FilesFilters, TableFilters
from dbt.adapters.zlayout.index.lookup.lookup_slices import LOOKUPS, LookupSlice
from dbt.adapters.zlayout.index.lookup.table_lookups import FilesLookups, TableLookups
from dbt.adapters.zlayout.index.slice_cache import OpenSlice, SliceStore, read_slice
from dbt.adapters.zlayout.index.slices import (
    COLUMN_STATS,
    FILE_COUNT,
    PARTITION_PREFIX,
    PARTITION_STATS,
    WHOLE,
)
from dbt.adapters.zlayout.index.statistics.column_stats import (
    EXAMINED,
    AlignedStatistics,
    bounds_of_partition,
    bounds_of_stats,
    cast_stats,
    column_stats_table,
)
from dbt.adapters.zlayout.index.statistics.merge import RowGroups, fields_of, group_rows, merge_counts, merge_known
from dbt.adapters.zlayout.index.statistics.partitions import typed_partition_values
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles

_ROW = ("path", *IDENTITY)


@dataclass(frozen=True)
class PartitionStatistics:
    """Statistics of the partitions of a snapshot's files.

    Attributes:
        statistics: One row per partition, in the order of first appearance among the files.
        partition_of_file: The partition of each file.
    """

    statistics: AlignedStatistics
    partition_of_file: npt.NDArray[np.int64]


class TableIndex:
    """The slices of a snapshot.

    If a slice is missing or damaged, its rows are unknown and the problem is recorded; no method raises for it.

    Args:
        store: Reads slices.
        slices: Slice paths by metadata partition, oldest first.
        partition_types: Arrow types of the partition columns, in the order of the folders.
        timezone: The session's time zone, for partition columns of type timestamp.
        read: Reads a slice; by default from the store each time.
        read_filters: Opens a slice of Bloom filters; without it, they are left out.
        read_lookups: Opens a slice of lookup indexes; without it, they are left out.

    Attributes:
        problems: The problems with slices so far, one sentence each.
    """

    def __init__(
        self,
        store: SliceStore,
        slices: Mapping[str, Sequence[str]],
        *,
        partition_types: Mapping[str, pa.DataType] | None = None,
        timezone: str | None = None,
        read: Callable[[str], OpenSlice] | None = None,
        read_filters: Callable[[str], FilterSlice] | None = None,
        read_lookups: Callable[[str], LookupSlice] | None = None,
    ) -> None:
        self.problems: list[str] = []
        self._read = read or partial(read_slice, store)
        self._paths = {partition: tuple(reversed(paths)) for partition, paths in slices.items()}
        self._partition_types = dict(partition_types or {})
        self._timezone = timezone
        self._opened: dict[str, OpenSlice | None] = {}
        self._aligned: tuple[DataFiles, list[OpenSlice], pa.Array] | None = None
        self._filters: TableFilters | None = None
        if read_filters is not None and slices.get(BLOOM_FILTERS):
            self._filters = TableFilters(slices[BLOOM_FILTERS], read_filters, self._note)
        self._lookups: TableLookups | None = None
        if read_lookups is not None and slices.get(LOOKUPS):
            self._lookups = TableLookups(slices[LOOKUPS], read_lookups, self._note)

    def statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> AlignedStatistics:
        """Returns the statistics of files.

        Args:
            files: Files of the snapshot; a file whose size, time or row count differs from the index is unknown.
            columns: The columns to look up; only these are read.
        """
        row_count = contiguous(files.column("row_count"))
        found = self._partition_columns(columns, lambda name: contiguous(files.partition_values(name)), row_count)
        stored = [path for path in columns if path not in found]
        if stored:
            slices, rows = self._alignment(files)
            in_order = _in_order(rows, sum(each.row_count for each in slices))
            found |= self._columns(slices, stored, lambda stats: stats if in_order else stats.take(rows))
        return AlignedStatistics(row_count, found)

    def membership(self, files: DataFiles, positions: Positions | None = None) -> FilesFilters | None:
        """Returns the Bloom filters of files, for the files at the positions or all; None if the table has none."""
        return None if self._filters is None else self._filters.of(files).among(positions)

    def lookups(self, files: DataFiles) -> FilesLookups | None:
        """Returns the lookup entries of files; None if the table has none."""
        return None if self._lookups is None else self._lookups.of(files)

    def rows(self) -> pa.Table:
        """Returns ``path`` and the columns of `IDENTITY` of all rows, the newest of a file before its older ones.

        Rows of files that the table no longer has stay until the next base slice.
        """
        slices = self._slices(COLUMN_STATS, _ROW)
        kinds = (pa.string(), *(pa.int64() for _ in IDENTITY))
        empty = pa.table({name: pa.array([], kind) for name, kind in zip(_ROW, kinds, strict=True)})
        return pa.concat_tables([empty, *(pa.table({name: each.column(name) for name in _ROW}) for each in slices)])

    def stored(self, files: DataFiles) -> pa.Table:
        """Returns everything that the slices have about files, as `write_slices` takes it; omits unknown files."""
        slices, rows = self._alignment(files)
        known = pc.is_valid(rows)
        taken = rows.filter(known)
        paths = dict.fromkeys(path for each in slices for path in each.paths)
        structs = [self._stacked(slices, path).take(taken) for path in paths]
        examined = pa.concat_arrays([pa.array([], pa.bool_()), *map(self._examined, slices)]).take(taken)
        return column_stats_table(contiguous(files.column("path")).filter(known), list(paths), structs, examined)

    def partition_statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> PartitionStatistics:
        """Returns the statistics of the files' partitions.

        A partition is known only if the slices describe exactly its files: their number and the sums of rows, bytes
        and times must agree.

        Args:
            files: All files of the snapshot.
            columns: The columns to look up.
        """
        live, by_name, sums = self._live_partitions(files)
        found = self._partition_columns(columns, by_name.__getitem__, sums["row_count"])
        stored = [path for path in columns if path not in found]
        if stored:
            slices = self._slices(PARTITION_STATS)
            groups, known = self._stored_partitions(slices, list(by_name.values()), sums)
            found |= self._columns(slices, stored, lambda stats: merge_known(stats, groups, known))
        return PartitionStatistics(AlignedStatistics(sums["row_count"], found), live.group_of_row)

    def describes_partitions(self, files: DataFiles) -> bool:
        """Returns whether the slices describe every partition of the files exactly."""
        _, by_name, sums = self._live_partitions(files)
        _, known = self._stored_partitions(self._slices(PARTITION_STATS), list(by_name.values()), sums)
        return bool(pc.all(known, min_count=0).as_py())

    def _live_partitions(self, files: DataFiles) -> tuple[RowGroups, dict[str, pa.Array], dict[str, pa.Array]]:
        """Returns the partitions of files, their values by column, and the sums over their files."""
        names = list(self._partition_types)
        texts = [contiguous(files.partition_values(name)) for name in names]
        live = group_rows(texts, len(files))
        firsts = pa.array(live.first_rows)
        sums = {
            name: merge_counts(contiguous(files.column(name)), live.group_of_row, live.group_count) for name in IDENTITY
        }
        sums[FILE_COUNT] = pa.array(np.bincount(live.group_of_row, minlength=live.group_count))
        return live, {name: text.take(firsts) for name, text in zip(names, texts, strict=True)}, sums

    def _partition_columns(
        self, columns: Collection[ColumnPath], texts_of: Callable[[str], pa.Array], row_count: pa.Array
    ) -> dict[ColumnPath, ColumnBounds]:
        asked = [path for path in columns if len(path) == 1 and path[0] in self._partition_types]
        return {
            path: bounds_of_partition(
                typed_partition_values(texts_of(path[0]), self._partition_types[path[0]], self._timezone), row_count
            )
            for path in asked
        }

    def _columns(
        self, slices: Sequence[OpenSlice], columns: Collection[ColumnPath], place: Callable[[pa.StructArray], pa.Array]
    ) -> dict[ColumnPath, ColumnBounds]:
        """Returns bounds of columns over the rows of all slices, newest slice first, rearranged by ``place``."""
        found: dict[ColumnPath, ColumnBounds] = {}
        for path in columns:
            if any(path in each.paths for each in slices):
                found[path] = bounds_of_stats(fields_of(place(self._stacked(slices, path))))
        return found

    def _stacked(self, slices: Sequence[OpenSlice], path: ColumnPath) -> pa.StructArray:
        """Returns the rows of all slices for a column that at least one has, in the type of the newest that has it."""
        newest = next(each for each in slices if path in each.paths)
        column_type = newest.reader.schema.field(newest.paths[path]).type
        return pa.concat_arrays([self._part(each, path, column_type) for each in slices])

    def _part(self, part: OpenSlice, path: ColumnPath, column_type: pa.DataType) -> pa.StructArray:
        if path in part.paths:
            try:
                return cast_stats(part.column(part.paths[path]), column_type.field("min").type)
            except CorruptError as error:
                self._note(str(error))
        return pa.nulls(part.row_count, column_type)

    def _examined(self, part: OpenSlice) -> pa.Array:
        try:
            return part.column(EXAMINED)
        except CorruptError as error:
            self._note(str(error))
        return pa.repeat(False, part.row_count)

    def _alignment(self, files: DataFiles) -> tuple[list[OpenSlice], pa.Array]:
        """Returns the usable ``column_stats`` slices and the row of each file among theirs; null for none."""
        if self._aligned is not None and self._aligned[0] is files:
            return self._aligned[1], self._aligned[2]
        slices = self._slices(COLUMN_STATS, _ROW)
        rows = pa.nulls(len(files), pa.int64())
        if slices:
            stored = {name: pa.concat_arrays([each.column(name) for each in slices]) for name in _ROW}
            rows = pc.index_in(contiguous(files.column("path")), value_set=stored["path"]).cast(pa.int64())
            same = [pc.equal(contiguous(files.column(name)), stored[name].take(rows)) for name in IDENTITY]
            agrees = pc.fill_null(reduce(pc.and_kleene, same), False)
            rows = pc.if_else(agrees, rows, pa.scalar(None, pa.int64()))
        self._aligned = (files, slices, rows)
        return slices, rows

    def _stored_partitions(
        self, slices: Sequence[OpenSlice], live_keys: Sequence[pa.Array], sums: Mapping[str, pa.Array]
    ) -> tuple[npt.NDArray[np.int64], pa.Array]:
        """Returns the live partition of each stored row (-1 for none), and which live partitions the rows describe."""
        live_count = len(sums[FILE_COUNT])
        names = (FILE_COUNT, *IDENTITY, WHOLE)
        key_names = [f"{PARTITION_PREFIX}{name}" for name in self._partition_types]
        stored_rows = sum(each.row_count for each in slices)
        try:
            stored_keys = [
                pa.concat_arrays([live, *(each.column(name) for each in slices)])
                for name, live in zip(key_names, live_keys, strict=True)
            ]
            stored = {name: pa.concat_arrays([each.column(name) for each in slices]) for name in names if slices}
        except (CorruptError, pa.ArrowException) as error:
            self._note(str(error))
            return np.full(stored_rows, -1, np.int64), pa.repeat(False, live_count)
        if not slices:
            return np.empty(0, np.int64), pa.repeat(False, live_count)
        both: RowGroups = group_rows(stored_keys, live_count + stored_rows)
        groups = both.group_of_row[live_count:]
        counts = _counts(slices, groups, stored[WHOLE])
        inside, counted = groups[counts], pa.array(counts)
        agrees = [
            pc.equal(live, merge_counts(stored[name].filter(counted), inside, both.group_count).slice(0, live_count))
            for name, live in sums.items()
        ]
        known = pc.fill_null(reduce(pc.and_kleene, agrees), False)
        return np.where(counts & (groups < live_count), groups, -1), known

    def _slices(self, partition: str, needed: Sequence[str] = ()) -> list[OpenSlice]:
        """Returns the readable slices of a metadata partition, newest first."""
        opened = [self._open(path, needed) for path in self._paths.get(partition, ())]
        return [each for each in opened if each is not None]

    def _open(self, path: str, needed: Sequence[str]) -> OpenSlice | None:
        if path not in self._opened:
            try:
                part = self._read(path)
                for name in needed:
                    part.column(name)
                self._opened[path] = part
            except (ZlayoutError, OSError) as error:
                self._opened[path] = None
                self._note(str(error))
        return self._opened[path]

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def _counts(slices: Sequence[OpenSlice], groups: npt.NDArray[np.int64], whole: pa.Array) -> npt.NDArray[np.bool_]:
    """Returns which rows count: in each group, those of the newest slice back to the first one that is complete."""
    age = np.repeat(np.arange(len(slices)), [each.row_count for each in slices])
    oldest = np.full(groups.max(initial=-1) + 1, len(slices))
    says_all = whole.to_numpy(zero_copy_only=False)
    np.minimum.at(oldest, groups[says_all], age[says_all])
    counted: npt.NDArray[np.bool_] = age <= oldest[groups]
    return counted


def _in_order(rows: pa.Array, stored_rows: int) -> bool:
    """Returns whether the files match the stored rows one by one, as after a rewrite of the whole table."""
    if rows.null_count or len(rows) != stored_rows:
        return False
    return bool(np.array_equal(rows.to_numpy(), np.arange(stored_rows)))


class CachedStatistics:
    """Caches `TableIndex.statistics` and `partition_statistics` for one list of files.

    Args:
        index: The index of the snapshot.
        files: All files that scans are planned over.
    """

    def __init__(self, index: TableIndex, files: DataFiles) -> None:
        self._index = index
        self._files = files
        self._lock = Lock()  # Spark plans in many threads
        self._asked: set[ColumnPath] = set()
        self._columns = AlignedStatistics(files.column("row_count").combine_chunks(), {})
        self._asked_partitions: set[ColumnPath] = set()
        self._partitions: PartitionStatistics | None = None
        self._membership = index.membership(files)
        self._lookups = index.lookups(files)

    def membership(self, files: DataFiles, positions: Positions | None = None) -> FilesFilters | None:
        """Returns the Bloom filters of files; those of one list of files are aligned only once."""
        found = self._membership if files is self._files else self._index.membership(files)
        return None if found is None else found.among(positions)

    def lookups(self, files: DataFiles) -> FilesLookups | None:
        """Returns the lookup entries of files; those of one list of files are aligned only once."""
        found = self._lookups if files is self._files else self._index.lookups(files)
        return None if found is None else found.anew()

    def statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> AlignedStatistics:
        """Returns the statistics of files; reads only columns that have not been requested before."""
        if files is not self._files:
            return self._index.statistics(files, columns)
        with self._lock:
            if missing := set(columns) - self._asked:
                found = self._index.statistics(files, sorted(missing))
                self._columns = _joined(self._columns, found)
                self._asked |= missing
            return self._columns

    def partition_statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> PartitionStatistics:
        """Returns the statistics of the files' partitions; reads only columns that have not been requested before."""
        if files is not self._files:
            return self._index.partition_statistics(files, columns)
        with self._lock:
            missing = set(columns) - self._asked_partitions
            if missing or self._partitions is None:
                found = self._index.partition_statistics(files, sorted(missing))
                before = self._partitions
                self._partitions = (
                    found
                    if before is None
                    else PartitionStatistics(_joined(before.statistics, found.statistics), before.partition_of_file)
                )
                self._asked_partitions |= missing
            return self._partitions


def _joined(known: AlignedStatistics, more: AlignedStatistics) -> AlignedStatistics:
    return AlignedStatistics(known.row_count, {**known.columns, **more.columns})
