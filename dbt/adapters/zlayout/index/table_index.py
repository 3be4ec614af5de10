"""The index of one snapshot as statistics for pruning; reading never depends on it.

A cache looks each column up once; later scans of the snapshot reuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial, reduce
from threading import Lock
from typing import NoReturn, cast
from weakref import ref

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError, ZlayoutError
from dbt.adapters.zlayout.index.bloom.filter_slices import BLOOM_FILTERS, FilterSlice, Positions
from dbt.adapters.zlayout.index.bloom.table_filters import FilesFilters, TableFilters
from dbt.adapters.zlayout.index.column_slices import Groups, OpenSlice, SliceStore
from dbt.adapters.zlayout.index.lookup.lookup_slices import LOOKUPS, LookupSlice
from dbt.adapters.zlayout.index.lookup.table_lookups import FilesLookups, TableLookups
from dbt.adapters.zlayout.index.memory_budget import HELD, MemoryBudget
from dbt.adapters.zlayout.index.slice_reading import read_slice
from dbt.adapters.zlayout.index.slice_writing import (
    COLUMN_STATS,
    FILE_COUNT,
    FILE_KEY,
    PARTITION_PREFIX,
    PARTITION_STATS,
    WHOLE,
    file_keys,
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
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds, SomeStatistics, Statistics
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles

_ROW = ("path", *IDENTITY)
# For fewer files than this share of the index's rows, only the row groups that may have them are read.
_PARTIAL_READ_SHARE = 0.5


@dataclass(frozen=True)
class PartitionStatistics:
    """Statistics of the partitions of a snapshot's files.

    Attributes:
        statistics: One row per partition, in the order of first appearance among the files.
        partition_of_file: The partition of each file.
    """

    statistics: AlignedStatistics
    partition_of_file: npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Part:
    """Row groups of a slice; None for all."""

    slice: OpenSlice
    groups: Groups | None

    @property
    def row_count(self) -> int:
        if self.groups is None:
            return self.slice.row_count
        return int(self.slice.group_rows[self.groups].sum())

    def column(self, name: str, note: Callable[[str], None]) -> pa.Array:
        return self.slice.column(name, note, self.groups)


class TableIndex:
    """The slices of a snapshot.

    It does not keep slices that the cache has let go of.

    If a slice is missing or damaged, its rows are unknown and the problem is recorded; no method raises for it.

    Args:
        store: Reads slices.
        slices: Slice paths by index partition, oldest first.
        partition_types: Arrow types of the partition columns, in the order of the folders.
        timezone: The session's time zone, for partition columns of type timestamp.
        read: Opens a slice; by default from the store, once.
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
        self._read = read or cache(partial(read_slice, store))
        self._paths = {partition: tuple(reversed(paths)) for partition, paths in slices.items()}
        self._partition_types = dict(partition_types or {})
        self._timezone = timezone
        self._opened: dict[str, ref[OpenSlice] | None] = {}
        self._aligned: tuple[DataFiles, tuple[str, ...], pa.Array] | None = None
        self._filters: TableFilters | None = None
        if read_filters is not None and slices.get(BLOOM_FILTERS):
            self._filters = TableFilters(slices[BLOOM_FILTERS], read_filters, self._note)
        self._lookups: TableLookups | None = None
        if read_lookups is not None and slices.get(LOOKUPS):
            self._lookups = TableLookups(slices[LOOKUPS], read_lookups, self._note)

    def statistics(
        self, files: DataFiles, columns: Collection[ColumnPath], positions: Positions | None = None
    ) -> AlignedStatistics:
        """Returns the statistics of files.

        Args:
            files: Files of the snapshot; a file whose size, time or row count differs from the index is unknown.
            columns: The columns to look up; only these are read, and of few files only their row groups.
            positions: The positions of the files to look at; all by default.
        """
        if positions is not None:
            files = files.take(pa.array(positions))
        row_count = contiguous(files.column("row_count"))
        found = self._partition_columns(columns, lambda name: contiguous(files.partition_values(name)), row_count)
        stored = [path for path in columns if path not in found]
        if stored:
            parts, rows = self._alignment(files, stored)
            in_order = _in_order(rows, sum(each.row_count for each in parts))
            found |= self._columns(parts, stored, lambda stats: stats if in_order else stats.take(rows))
        return AlignedStatistics(row_count, found)

    def reads_part(self, files: DataFiles) -> bool:
        """Returns whether `statistics` of these files reads less than half of the index's rows."""
        parts = self._parts(files)
        return sum(each.row_count for each in parts) < _PARTIAL_READ_SHARE * sum(each.slice.row_count for each in parts)

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
        kinds = (pa.string(), *(pa.int64() for _ in IDENTITY))
        tables = [pa.table({name: pa.array([], kind) for name, kind in zip(_ROW, kinds, strict=True)})]
        parts = [_Part(each, None) for each in self._slices(COLUMN_STATS, _ROW)]
        self._load(parts, _ROW, ())
        for each in parts:
            columns = {name: self._values(each, name, kind) for name, kind in zip(_ROW, kinds, strict=True)}
            tables.append(pa.table(columns).drop_null())
        return pa.concat_tables(tables)

    def stored(self, files: DataFiles) -> pa.Table:
        """Returns everything that the slices have about files, as `write_slices` takes it; omits unknown files."""
        parts, rows = self._alignment(files)
        known = pc.is_valid(rows)
        taken = rows.filter(known)
        paths = dict.fromkeys(path for each in parts for path in each.slice.paths)
        structs = [self._stacked(parts, path).take(taken) for path in paths]
        flags = [pc.fill_null(self._values(each, EXAMINED, pa.bool_()), False) for each in parts]
        examined = pa.concat_arrays([pa.array([], pa.bool_()), *flags]).take(taken)
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
            parts = [_Part(each, None) for each in self._slices(PARTITION_STATS)]
            self._load(parts, _partition_names(by_name), stored)
            groups, known = self._stored_partitions(parts, list(by_name.values()), sums)
            found |= self._columns(parts, stored, lambda stats: merge_known(stats, groups, known))
        return PartitionStatistics(AlignedStatistics(sums["row_count"], found), live.group_of_row)

    def describes_partitions(self, files: DataFiles) -> bool:
        """Returns whether the slices describe every partition of the files exactly."""
        _, by_name, sums = self._live_partitions(files)
        parts = [_Part(each, None) for each in self._slices(PARTITION_STATS)]
        _, known = self._stored_partitions(parts, list(by_name.values()), sums)
        return bool(pc.all(known, min_count=0).as_py())

    def check(self) -> None:
        """Reads all of every slice, so that any damage is among the problems."""
        for partition in (COLUMN_STATS, PARTITION_STATS):
            for part in self._slices(partition):
                whole = _Part(part, None)
                self._load([whole], list(part.types), ())
                for name, kind in part.types.items():
                    self._values(whole, name, kind)

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
        self, parts: Sequence[_Part], columns: Collection[ColumnPath], place: Callable[[pa.StructArray], pa.Array]
    ) -> dict[ColumnPath, ColumnBounds]:
        """Returns bounds of columns over the rows of all parts, newest slice first, rearranged by ``place``."""
        found: dict[ColumnPath, ColumnBounds] = {}
        for path in columns:
            if any(path in each.slice.paths for each in parts):
                found[path] = bounds_of_stats(fields_of(place(self._stacked(parts, path))))
        return found

    def _stacked(self, parts: Sequence[_Part], path: ColumnPath) -> pa.StructArray:
        """Returns the rows of all parts for a column that at least one has, in the type of the newest that has it."""
        newest = next(each.slice for each in parts if path in each.slice.paths)
        column_type = newest.types[newest.paths[path]]
        bound_type = column_type.field("min").type
        columns = [
            cast_stats(self._values(each, each.slice.paths[path], column_type), bound_type)
            if path in each.slice.paths
            else pa.nulls(each.row_count, column_type)
            for each in parts
        ]
        return pa.concat_arrays(columns)

    def _values(self, part: _Part, name: str, kind: pa.DataType) -> pa.Array:
        """Returns a column of a part; nulls of a type where it cannot be read."""
        try:
            return part.column(name, self._note)
        except (ZlayoutError, OSError) as error:
            self._note(str(error))
        return pa.nulls(part.row_count, kind)

    def _alignment(
        self, files: DataFiles, columns: Collection[ColumnPath] | None = None
    ) -> tuple[list[_Part], pa.Array]:
        """Returns parts of the ``column_stats`` slices and the row of each file among theirs; null for none.

        Reads the columns, all by default, in the same go.
        """
        parts = self._parts(files)
        paths = tuple(path for path in self._paths.get(COLUMN_STATS, ()) if self._opened[path] is not None)
        whole = all(each.groups is None for each in parts)
        if whole and self._aligned is not None and self._aligned[0] is files and self._aligned[1] == paths:
            self._load(parts, [EXAMINED] if columns is None else [], columns)
            return parts, self._aligned[2]
        self._load(parts, [FILE_KEY] if columns is not None else [FILE_KEY, EXAMINED], columns)
        stored = [self._values(each, FILE_KEY, pa.uint64()) for each in parts]
        rows = _rows_of(file_keys(files), pa.concat_arrays([pa.array([], pa.uint64()), *stored]))
        if whole:
            self._aligned = (files, paths, rows)
        return parts, rows

    def _parts(self, files: DataFiles) -> list[_Part]:
        """Returns what of the ``column_stats`` slices may describe files, newest first."""
        slices = self._slices(COLUMN_STATS, (FILE_KEY,))
        if len(files) >= _PARTIAL_READ_SHARE * sum(each.row_count for each in slices):
            return [_Part(each, None) for each in slices]
        paths = contiguous(files.column("path")).to_numpy(zero_copy_only=False)
        return [_Part(each, each.groups_of(paths)) for each in slices]

    def _load(
        self, parts: Sequence[_Part], names: Sequence[str], columns: Collection[ColumnPath] | None = None
    ) -> None:
        """Reads columns of the parts, and the statistics of columns or of all, with few requests."""
        for each in parts:
            paths = each.slice.paths
            stats = list(paths.values()) if columns is None else [paths[path] for path in columns if path in paths]
            try:
                each.slice.load([*names, *stats], each.groups)
            except (ZlayoutError, OSError) as error:
                self._note(str(error))

    def _stored_partitions(
        self, parts: Sequence[_Part], live_keys: Sequence[pa.Array], sums: Mapping[str, pa.Array]
    ) -> tuple[npt.NDArray[np.int64], pa.Array]:
        """Returns the live partition of each stored row (-1 for none), and which live partitions the rows describe."""
        live_count = len(sums[FILE_COUNT])
        names = _partition_names(self._partition_types)
        stored_rows = sum(each.row_count for each in parts)
        try:
            stored = {name: pa.concat_arrays([each.column(name, _refuse) for each in parts]) for name in names if parts}
            stored_keys = [
                pa.concat_arrays([live, *([stored[f"{PARTITION_PREFIX}{name}"]] if parts else [])])
                for name, live in zip(self._partition_types, live_keys, strict=True)
            ]
        except (ZlayoutError, OSError, pa.ArrowException) as error:
            self._note(str(error))
            return np.full(stored_rows, -1, np.int64), pa.repeat(False, live_count)
        if not parts:
            return np.empty(0, np.int64), pa.repeat(False, live_count)
        both: RowGroups = group_rows(stored_keys, live_count + stored_rows)
        groups = both.group_of_row[live_count:]
        counts = _counts(parts, groups, stored[WHOLE])
        inside, counted = groups[counts], pa.array(counts)
        agrees = [
            pc.equal(live, merge_counts(stored[name].filter(counted), inside, both.group_count).slice(0, live_count))
            for name, live in sums.items()
        ]
        known = pc.fill_null(reduce(pc.and_kleene, agrees), False)
        return np.where(counts & (groups < live_count), groups, -1), known

    def _slices(self, partition: str, needed: Sequence[str] = ()) -> list[OpenSlice]:
        """Returns the readable slices of an index partition, newest first."""
        opened = [self._open(path, needed) for path in self._paths.get(partition, ())]
        return [each for each in opened if each is not None]

    def _open(self, path: str, needed: Sequence[str]) -> OpenSlice | None:
        if path in self._opened:
            known = self._opened[path]
            part = None if known is None else known()
            if known is None or part is not None:
                return part
        try:
            part = self._read(path)
            if missing := [name for name in needed if name not in part.types]:
                raise CorruptError(f"index slice {path} lacks the columns {', '.join(missing)}")
        except (ZlayoutError, OSError) as error:
            self._opened[path] = None
            self._note(str(error))
            return None
        self._opened[path] = ref(part)
        return part

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


