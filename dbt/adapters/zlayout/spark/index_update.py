"""The index beside a commit: a delta for its files, or now and then one base slice in place of all deltas."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.slices import COLUMN_STATS, slice_path, write_slices
from dbt.adapters.zlayout.index.stacking import stacked, with_null_columns
from dbt.adapters.zlayout.index.table_index import TableIndex
from dbt.adapters.zlayout.index.tracked import TrackedColumn
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files import DataFiles
from dbt.adapters.zlayout.timeline.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.state import IndexSlices

_MOST_DELTAS = 10


def put_slices(
    store: Store, instant: str, files: DataFiles, column_stats: pa.Table, removed: Collection[str] = ()
) -> IndexSlices:
    """Writes the slices for some files.

    Returns:
        The path of each by metadata partition.
    """
    written: dict[str, tuple[str, ...]] = {}
    for partition, content in write_slices(files, column_stats, removed).items():
        path = slice_path(partition, instant, content)
        store.put(path, content)
        written[partition] = (path,)
    return written


@dataclass(frozen=True)
class IndexUpdate:
    """What a commit changes in the index; called with the version that it follows, it gives the live slices.

    Attributes:
        store: The table's folder.
        instant: Of the commit.
        adds: Files that it adds.
        column_stats: Their statistics.
        removes: Paths that it removes.
        new_columns: Columns that older files lack: all their rows are null there.
    """

    store: Store
    instant: str
    adds: DataFiles
    column_stats: pa.Table
    removes: tuple[str, ...] = ()
    new_columns: tuple[TrackedColumn, ...] = field(default=())

    def __call__(self, head: Snapshot | None) -> IndexSlices:
        """The slices after the commit; rows of files that others added meanwhile stay."""
        before: IndexSlices = head.index if head is not None else {}
        if head is not None and (self.new_columns or len(before.get(COLUMN_STATS, ())) >= _MOST_DELTAS):
            return self._base(head)
        return {
            partition: (*before.get(partition, ()), *paths)
            for partition, paths in {**dict.fromkeys(before, ()), **self._delta}.items()
        }

    @cached_property
    def _delta(self) -> IndexSlices:
        if not len(self.adds) and not self.removes:
            return {}
        return put_slices(self.store, self.instant, self.adds, self.column_stats, self.removes)

    def _base(self, head: Snapshot) -> IndexSlices:
        gone = pc.is_in(head.files["path"], value_set=pa.array(self.removes, pa.string()))
        kept = head.files.filter(pc.invert(gone))
        known = TableIndex(self.store, head.index).stored(kept)
        if self.new_columns:
            paths, rows = (kept.column(name).combine_chunks() for name in ("path", "row_count"))
            known = with_null_columns(known, paths, rows, self.new_columns)
        both = DataFiles(pa.concat_tables([kept.arrow, self.adds.arrow]))
        return put_slices(self.store, self.instant, both, stacked([known, self.column_stats]))
