"""The lookup entries of a commit: slices for its files, and now and then one slice in place of many small ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.errors import CorruptError, FileMissingError, StoreError, ZlayoutError
from dbt.adapters.zlayout.index.bloom.filter_slices import rows_in
from dbt.adapters.zlayout.index.lookup.hash_runs import MOST_BUCKET_BITS, HashRun, RunPiece, runs_of
from dbt.adapters.zlayout.index.lookup.keys import KeyPaths, key_name
from dbt.adapters.zlayout.index.lookup.lookup_slices import LookupSlice, Pairs, SliceName, slice_bytes, slice_path
from dbt.adapters.zlayout.index.slice_cache import SHARED_LOOKUPS
from dbt.adapters.zlayout.spark.commit.filter_commit import MOST_SMALL, to_fold
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

# More pairs are split into buckets, so that the driver holds and writes so many at once and no more.
_BUCKET_PAIRS = 4 << 20
_MOST_THREADS = 4


@dataclass(frozen=True)
class NewLookups:
    """Entries for lookup indexes that a transaction has made.

    Attributes:
        pieces: The hashes of files, as tasks report them.
        files: Existing files that they are about; None for the files that the commit adds.
        drops: Columns of indexes that the table has no more.
    """

    pieces: tuple[RunPiece, ...] = ()
    files: DataFiles | None = None
    drops: frozenset[KeyPaths] = field(default_factory=frozenset)

    def put(self, store: Store, instant: str, adds: DataFiles) -> tuple[str, ...]:
        """Writes slices and returns their paths; the arguments are those of `NewFilters.put`."""
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

    def forget_staged(self, store: Store) -> None:
        """Deletes the staged files that slices have taken the place of."""
        for piece in self.pieces:
            if isinstance(piece, str):
                store.delete_tree(piece.rpartition("/")[0])


NO_LOOKUPS = NewLookups()


def _put_runs(store: Store, instant: str, files: DataFiles, runs: Sequence[HashRun]) -> Sequence[str]:
    """Writes the slices of one index, one for each bucket."""
    bits = (max(0, sum(run.count for run in runs) - 1) // _BUCKET_PAIRS).bit_length()
    bits = min(bits, MOST_BUCKET_BITS)
    is_told = np.array([run.is_told for run in runs], dtype=bool)

    def put(bucket: int) -> str:
        pairs = Pairs.of_runs([run.bucket(bucket, bits) for run in runs], is_told)
        return _put(store, instant, runs[0].paths, runs[0].types, bits, bucket, files, pairs)

    if not bits:
        return [put(0)]
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
        return list(pool.map(put, range(1 << bits)))


def _put(
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
    path = slice_path(instant, paths, bits, bucket, content)
    store.put(path, content)
    return path


def lookups_after(
    store: Store,
    instant: str,
    before: Sequence[str],
    new: tuple[str, ...],
    live: DataFiles,
    *,
    removes: bool = False,
    drops: frozenset[KeyPaths] = frozenset(),
) -> tuple[str, ...]:
    """Returns the live slices after a commit. Of those of one index and bucket, many small ones become one.

    Args:
        store: The table's folder.
        instant: Instant of the commit.
        before: The live slices before it.
        new: The slices of the commit.
        live: Files that stay.
        removes: Whether the commit removes files; slices without any other are then left out.
        drops: Columns of indexes that the table has no more.
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
        kept += paths if not removes and len(paths) < MOST_SMALL else _folded(store, instant, paths, live)
    return (*kept, *new)


def _folded(store: Store, instant: str, paths: Sequence[str], live: DataFiles) -> list[str]:
    """Returns the slices of one index and bucket, those without live files left out, and many small ones as one."""
    kept: list[str] = []
    opened: dict[str, LookupSlice] = {}
    sparse: set[str] = set()
    for path in paths:
        try:
            part = SHARED_LOOKUPS.read(store, path)
        except (CorruptError, FileMissingError):
            continue  # nothing can be read of it, so no reader misses it
        except (ZlayoutError, OSError):
            kept.append(path)
            continue
        rows = rows_in(part.rows, live)
        pairs = np.maximum(part.pairs_of_file, 0)
        if (rows >= 0).any():
            opened[path] = part
        if 2 * pairs[rows[rows >= 0]].sum() < pairs.sum():
            sparse.add(path)
    folded = to_fold({path: part.data_bytes for path, part in opened.items()}, sparse)
    if folded:
        # A store that fails at the moment costs no entries: the slices stay as they are.
        with suppress(StoreError, OSError):
            one = _as_one(store, instant, [part for path, part in opened.items() if path in folded], live)
            return [path for path in paths if path in kept or (path in opened and path not in folded)] + one
    return [path for path in paths if path in kept or path in opened]


def _as_one(store: Store, instant: str, slices: Sequence[LookupSlice], live: DataFiles) -> list[str]:
    """Writes slices of one index and bucket as one slice for each combination of types."""
    written = []
    for types in dict.fromkeys(part.types for part in slices):
        some = [part for part in slices if part.types == types]
        files, merged = _together(some, live)
        written.append(_put(store, instant, some[0].paths, types, some[0].bits, some[0].bucket, files, merged))
    return written


def _together(slices: Sequence[LookupSlice], live: DataFiles) -> tuple[DataFiles, Pairs]:
    """Returns the live files of slices, and their pairs; a file that several of them have is that of the newest."""
    taken, is_told = (np.zeros(len(live), dtype=bool) for _ in range(2))
    hashes, numbers = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for part in reversed(slices):
        rows = rows_in(part.rows, live)
        mine = np.flatnonzero((rows >= 0) & ~taken)
        try:
            pairs = part.pairs()
        except (CorruptError, FileMissingError):
            continue
        if pairs is None:
            continue  # nothing is known of its files any more, so they are read
        taken[mine] = True
        is_told[mine] = pairs.is_told[rows[mine]]
        number = np.full(part.rows.num_rows, -1, np.int64)
        number[rows[mine]] = mine
        stays = number[pairs.files] >= 0
        hashes.append(pairs.hashes[stays])
        numbers.append(number[pairs.files][stays])
    every, positions = np.concatenate(hashes), np.cumsum(taken) - 1
    order = np.argsort(every, kind="stable")
    return live.filter(pa.array(taken)), Pairs(every[order], positions[np.concatenate(numbers)[order]], is_told[taken])