def _partition_names(partition_columns: Iterable[str]) -> list[str]:
    """Returns the columns of ``partition_stats`` that say which partitions it describes."""
    return [*(f"{PARTITION_PREFIX}{name}" for name in partition_columns), FILE_COUNT, *IDENTITY, WHOLE]


def _refuse(problem: str) -> NoReturn:
    raise CorruptError(problem)


def _counts(parts: Sequence[_Part], groups: npt.NDArray[np.int64], whole: pa.Array) -> npt.NDArray[np.bool_]:
    """Returns which rows count: in each group, those of the newest slice back to the first one that is complete."""
    age = np.repeat(np.arange(len(parts)), [each.row_count for each in parts])
    oldest = np.full(groups.max(initial=-1) + 1, len(parts))
    says_all = whole.to_numpy(zero_copy_only=False)
    np.minimum.at(oldest, groups[says_all], age[says_all])
    counted: npt.NDArray[np.bool_] = age <= oldest[groups]
    return counted


def _rows_of(keys: pa.Array, stored: pa.Array) -> pa.Array:
    """Returns the first stored row of each key, int64; null for none."""
    if len(keys) == len(stored) and keys.equals(stored):
        return pa.array(np.arange(len(keys)))
    return pc.index_in(keys, value_set=stored, skip_nulls=True).cast(pa.int64())


