"""Cached index of one list of files: each column is looked up once, and later scans of the snapshot reuse it."""

from __future__ import annotations

from collections.abc import Collection
from threading import Lock

from dbt.adapters.zlayout.index.statistics.aligned import AlignedStatistics
from dbt.adapters.zlayout.index.table_index import PartitionStatistics, TableIndex
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles


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
