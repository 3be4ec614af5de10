"""The Bloom filters of a commit: slices for its files, and now and then one slice in place of many small ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.errors import CorruptError, FileMissingError, ZlayoutError
from dbt.adapters.zlayout.index.bloom.filter_slices import FilterSlice, rows_of, slice_path, write_slices
from dbt.adapters.zlayout.index.slice_cache import SHARED_FILTERS
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.files.file_report import FilterPiece, filters_of
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

# A slice of this size is written again only if most of it is of files that the table no longer has.
_LARGE_BYTES = 16 << 20
MOST_SMALL = 10


@dataclass(frozen=True)
class NewFilters:
    """Bloom filters that a transaction has made.

    Attributes:
        pieces: The filters, as tasks report them.
        files: Existing files that they are about; None for the files that the commit adds.
        drops: Columns that have no filters any more.
    """

    pieces: tuple[FilterPiece, ...] = ()
    files: DataFiles | None = None
    drops: frozenset[ColumnPath] = field(default_factory=frozenset)

    def put(self, store: Store, instant: str, adds: DataFiles) -> tuple[str, ...]:
        """Writes slices and returns their paths.

        Args:
            store: The table's folder.
            instant: Instant of the commit.
            adds: Files that the commit adds.
        """
        files = adds if self.files is None else adds.plus(self.files)
        return _put(store, instant, files, (filters_of(store, piece) for piece in self.pieces))

    def forget_staged(self, store: Store) -> None:
        """Deletes the staged files that slices have taken the place of."""
        for piece in self.pieces:
            if isinstance(piece, str):
                store.delete_tree(piece.rpartition("/")[0])


NO_FILTERS = NewFilters()


def to_fold(size_bytes: Mapping[str, int], sparse: Collection[str]) -> Collection[str]:
    """Returns which slices are worth writing as one: the small ones, if they are many.

    A slice that is larger than all smaller ones together stays as it is, so that a few small ones never make a commit
    write a large one again. A byte is then written some ten times until it is in a slice that stays.

    Args:
        size_bytes: The size of each slice, by path.
        sparse: Slices of which less than half is of files that the table still has. Their size is no reason to stay.
    """
    large = {path for path, size in size_bytes.items() if size >= _LARGE_BYTES and path not in sparse}
    by_size = sorted((path for path in size_bytes if path not in large), key=lambda path: (size_bytes[path], path))
    rest = sum(size_bytes[path] for path in by_size)
    while by_size and by_size[-1] not in sparse and 2 * size_bytes[by_size[-1]] > rest:
        rest -= size_bytes[by_size.pop()]
    return by_size if len(by_size) >= MOST_SMALL else ()


def slices_after(
    store: Store,
    instant: str,
    before: Sequence[str],
    new: tuple[str, ...],
    live: DataFiles,
    *,
    removes: bool = False,
    drops: frozenset[ColumnPath] = frozenset(),
) -> tuple[str, ...]:
    """Returns the live slices after a commit, oldest first. Many small ones become one.

    Args:
        store: The table's folder.
        instant: Instant of the commit.
        before: The live slices before it.
        new: The slices of the commit.
        live: Files that stay.
        removes: Whether the commit removes files; slices without any other are then left out.
        drops: Columns that have no filters any more.
    """
    if not drops and not removes and len(before) < MOST_SMALL:
        return (*before, *new)
    kept: list[str] = []
    opened: dict[str, FilterSlice] = {}
    sparse: set[str] = set()
    for path in before:
        try:
            part = SHARED_FILTERS.read(store, path)
        except (CorruptError, FileMissingError):
            continue  # nothing can be read of it, so no reader misses it
        except (ZlayoutError, OSError):
            kept.append(path)
            continue
        rows = np.count_nonzero(rows_of(part, live) >= 0)
        if rows:
            opened[path] = part
        if 2 * rows < len(part.rows):
            sparse.add(path)
    folded = [path for path, part in opened.items() if drops & part.types.keys()]
    folded = folded or list(to_fold({path: part.data_bytes for path, part in opened.items()}, sparse))
    again = [part for path, part in opened.items() if path in folded]
    kept = [path for path in before if path in kept or (path in opened and path not in folded)]
    return (*kept, *_put(store, instant, live, _tables(again, live, drops)), *new)


def _tables(slices: Sequence[FilterSlice], live: DataFiles, drops: frozenset[ColumnPath]) -> Iterator[pa.Table]:
    """Yields the filters of live files, the columns of one slice after those of another; newer ones come last."""
    for types in dict.fromkeys(tuple(each.types.items()) for each in slices):
        for part in slices:
            if tuple(part.types.items()) == types and not drops.issuperset(part.types):
                rows = rows_of(part, live)
                yield from part.tables(np.sort(rows[rows >= 0]).tolist(), drops)


def _put(store: Store, instant: str, files: DataFiles, tables: Iterable[pa.Table]) -> tuple[str, ...]:
    paths = []
    for content in write_slices(files, tables):
        paths.append(slice_path(instant, content))
        store.put(paths[-1], content)
    return tuple(dict.fromkeys(paths))
