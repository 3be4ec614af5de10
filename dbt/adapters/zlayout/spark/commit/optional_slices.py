"""The optional parts of the index in a commit: Bloom filters and lookup indexes.

For each part, a commit writes slices for its files and, now and then, one slice in place of many small ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.errors import CorruptError, FileMissingError, StoreError, ZlayoutError
from dbt.adapters.zlayout.index.bloom import filter_slices
from dbt.adapters.zlayout.index.bloom.filter_slices import BLOOM_FILTERS, FilterSlice, rows_in, rows_of, write_slices
from dbt.adapters.zlayout.index.lookup import lookup_slices
from dbt.adapters.zlayout.index.lookup.lookup_key import (
    MOST_BUCKET_BITS,
    HashRun,
    KeyPaths,
    RunPiece,
    key_name,
    runs_of,
)
from dbt.adapters.zlayout.index.lookup.lookup_slices import LOOKUPS, LookupSlice, Pairs, SliceName, slice_bytes
from dbt.adapters.zlayout.index.slice_reading import SHARED_FILTERS, SHARED_LOOKUPS, SliceCache
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.files.distinct_values import Pieces
from dbt.adapters.zlayout.spark.files.file_report import FilterPiece, filters_of
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

if TYPE_CHECKING:
    from dbt.adapters.zlayout.timeline.log.entry import IndexSlices

OPTIONAL_PARTITIONS = (BLOOM_FILTERS, LOOKUPS)
# A slice of this size is written again only if most of it is of files that the table no longer has.
_LARGE_BYTES = 16 << 20
_MOST_SMALL = 10
# More pairs of a lookup index are split into buckets. This bounds what the driver holds and writes at once.
_BUCKET_PAIRS = 4 << 20
_MOST_THREADS = 4
_Slice = TypeVar("_Slice", FilterSlice, LookupSlice)


@dataclass(frozen=True)
class NewFilters:
    """Bloom filters that a transaction has made.

    Attributes:
        pieces: The filters, as tasks report them.
        files: Existing files that they are about; None for the files that the commit adds.
        drops: Columns that no longer have filters.
    """

    pieces: tuple[FilterPiece, ...] = ()
    files: DataFiles | None = None
    drops: frozenset[ColumnPath] = field(default_factory=frozenset)

    def put(self, store: Store, instant: str, adds: DataFiles) -> tuple[str, ...]:
        """Writes slices and returns their paths; the arguments are those of `NewOptional.put`."""
        files = adds if self.files is None else adds.plus(self.files)
        return _put_filters(store, instant, files, (filters_of(store, piece) for piece in self.pieces))


@dataclass(frozen=True)
class NewLookups:
    """Entries for lookup indexes that a transaction has made.

    Attributes:
        pieces: The hashes of files, as tasks report them.
        files: Existing files that they are about; None for the files that the commit adds.
        drops: Columns of indexes that the table no longer has.
    """

    pieces: tuple[RunPiece, ...] = ()
    files: DataFiles | None = None
    drops: frozenset[KeyPaths] = field(default_factory=frozenset)

    def put(self, store: Store, instant: str, adds: DataFiles) -> tuple[str, ...]:
        """Writes slices and returns their paths; the arguments are those of `NewOptional.put`."""
        files = adds if self.files is None else adds.plus(self.files)
        rows = {path: row for row, path in enumerate(files["path"].to_pylist())}
        by_key: dict[tuple[KeyPaths, tuple[str, ...]], list[HashRun]] = {}
        for piece in self.pieces:
            for run in runs_of(store, piece):
                if run.path in rows:
                    by_key.setdefault((run.paths, run.types), []).append(run)
        paths: list[str] = []
        for runs in by_key.values():
            some = files.take(pa.array([rows[run.path] for run in runs], pa.int64()))
            paths += _put_runs(store, instant, some, runs)
        return tuple(paths)


@dataclass(frozen=True)
class NewOptional:
    """What a transaction has made for the optional parts of the index.

    Attributes:
        lookups: Entries for lookup indexes.
    """

    filters: NewFilters = field(default_factory=NewFilters)
    lookups: NewLookups = field(default_factory=NewLookups)

    @classmethod
    def of(cls, pieces: Pieces, files: DataFiles | None = None) -> NewOptional:
        """Returns what tasks report, of existing files or, without any, of those that the commit adds."""
        return cls(NewFilters(pieces.filters, files), NewLookups(pieces.hashes, files))

    def put(self, store: Store, instant: str, adds: DataFiles) -> IndexSlices:
        """Writes slices and returns their paths by index partition; none for a part without any.

        Args:
            instant: Instant of the commit.
            adds: Files that the commit adds.
        """
        filters, lookups = (part.put(store, instant, adds) for part in (self.filters, self.lookups))
        return _without_empty({BLOOM_FILTERS: filters, LOOKUPS: lookups})

    def after(
        self, store: Store, instant: str, before: IndexSlices, new: IndexSlices, live: DataFiles, *, removes: bool
    ) -> IndexSlices:
        """Returns the live slices after a commit, by index partition.

        Args:
            instant: Instant of the commit.
            before: The live slices before it.
            new: The slices of the commit, from `put`.
            live: Files that stay.
            removes: Whether the commit removes files. Slices without any other are then left out.
        """
        filters, lookups = (before.get(partition, ()) for partition in OPTIONAL_PARTITIONS)
        filters = filters_after(store, instant, filters, live, removes=removes, drops=self.filters.drops)
        lookups = lookups_after(store, instant, lookups, live, removes=removes, drops=self.lookups.drops)
        kept = {BLOOM_FILTERS: filters, LOOKUPS: lookups}
        return _without_empty({partition: (*paths, *new.get(partition, ())) for partition, paths in kept.items()})

    def forget_staged(self, store: Store) -> None:
        """Deletes the staged files whose content is now in slices. What fails is left to a clean of orphans."""
        for piece in (*self.filters.pieces, *self.lookups.pieces):
            if isinstance(piece, str):
                with suppress(StoreError):
                    store.delete_tree(piece.rpartition("/")[0])


NOTHING_OPTIONAL = NewOptional()


def _without_empty(slices: IndexSlices) -> IndexSlices:
    return {partition: paths for partition, paths in slices.items() if paths}


def filters_after(
    store: Store,
    instant: str,
    before: Sequence[str],
    live: DataFiles,
    *,
    removes: bool = False,
    drops: frozenset[ColumnPath] = frozenset(),
) -> tuple[str, ...]:
    """Returns those live slices after a commit that are not its own, oldest first. Many small ones become one.

    The arguments are those of `NewOptional.after`; ``drops`` are columns that no longer have filters.
    """
    if not before or (not drops and not removes and len(before) < _MOST_SMALL):
        return tuple(before)

    def shares(part: FilterSlice) -> tuple[bool, bool]:
        rows = np.count_nonzero(rows_of(part, live) >= 0)
        return bool(rows), bool(2 * rows >= len(part.rows))

    unread, opened, sparse = _opened(SHARED_FILTERS, store, before, shares)
    folded = [path for path, part in opened.items() if drops & part.types.keys()]
    # Filters of dropped columns must not stay. The others may: a store that fails at the moment costs no filters.
    may_fail = () if folded else (StoreError, OSError)
    folded = folded or _worth_folding({path: part.data_bytes for path, part in opened.items()}, sparse)
    with suppress(*may_fail):
        again = [part for path, part in opened.items() if path in folded]
        one = _put_filters(store, instant, live, _tables(again, live, drops))
        return (*(path for path in before if path in unread or (path in opened and path not in folded)), *one)
    return tuple(path for path in before if path in unread or path in opened)


def lookups_after(
    store: Store,
    instant: str,
    before: Sequence[str],
    live: DataFiles,
    *,
    removes: bool = False,
    drops: frozenset[KeyPaths] = frozenset(),
) -> tuple[str, ...]:
    """Returns those live slices after a commit that are not its own. Many small ones of an index and bucket become one.

    The arguments are those of `NewOptional.after`; ``drops`` are columns of indexes that the table no longer has.
    """
    gone = set(map(key_name, drops))
    groups: dict[tuple[str, int, int], list[str]] = {}
    for path in before:
        name = SliceName.of(path)
        # No reader misses a slice with another name, because nobody can read it.
        if name is not None and name.key not in gone:
            groups.setdefault((name.key, name.bits, name.bucket), []).append(path)
    kept: list[str] = []
    for paths in groups.values():
        kept += paths if not removes and len(paths) < _MOST_SMALL else _folded(store, instant, paths, live)
    return tuple(kept)


def _folded(store: Store, instant: str, paths: Sequence[str], live: DataFiles) -> list[str]:
    """Returns the slices of one index and bucket, those without live files left out, and many small ones as one."""

    def shares(part: LookupSlice) -> tuple[bool, bool]:
        rows, pairs = rows_in(part.rows, live), np.maximum(part.pairs_of_file, 0)
        return bool((rows >= 0).any()), bool(2 * pairs[rows[rows >= 0]].sum() >= pairs.sum())

    unread, opened, sparse = _opened(SHARED_LOOKUPS, store, paths, shares)
    folded = _worth_folding({path: part.data_bytes for path, part in opened.items()}, sparse)
    if folded:
        # A store that fails at the moment costs no entries: the slices stay as they are.
        with suppress(StoreError, OSError):
            one = _as_one(store, instant, [part for path, part in opened.items() if path in folded], live)
            return [path for path in paths if path in unread or (path in opened and path not in folded)] + one
    return [path for path in paths if path in unread or path in opened]


def _opened(
    cache: SliceCache[_Slice], store: Store, paths: Sequence[str], shares: Callable[[_Slice], tuple[bool, bool]]
) -> tuple[set[str], dict[str, _Slice], set[str]]:
    """Opens slices.

    Args:
        cache: The cache that opens the slices.
        paths: The slices.
        shares: Tells whether any part of a slice is of live files, and whether at least half of it is.

    Returns:
        The slices that cannot be read at the moment; those with live files; those of which less than half is of live
        files.
    """
    unread: set[str] = set()
    opened: dict[str, _Slice] = {}
    sparse: set[str] = set()
    for path in paths:
        try:
            part = cache.read(store, path)
        except (CorruptError, FileMissingError):
            continue  # nothing can be read of it, so no reader misses it
        except (ZlayoutError, OSError):
            unread.add(path)
            continue
        some_live, half_live = shares(part)
        if some_live:
            opened[path] = part
        if not half_live:
            sparse.add(path)
    return unread, opened, sparse


def _worth_folding(size_bytes: Mapping[str, int], sparse: Collection[str]) -> list[str]:
    """Returns which slices are worth writing as one: the small ones, if they are many.

    A slice that is larger than all smaller ones together stays as it is, so that a few small ones never make a commit
    write a large one again. So a byte is rewritten about ten times before it reaches a slice that stays.

    Args:
        size_bytes: The size of each slice, by path.
        sparse: Slices of which less than half is of files that the table still has. Their size is no reason to stay.
    """
    large = {path for path, size in size_bytes.items() if size >= _LARGE_BYTES and path not in sparse}
    by_size = sorted((path for path in size_bytes if path not in large), key=lambda path: (size_bytes[path], path))
    rest = sum(size_bytes[path] for path in by_size)
    while by_size and by_size[-1] not in sparse and 2 * size_bytes[by_size[-1]] > rest:
        rest -= size_bytes[by_size.pop()]
    return by_size if len(by_size) >= _MOST_SMALL else []


def _tables(slices: Sequence[FilterSlice], live: DataFiles, drops: frozenset[ColumnPath]) -> Iterator[pa.Table]:
    """Yields the filters of live files, the columns of one slice after those of another; newer ones come last."""
    for types in dict.fromkeys(tuple(each.types.items()) for each in slices):
        for part in slices:
            if tuple(part.types.items()) == types and not drops.issuperset(part.types):
                rows = rows_of(part, live)
                yield from part.tables(np.sort(rows[rows >= 0]).tolist(), drops)


def _put_filters(store: Store, instant: str, files: DataFiles, tables: Iterable[pa.Table]) -> tuple[str, ...]:
    paths = []
    for content in write_slices(files, tables):
        paths.append(filter_slices.slice_path(instant, content))
        store.put(paths[-1], content)
    return tuple(dict.fromkeys(paths))


def _put_runs(store: Store, instant: str, files: DataFiles, runs: Sequence[HashRun]) -> Sequence[str]:
    """Writes the slices of one lookup index, one for each bucket."""
    bits = (max(0, sum(run.count for run in runs) - 1) // _BUCKET_PAIRS).bit_length()
    bits = min(bits, MOST_BUCKET_BITS)
    is_known = np.array([run.is_known for run in runs], dtype=bool)

    def put(bucket: int) -> str:
        pairs = Pairs.of_runs([run.bucket(bucket, bits) for run in runs], is_known)
        return _put_pairs(store, instant, runs[0].paths, runs[0].types, bits, bucket, files, pairs)

    if not bits:
        return [put(0)]
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
        return list(pool.map(put, range(1 << bits)))


def _put_pairs(
    store: Store,
    instant: str,
    paths: KeyPaths,
    types: Sequence[str],
    bits: int,
    bucket: int,
    files: DataFiles,
    pairs: Pairs,
) -> str:
    content = slice_bytes(paths, types, bits, bucket, files, pairs)
    path = lookup_slices.slice_path(instant, paths, bits, bucket, content)
    store.put(path, content)
    return path


def _as_one(store: Store, instant: str, slices: Sequence[LookupSlice], live: DataFiles) -> list[str]:
    """Writes slices of one index and bucket as one slice for each combination of types."""
    written = []
    for types in dict.fromkeys(part.types for part in slices):
        some = [part for part in slices if part.types == types]
        files, merged = _together(some, live)
        written.append(_put_pairs(store, instant, some[0].paths, types, some[0].bits, some[0].bucket, files, merged))
    return written


def _together(slices: Sequence[LookupSlice], live: DataFiles) -> tuple[DataFiles, Pairs]:
    """Returns the live files of slices, and their pairs. A file in several slices is taken from the newest."""
    taken, is_known = (np.zeros(len(live), dtype=bool) for _ in range(2))
    hashes, numbers = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for part in reversed(slices):
        rows = rows_in(part.rows, live)
        mine = np.flatnonzero((rows >= 0) & ~taken)
        try:
            pairs = part.pairs()
        except (CorruptError, FileMissingError):
            continue
        if pairs is None:
            continue  # its files are unknown from now on, so queries read them
        taken[mine] = True
        is_known[mine] = pairs.is_known[rows[mine]]
        number = np.full(part.rows.num_rows, -1, np.int64)
        number[rows[mine]] = mine
        stays = number[pairs.files] >= 0
        hashes.append(pairs.hashes[stays])
        numbers.append(number[pairs.files][stays])
    every, positions = np.concatenate(hashes), np.cumsum(taken) - 1
    order = np.argsort(every, kind="stable")
    return live.filter(pa.array(taken)), Pairs(every[order], positions[np.concatenate(numbers)[order]], is_known[taken])
