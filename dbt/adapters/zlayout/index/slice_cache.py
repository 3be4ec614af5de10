"""Opened index slices, kept across the versions and sessions of a process: an append leaves most slices as they are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from threading import Lock
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from dbt.adapters.zlayout.index.bloom.filter_slices import FilterSlice
from dbt.adapters.zlayout.index.lookup.lookup_slices import LookupSlice
from dbt.adapters.zlayout.index.slices import open_slice, read_columns, verified
from dbt.adapters.zlayout.index.statistics.column_stats import column_paths
from dbt.adapters.zlayout.store import Store, StoredFile

_MOST_BYTES = 256 << 20
# Without a call of Python for each slice: there may be ten thousand.
_SLICE, _SIZE_BYTES = itemgetter(1), attrgetter("size_bytes")


class SliceStore(Protocol):
    """Reads slices."""

    def read(self, path: str) -> bytes:
        """Returns the content of a file, by its path relative to the table."""
        ...


class OpenSlice:
    """One slice in memory; columns are decoded on first use. Threads may share it.

    Attributes:
        reader: The open file.
        paths: The name of each column's statistics, by the column.
        row_count: Number of rows.
        size_bytes: Memory that it takes: the open file and the decoded columns.
    """

    def __init__(self, content: bytes) -> None:
        self.reader = open_slice(content)
        self.paths = column_paths(self.reader.schema)
        self.row_count: int = self.reader.row_count
        self.size_bytes = self.reader.open_bytes
        self._decoded: dict[str, pa.Array] = {}
        self._lock = Lock()

    def column(self, name: str) -> pa.Array:
        """Returns a column.

        Raises:
            CorruptError: The column is missing or cannot be decoded.
        """
        with self._lock:
            if name not in self._decoded:
                decoded = read_columns(self.reader, [name]).column(0).combine_chunks()
                self._decoded[name] = decoded
                self.size_bytes += decoded.nbytes
            return self._decoded[name]


def read_slice(store: SliceStore, path: str) -> OpenSlice:
    """Reads and checks a slice.

    Raises:
        CorruptError: It is damaged.
        StoreError: It cannot be read.
    """
    return OpenSlice(verified(path, store.read(path)))


class Sized(Protocol):
    """An opened slice."""

    @property
    def size_bytes(self) -> int:
        """Memory that it takes."""
        ...


Opened = TypeVar("Opened", bound=Sized)


@dataclass
class SliceCache(Generic[Opened]):
    """Opened slices of any table, the least recently used of which go first.

    A slice is read again if its file has changed since, so that damage shows in the next scan.

    Attributes:
        opens: Reads and checks a slice, by its path in a store.
        most_bytes: Memory that the slices may take, decoded columns included. One slice may be larger.
    """

    opens: Callable[[Store, str], Opened]
    most_bytes: int = _MOST_BYTES
    _found: OrderedDict[tuple[str, str], tuple[StoredFile, Opened]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def read(self, store: Store, path: str) -> Opened:
        """Returns a slice, from memory if its file is still the same.

        Raises:
            CorruptError: It is damaged.
            StoreError: It cannot be read.
        """
        key, now = (store.root_uri, path), store.stat(path)
        with self._lock:
            known = self._found.get(key)
        if known is None or known[0] != now:
            known = (now, self.opens(store, path))
        with self._lock:
            self._found[key] = known
            self._found.move_to_end(key)
            # Sizes are summed anew each time, because slices grow outside of this cache while columns are decoded.
            taken = sum(map(_SIZE_BYTES, map(_SLICE, self._found.values())))
            while taken > self.most_bytes and len(self._found) > 1:
                _, (_, oldest) = self._found.popitem(last=False)
                taken -= oldest.size_bytes
        return known[1]


SHARED = SliceCache(read_slice)
SHARED_FILTERS = SliceCache(FilterSlice)
SHARED_LOOKUPS = SliceCache(LookupSlice)
