"""Index gaps: files and columns that an index should describe but does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.column_slices import SliceStore
from dbt.adapters.zlayout.index.statistics.column_stats import EXAMINED, cast_stats, column_paths
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.index.table_index import TableIndex
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot


@dataclass(frozen=True)
class Gaps:
    """What is missing in an index.

    Attributes:
        paths: Files without a row, or with a tracked column that was never examined.
        known: Everything that the index has about the files.
        damaged: Whether slices are missing, unreadable, or inconsistent with the files.
    """

    paths: pa.Array
    known: pa.Table
    damaged: bool

    @property
    def is_none(self) -> bool:
        """Whether nothing is missing."""
        return not self.damaged and not len(self.paths)


def gaps_of(store: SliceStore, snapshot: Snapshot, tracked: Sequence[TrackedColumn]) -> Gaps:
    """Checks the whole index of a version.

    Args:
        store: The table's folder.
        snapshot: The version.
        tracked: The columns that every file should have statistics of.
    """
    files = snapshot.files
    paths = contiguous(files["path"])
    index = TableIndex(store, snapshot.index, partition_types={name: pa.string() for name in snapshot.partition_by})
    index.check()
    known = index.stored(files)
    rows = pc.index_in(paths, value_set=contiguous(known.column("path")))
    lacks = pc.is_null(rows)
    names = column_paths(known.schema)
    examined = pc.fill_null(contiguous(known.column(EXAMINED)).take(rows), False)
    for column in tracked:
        if column.path not in names:
            lacks = pa.repeat(True, len(files))
            break
        stats = cast_stats(contiguous(known.column(names[column.path])), column.type)
        never = pc.is_null(stats.field("value_count").take(rows))
        lacks = pc.or_(lacks, pc.or_(never, pc.and_not(pc.invert(examined), _complete_at(stats, rows))))
    describes = index.describes_partitions(files)
    return Gaps(paths.filter(lacks), known, damaged=bool(index.problems) or not describes)


def complete_cells(stats: pa.StructArray) -> pa.Array:
    """Returns which rows are complete: counts are known, and so are bounds if there is a value."""
    counts = [stats.field(name) for name in ("null_count", "nan_count", "value_count")]
    bounded = pc.and_(pc.is_valid(stats.field("min")), pc.is_valid(stats.field("max")))
    without_values = pc.equal(pc.add(counts[0], counts[1]), counts[2])
    counted = pc.and_(pc.and_(*(pc.is_valid(each) for each in counts[:2])), pc.is_valid(counts[2]))
    return pc.and_(counted, pc.or_(bounded, pc.fill_null(without_values, False)))


def news_in(column_stats: pa.Table, known: pa.Table) -> pa.Array:
    """Returns which rows of statistics differ from the index.

    Args:
        column_stats: One row per file.
        known: What the index has about these and other files.
    """
    rows = pc.index_in(contiguous(column_stats.column("path")), value_set=contiguous(known.column("path")))
    names, known_names = column_paths(column_stats.schema), column_paths(known.schema)
    differs = pc.or_(pc.is_null(rows), _unlike(column_stats.column(EXAMINED), known.column(EXAMINED), rows))
    for path, name in names.items():
        if path not in known_names:
            return pa.repeat(True, column_stats.num_rows)
        now = contiguous(column_stats.column(name))
        then = cast_stats(contiguous(known.column(known_names[path])), now.type.field("min").type)
        for part in range(now.type.num_fields):
            differs = pc.or_(differs, _unlike(now.field(part), then.field(part), rows))
    return differs


def _unlike(now: pa.Array, then: pa.Array, rows: pa.Array) -> pa.Array:
    now, then = contiguous(now), contiguous(then).take(rows)
    both_null = pc.and_(pc.is_null(now), pc.is_null(then))
    return pc.invert(pc.or_(both_null, pc.fill_null(pc.equal(now, then), False)))


def _complete_at(stats: pa.StructArray, rows: pa.Array) -> pa.Array:
    return pc.fill_null(complete_cells(stats).take(rows), False)
