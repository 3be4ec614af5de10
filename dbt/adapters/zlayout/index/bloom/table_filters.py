"""The Bloom filters of a table at one version. Whatever is missing or damaged keeps files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import ref

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.errors import ZlayoutError
from dbt.adapters.zlayout.index.bloom.filter_slices import FilterSlice, Positions, rows_of
from dbt.adapters.zlayout.index.bloom.hashing import Hashes, hashes_of
from dbt.adapters.zlayout.predicate.expr import Column, ColumnPath
from dbt.adapters.zlayout.pruning.statistics.column_bounds import Together
from dbt.adapters.zlayout.pruning.statistics.validation import widened
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

# With this many absent values, nearly every file has a false positive.
_MOST_VALUES = 300
_MOST_READ_BYTES = 256 << 20
_NO_ROW = -1
_THREADS = 8

Given = TypeVar("Given")
Found = TypeVar("Found")


class TableFilters:
    """The slices of a snapshot. It does not keep slices that the cache has let go of.

    Args:
        paths: Paths of the slices, oldest first.
        read: Opens a slice.
        note: Receives a sentence for each problem with a slice.
    """

    def __init__(self, paths: Sequence[str], read: Callable[[str], FilterSlice], note: Callable[[str], None]) -> None:
        self.note = note
        self._read = read
        self._paths = tuple(reversed(paths))
        self._opened: dict[str, ref[FilterSlice] | None] = {}

    def slices(self, paths: Sequence[str] | None = None) -> list[tuple[str, FilterSlice]]:
        """Returns the readable slices, or those of them that have these paths, newest first, each with its path."""
        asked = self._paths if paths is None else paths
        return [(path, part) for path, part in zip(asked, _each(self._open, asked), strict=True) if part is not None]

    @property
    def columns(self) -> frozenset[ColumnPath]:
        """Columns that some file has a filter for."""
        return frozenset(column for _, each in self.slices() for column in each.types)

    def of(self, files: DataFiles) -> FilesFilters:
        """Returns the filters of files of the snapshot."""
        return FilesFilters(self, files)

    def _open(self, path: str) -> FilterSlice | None:
        if path in self._opened:
            known = self._opened[path]
            part = None if known is None else known()
            if known is None or part is not None:
                return part
        try:
            part = self._read(path)
        except (ZlayoutError, OSError) as error:
            self.note(str(error))
            self._opened[path] = None
            return None
        self._opened[path] = ref(part)
        return part


@dataclass
class FilesFilters:
    """The filters of some files, in their order.

    Attributes:
        whole: The filters of the table.
        files: The files. A file whose size, time or row count differs from the index is unknown.
        positions: The files to look at; the others are kept unseen. None for all.
    """

    label = "its Bloom filter"
    lack = "has no Bloom filter"
    knows_null = False

    whole: TableFilters
    files: DataFiles
    positions: Positions | None = None
    _aligned: dict[tuple[ColumnPath, str], dict[str, Positions]] = field(default_factory=dict)
    _read_bytes: int = 0

    def among(self, positions: Positions | None) -> FilesFilters:
        """Returns the same filters for one scan, which needs to know about some of the files, or None for all."""
        return FilesFilters(self.whole, self.files, positions, self._aligned)

    def may_hold(self, column: Column, values: pa.Array | pa.Scalar) -> Flags | None:
        """Returns for each file whether it may hold one of the values.

        Args:
            column: The column, of its type in the table.
            values: The values; null is never found.

        Returns:
            bool, one per file. None if no filter knows: there is none for a column of this type, or there are too
            many values.
        """
        listed = pa.repeat(values, 1) if isinstance(values, pa.Scalar) else values
        typed = widened(listed, column.type)
        if typed is None or len(typed) > 10 * _MOST_VALUES:
            return None
        try:
            hashes = hashes_of(typed, column.type)
        except pa.ArrowException:
            return None
        parts = self._parts(column.path, str(column.type))
        if not parts or not 0 < len(hashes) <= _MOST_VALUES:
            return None
        kept = np.ones(len(self.files), dtype=bool)

        def look_up(part: FilterSlice, rows: Positions, asked: Positions) -> None:
            try:
                kept[asked], damaged = part.may_hold(column.path, rows[asked], hashes)
            except (ZlayoutError, OSError) as error:
                self.whole.note(str(error))
                return
            if damaged:
                self.whole.note(f"{damaged} Bloom filters of {'.'.join(column.path)} are damaged; their files are read")

        # A file has a row in one slice at most, so the lookups do not meet.
        _each(lambda lookup: look_up(*lookup), self._affordable(column.path, parts, hashes))
        return kept

    def may_hold_together(self, _: Mapping[Column, pa.Array | pa.Scalar]) -> Sequence[Together]:
        """Returns nothing: a filter is about one column."""
        return []

    def _affordable(
        self, path: ColumnPath, parts: Sequence[tuple[FilterSlice, Positions]], hashes: Hashes
    ) -> list[tuple[FilterSlice, Positions, Positions]]:
        """Returns the slices to look into, with the row of each file and the positions of the files to ask for."""
        lookups: list[tuple[FilterSlice, Positions, Positions]] = []
        for part, rows in parts:
            asked = np.flatnonzero(rows != _NO_ROW) if self.positions is None else self.positions
            asked = asked[rows[asked] != _NO_ROW]
            self._read_bytes += part.read_bytes(path, rows[asked], hashes)
            if self._read_bytes > _MOST_READ_BYTES:
                self.whole.note(f"a lookup in Bloom filters would read more than {_MOST_READ_BYTES >> 20} MB")
                break
            lookups.append((part, rows, asked))
        return lookups

    def lacks(self, column: Column) -> Flags | None:
        """Returns which files have no filter for a column of its type; None if no file has one."""
        known, _ = self.state(column.path, str(column.type))
        return ~known if known.any() else None

    def content(self, path: ColumnPath, column_type: str, position: int) -> bytes | None:
        """Returns the filter of the file at a position; None if it has none for a column of this type.

        Raises:
            StoreError: It cannot be read.
        """
        for part, rows in self._parts(path, column_type):
            if rows[position] != _NO_ROW:
                return part.content(path, int(rows[position]))
        return None

    def state(self, path: ColumnPath, column_type: str) -> tuple[Flags, Flags]:
        """Returns which files have a filter for a column of this type, and which have none since it is too large."""
        known, large = (np.zeros(len(self.files), dtype=bool) for _ in range(2))
        for part, rows in self._parts(path, column_type):
            found = np.flatnonzero(rows != _NO_ROW)
            places = part.places(path)
            known[found] = places.has_filter[rows[found]]
            large[found] = places.is_refused[rows[found]]
        return known, large

    def _parts(self, path: ColumnPath, column_type: str) -> list[tuple[FilterSlice, Positions]]:
        """Returns the slices with a column of this type, and the row of each file in them; -1 for none.

        A file has a row in at most one of them.
        """
        key = path, column_type
        if key not in self._aligned:
            aligned: dict[str, Positions] = {}
            taken = np.zeros(len(self.files), dtype=bool)
            for slice_path, part in self.whole.slices():
                if part.types.get(path) != column_type:
                    continue
                rows = rows_of(part, self.files)
                # A row without this filter says nothing, and an older slice may have one.
                there = np.flatnonzero(rows != _NO_ROW)
                answered = part.places(path).is_listed[rows[there]]
                rows[there[~answered]] = _NO_ROW
                rows[taken] = _NO_ROW
                taken |= rows != _NO_ROW
                aligned[slice_path] = rows
            self._aligned[key] = aligned
        found = self._aligned[key]
        return [(part, found[slice_path]) for slice_path, part in self.whole.slices(list(found))]


def _each(access: Callable[[Given], Found], items: Sequence[Given]) -> list[Found]:
    """Returns what an access to each slice returns. A large table has hundreds, and a cloud takes its time for each."""
    if len(items) < 2:
        return list(map(access, items))
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(access, items))
