"""Collects the distinct values of files in tasks, to build Bloom filters and lookup entries or to check existing ones.

Arrow or Spark reads a file, and passes on its values or their hashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.index.bloom.file_filters import FilterBuilder, filter_table
from dbt.adapters.zlayout.index.bloom.filter_slices import BLOOM_FILTERS, FilterSlice
from dbt.adapters.zlayout.index.bloom.hashing import Hashes
from dbt.adapters.zlayout.index.bloom.table_filters import FilesFilters, TableFilters
from dbt.adapters.zlayout.index.lookup.lookup_key import HashCollector, LookupKey, RunPiece, run_bytes, with_null
from dbt.adapters.zlayout.index.lookup.lookup_slices import LOOKUPS, LookupSlice
from dbt.adapters.zlayout.index.lookup.table_lookups import FilesLookups, TableLookups
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.files.file_report import FilterPiece, cells_of, filter_piece, piece_in, piece_of
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

PIECES_SCHEMA = "filters binary, staged string, hashes binary, staged_hashes string"
_PIECES = {"filters": pa.binary(), "staged": pa.string(), "hashes": pa.binary(), "staged_hashes": pa.string()}
LACKING_SCHEMA = "path string, kind string, `column` long, missing long"
LACKING = {"path": pa.string(), "kind": pa.string(), "column": pa.int64(), "missing": pa.int64()}
# A check of one file looks up at most this many of its hashes, evenly spread, so that it does not read the whole index.
_MOST_CHECKED = 100_000


@dataclass(frozen=True)
class Wanted:
    """The optional parts of the index that files should have.

    Attributes:
        filtered: Columns with Bloom filters.
        looked_up: Lookup indexes.
    """

    filtered: tuple[TrackedColumn, ...] = ()
    looked_up: tuple[LookupKey, ...] = ()

    @property
    def columns(self) -> Sequence[TrackedColumn]:
        """Every column of any of them, once."""
        found = {each.path: each for each in self.filtered}
        return list((found | {each.path: each for key in self.looked_up for each in key.columns}).values())


@dataclass(frozen=True)
class Pieces:
    """What tasks report about the values of files.

    Attributes:
        filters: Bloom filters.
        hashes: Hashes for lookup indexes.
    """

    filters: tuple[FilterPiece, ...] = ()
    hashes: tuple[RunPiece, ...] = ()

    @classmethod
    def of_rows(cls, rows: Sequence[Any]) -> Pieces:
        """Returns what collected rows of `PIECES_SCHEMA` hold."""
        filters = [piece_in(row.filters, row.staged) for row in rows]
        hashes = [piece_in(row.hashes, row.staged_hashes) for row in rows]
        return cls(
            tuple(each for each in filters if each is not None), tuple(each for each in hashes if each is not None)
        )

    @classmethod
    def together(cls, parts: Sequence[Pieces]) -> Pieces:
        """Returns what all the parts hold."""
        return cls(
            tuple(each for part in parts for each in part.filters),
            tuple(each for part in parts for each in part.hashes),
        )


@dataclass(frozen=True)
class FileValues:
    """The distinct values of a file. Columns whose values are unknown are left out.

    Attributes:
        filters: By column.
        hashes: By lookup index.
    """

    filters: Mapping[ColumnPath, FilterBuilder]
    hashes: Mapping[LookupKey, HashCollector]

    @classmethod
    def of_columns(cls, wanted: Wanted, known: Sequence[TrackedColumn]) -> FileValues:
        """Returns an empty collector for each filter and lookup index whose columns are all among the known ones."""
        paths = {each.path for each in known}
        return cls(
            {each.path: FilterBuilder(each.type) for each in wanted.filtered if each.path in paths},
            {key: HashCollector(key) for key in wanted.looked_up if paths.issuperset(key.paths)},
        )

    def add(self, rows: Mapping[ColumnPath, pa.Array | pa.ChunkedArray]) -> None:
        """Adds the values of rows, by column."""
        for column, builder in self.filters.items():
            builder.add(rows[column])
        for key, collector in self.hashes.items():
            collector.add([rows[column] for column in key.paths])

    def add_hashes(self, column: TrackedColumn, hashes: Hashes | None, *, with_nulls: bool) -> None:
        """Adds values of one column as their distinct hashes, sorted; None if they have none.

        Args:
            column: The column, which is alone in its lookup index.
            hashes: The hashes of the values that are not null.
            with_nulls: Whether some values are null.
        """
        if column.path in self.filters:
            self.filters[column.path].add_hashes(hashes)
        if (collector := self.hashes.get(LookupKey((column,)))) is not None:
            collector.add_hashes(with_null(hashes) if with_nulls and hashes is not None else hashes)

    def pieces(self, store: Store, instant: str, path: str, wanted: Wanted) -> pa.RecordBatch:
        """Returns what a task reports of a file, as a batch of `PIECES_SCHEMA`."""
        filters: FilterPiece | None = None
        hashes: RunPiece | None = None
        if wanted.filtered:
            filters = filter_piece(store, instant, self._filter_table(path, wanted.filtered))
        if wanted.looked_up:
            runs = {key: self.hashes[key].hashes() if key in self.hashes else None for key in wanted.looked_up}
            hashes = piece_of(store, instant, run_bytes(path, runs), "hashes.runs")
        cells = (*cells_of(filters), *cells_of(hashes))
        arrays = [pa.array([cell], kind) for cell, kind in zip(cells, _PIECES.values(), strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=list(_PIECES))

    def _filter_table(self, path: str, columns: Sequence[TrackedColumn]) -> pa.Table:
        found = {
            each.path: self.filters[each.path].content() if each.path in self.filters else None for each in columns
        }
        return filter_table([path], columns, {column: [content] for column, content in found.items()})


@dataclass(frozen=True)
class IndexedValues:
    """The Bloom filters and lookup entries of files, for a check against their values."""

    filters: FilesFilters
    lookups: FilesLookups

    def lacking(self, path: str, position: int, values: FileValues, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """Yields the filters and entries that lack values of a file, as batches of `LACKING_SCHEMA`.

        Args:
            path: The file.
            position: Its position among the files.
            values: Its values.
            wanted: The filters and entries to check. The column ``column`` of a batch is a position among those of one
                kind.
        """
        for kind, number, missing in self._missing(position, values, wanted):
            cells = {"path": path, "kind": kind, "column": number, "missing": missing}
            arrays = [pa.array([cells[name]], of) for name, of in LACKING.items()]
            yield pa.RecordBatch.from_arrays(arrays, names=list(LACKING))

    def _missing(self, position: int, values: FileValues, wanted: Wanted) -> Iterator[tuple[str, int, int]]:
        for number, column in enumerate(wanted.filtered):
            content = self.filters.content(column.path, str(column.type), position)
            builder = values.filters.get(column.path)
            if content is not None and builder is not None and (missing := builder.missing_in(content)):
                yield "bloom", number, missing
        for number, key in enumerate(wanted.looked_up):
            hashes = values.hashes[key].hashes() if key in values.hashes else None
            if hashes is None:
                continue
            spread = np.linspace(0, len(hashes) - 1, min(len(hashes), _MOST_CHECKED)).astype(np.int64)
            if missing := self.lookups.missing(key, hashes[spread], position):
                yield "lookup", number, missing


@dataclass(frozen=True)
class ValueTables:
    """The Bloom filters and lookup indexes of a table. Each slice is opened once, however many files are asked for."""

    filters: TableFilters
    lookups: TableLookups

    @classmethod
    def of(cls, store: Store, slices: Mapping[str, tuple[str, ...]]) -> ValueTables:
        """Returns the tables of slices, whose paths are from `value_slices`."""
        return cls(
            TableFilters(slices[BLOOM_FILTERS], cache(partial(FilterSlice, store)), lambda _: None),
            TableLookups(slices[LOOKUPS], partial(LookupSlice, store), lambda _: None),
        )

    def of_files(self, files: DataFiles) -> IndexedValues:
        """Returns the filters and lookup entries of some files."""
        return IndexedValues(self.filters.of(files), self.lookups.of(files))


def value_slices(index: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Returns the slices of an index that hold Bloom filters and lookup entries, by index partition."""
    return {name: tuple(index.get(name, ())) for name in (BLOOM_FILTERS, LOOKUPS)}