def _in_order(rows: pa.Array, stored_rows: int) -> bool:
    """Returns whether the files match the stored rows one by one, as after a rewrite of the whole table."""
    if rows.null_count or len(rows) != stored_rows:
        return False
    return bool(np.array_equal(rows.to_numpy(), np.arange(stored_rows)))


@dataclass(frozen=True)
class _SomeColumns:
    """Statistics of columns of the files at some positions; None for a column of which nothing is known."""

    positions: Positions
    columns: Mapping[ColumnPath, ColumnBounds | None]


class CachedStatistics:
    """Caches `TableIndex.statistics` and `partition_statistics` for one list of files.

    Args:
        index: The index of the snapshot.
        files: All files that scans are planned over.
        held: Counts the statistics that are kept for later scans.
    """

    def __init__(self, index: TableIndex, files: DataFiles, held: MemoryBudget = HELD) -> None:
        self._index = index
        self._files = files
        self._held = held
        self._lock = Lock()  # Spark plans in many threads
        self._row_count = contiguous(files.column("row_count"))
        self._of_files: dict[ColumnPath, ColumnBounds | None] = {}
        self._of_partitions: dict[ColumnPath, ColumnBounds | None] = {}
        self._of_some: _SomeColumns | None = None
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

    def forget(self, name: Hashable) -> None:
        """Drops the statistics of a column of the files (False) or partitions (True), or those of some files (None)."""
        # Without the lock: others call this while they hold their own.
        if name is None:
            self._of_some = None
            return
        of_partitions, path = cast("tuple[bool, ColumnPath]", name)
        (self._of_partitions if of_partitions else self._of_files).pop(path, None)

    def statistics(
        self, files: DataFiles, columns: Collection[ColumnPath], positions: Positions | None = None
    ) -> Statistics:
        """Returns the statistics of files, or of those at some positions; reads only what it does not keep."""
        if files is not self._files:
            return self._index.statistics(files, columns, positions)
        with self._lock:
            known = {path: self._of_files[path] for path in columns if path in self._of_files}
            self._held.use(self, [(False, path) for path in known])
            missing = sorted(set(columns) - known.keys())
            some = None if positions is None or not missing else self._some(missing, positions)
            if some is None:
                found = self._index.statistics(files, missing) if missing else None
                known |= self._kept(self._of_files, found, missing, of_partitions=False)
                whole = _aligned(self._row_count, known)
                return whole if positions is None else SomeStatistics(whole, positions)
            rest = SomeStatistics(_aligned(self._row_count, known), some.positions)
            return _aligned(rest.row_count, {**some.columns, **{path: rest.column(path) for path in known}})

    def _some(self, columns: Sequence[ColumnPath], positions: Positions) -> _SomeColumns | None:
        """Returns columns of the files at some positions; None if reading all files takes hardly more."""
        known = self._of_some
        if known is None or not np.array_equal(known.positions, positions):
            known = _SomeColumns(positions, {})
        missing = [path for path in columns if path not in known.columns]
        if missing:
            files = self._files.take(pa.array(positions))
            if not self._index.reads_part(files):
                return None
            found = self._index.statistics(files, missing)
            known = _SomeColumns(positions, {**known.columns, **{path: found.column(path) for path in missing}})
            # The next scan often leaves the same partitions.
            self._of_some = known
            self._held.keep(self, None, sum(map(_size_of, known.columns.values())))
        else:
            self._held.use(self, [None])
        return known

    def partition_statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> PartitionStatistics:
        """Returns the statistics of the files' partitions; reads only what it does not keep."""
        if files is not self._files:
            return self._index.partition_statistics(files, columns)
        with self._lock:
            known = {path: self._of_partitions[path] for path in columns if path in self._of_partitions}
            self._held.use(self, [(True, path) for path in known])
            missing = sorted(set(columns) - known.keys())
            partitions = self._partitions
            if missing or partitions is None:
                partitions = self._index.partition_statistics(files, missing)
                known |= self._kept(self._of_partitions, partitions.statistics, missing, of_partitions=True)
                row_count = partitions.statistics.row_count
                self._partitions = PartitionStatistics(AlignedStatistics(row_count, {}), partitions.partition_of_file)
            aligned = _aligned(partitions.statistics.row_count, known)
            return PartitionStatistics(aligned, partitions.partition_of_file)

    def _kept(
        self,
        into: dict[ColumnPath, ColumnBounds | None],
        found: AlignedStatistics | None,
        columns: Sequence[ColumnPath],
        *,
        of_partitions: bool,
    ) -> dict[ColumnPath, ColumnBounds | None]:
        """Keeps and returns what was found about columns."""
        new = {path: None if found is None else found.column(path) for path in columns}
        into.update(new)
        for path, bounds in new.items():
            self._held.keep(self, (of_partitions, path), _size_of(bounds))
        return new


def _aligned(row_count: pa.Array, columns: Mapping[ColumnPath, ColumnBounds | None]) -> AlignedStatistics:
    return AlignedStatistics(row_count, {path: bounds for path, bounds in columns.items() if bounds is not None})


def _size_of(bounds: ColumnBounds | None) -> int:
    if bounds is None:
        return 0
    return sum(getattr(bounds, each.name).nbytes for each in fields(bounds) if each.name != "type")
