"""Collects statistics of existing files, from their footers if these can be trusted and from their data otherwise."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.index.footers.footer import FooterStatistics, footer_statistics, footer_table
from dbt.adapters.zlayout.index.footers.from_data import completed, open_columns
from dbt.adapters.zlayout.index.gaps import complete_cells
from dbt.adapters.zlayout.index.statistics.bound_cutting import cut_bounds
from dbt.adapters.zlayout.index.statistics.column_stats import cast_stats, column_paths, column_stats_table, stacked
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.spark.files.existing_files import footers_found
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

if TYPE_CHECKING:
    from dbt.adapters.zlayout.spark.index.data_statistics import Seen

_LOG = logging.getLogger(__name__)
# Halving finds one damaged file of a thousand in about twenty reads. If nothing can be read, it ends soon.
_MOST_READS = 24

Examine = Callable[[DataFiles, Mapping[str, Sequence[TrackedColumn]]], "Mapping[str, Seen]"]
"""Reads the given columns of each file, by path, see `seen_in_data`."""


@dataclass(frozen=True)
class Collected:
    """Statistics collected from some files.

    Attributes:
        files: The files that could be read, with their row counts.
        column_stats: One row per file, as the index stores it.
        unreadable: Paths of the other files, which are gone or are not Parquet files.
        data_files: Number of files of which more than the footer was read.
    """

    files: DataFiles
    column_stats: pa.Table
    unreadable: tuple[str, ...] = ()
    data_files: int = 0

    def plus(self, more: Collected) -> Collected:
        """Returns these statistics together with others."""
        return Collected(
            self.files.plus(more.files),
            stacked([self.column_stats, more.column_stats]),
            (*self.unreadable, *more.unreadable),
            self.data_files + more.data_files,
        )

    def only(self, keep: pa.Array) -> Collected:
        """Returns the statistics of some of the files.

        Args:
            keep: bool, one per file.
        """
        files = self.files.filter(keep)
        live = pc.is_in(self.column_stats.column("path"), value_set=contiguous(files["path"]))
        return replace(self, files=files, column_stats=self.column_stats.filter(live))


def collect(
    store: Store,
    files: DataFiles,
    columns: Sequence[TrackedColumn],
    examine: Examine,
    known: pa.Table | None = None,
) -> Collected:
    """Collects statistics of files. What cannot be determined is unknown.

    Args:
        store: The table's folder.
        files: The files. Their row counts are ignored.
        columns: The columns to track.
        examine: Reads the data of files.
        known: Statistics of some of the files. Complete ones are kept and not collected again.
    """
    if not len(files):
        return Collected(files, known.slice(0, 0) if known is not None else footer_table([], [], columns))
    found = footers_found(store, files["path"].to_pylist())
    readable = pa.array([each is not None for each in found])
    unreadable = tuple(files.filter(pc.invert(readable))["path"].to_pylist())
    footers = [each for each in found if each is not None]
    counts = pa.array([each.num_rows for each in footers], pa.int64())
    live = _counted(files.filter(readable), counts)
    paths = live["path"].to_pylist()
    entries = [footer_statistics(each, columns) for each in footers]
    keep = _kept(known, live, columns)
    wanted = {}
    for number, (path, footer, entry) in enumerate(zip(paths, footers, entries, strict=True)):
        left_open = open_columns(footer, columns, entry)
        if asked := tuple(each for each in left_open if not keep[each.path][number].as_py()):
            wanted[path] = asked
    examined, entries = _examined(live, columns, footers, entries, wanted, examine)
    fresh = footer_table(paths, entries, columns)
    return Collected(live, _overlaid(fresh, known, columns, keep, examined), unreadable, len(wanted))


def _counted(files: DataFiles, row_counts: pa.Array) -> DataFiles:
    position = files.arrow.schema.get_field_index("row_count")
    return DataFiles(files.arrow.set_column(position, files.arrow.schema.field("row_count"), row_counts))


def _examined(
    files: DataFiles,
    columns: Sequence[TrackedColumn],
    footers: Sequence[pq.FileMetaData],
    entries: Sequence[FooterStatistics],
    wanted: Mapping[str, Sequence[TrackedColumn]],
    examine: Examine,
) -> tuple[pa.Array, list[FooterStatistics]]:
    """Completes the entries from data. Also returns, per file, whether everything that was wanted has been read."""
    paths = files["path"].to_pylist()
    seen = _seen(files, wanted, examine) if wanted else {}
    done = [
        completed(footer, columns, entry, seen[path]) if path in seen else entry
        for path, footer, entry in zip(paths, footers, entries, strict=True)
    ]
    return pa.array([path in seen or path not in wanted for path in paths], pa.bool_()), done


def _seen(files: DataFiles, wanted: Mapping[str, Sequence[TrackedColumn]], examine: Examine) -> dict[str, Seen]:
    """Reads the data of the files that can be read. Damaged files are left out: less is known, but nothing is wrong."""
    seen: dict[str, Seen] = {}
    left = [list(wanted)]
    for _ in range(_MOST_READS):
        if not left:
            break
        paths = left.pop()
        try:
            seen |= examine(files, {path: wanted[path] for path in paths})
        except Exception as error:
            _LOG.warning("the data of %s and %d more files cannot be read: %s", paths[0], len(paths) - 1, error)
            half = len(paths) // 2
            left += [part for part in (paths[half:], paths[:half]) if half]
    return seen


def _kept(known: pa.Table | None, files: DataFiles, columns: Sequence[TrackedColumn]) -> dict[ColumnPath, pa.Array]:
    """Returns, for each column and file, whether the known statistics are kept."""
    nothing = pa.repeat(False, len(files))
    kept = {each.path: nothing for each in columns}
    if known is not None:
        names = column_paths(known.schema)
        rows = pc.index_in(contiguous(files["path"]), value_set=contiguous(known.column("path")))
        for each in columns:
            if each.path in names:
                stats = cast_stats(contiguous(known.column(names[each.path])), each.type)
                kept[each.path] = pc.fill_null(complete_cells(stats).take(rows), False)
    return kept


def _overlaid(
    fresh: pa.Table,
    known: pa.Table | None,
    columns: Sequence[TrackedColumn],
    keep: Mapping[ColumnPath, pa.Array],
    examined: pa.Array,
) -> pa.Table:
    paths = contiguous(fresh.column("path"))
    structs = [contiguous(fresh.column(f"c{number}")) for number in range(len(columns))]
    if known is not None:
        names = column_paths(known.schema)
        rows = pc.index_in(paths, value_set=contiguous(known.column("path")))
        for number, each in enumerate(columns):
            if each.path in names:
                stats = cast_stats(contiguous(known.column(names[each.path])), each.type).take(rows)
                structs[number] = pc.if_else(keep[each.path], stats, structs[number])
    return column_stats_table(paths, [each.path for each in columns], list(map(cut_bounds, structs)), examined)
