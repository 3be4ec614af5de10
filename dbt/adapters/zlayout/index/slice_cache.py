"""Opened index slices, kept across the versions and sessions of a process: an append leaves most slices as they are."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from threading import Lock
from typing import Generic, Protocol, TypeVar

from dbt.adapters.zlayout.index.bloom.filter_slices import FilterSlice
from dbt.adapters.zlayout.index.lookup.lookup_slices import LookupSlice
from dbt.adapters.zlayout.index.open_slices import OpenSlice, SliceStore
from dbt.adapters.zlayout.index.ranged_slices import RangedSlice
from dbt.adapters.zlayout.index.whole_slices import WholeSlice, verified
from dbt.adapters.zlayout.store import Store, StoredFile

_MOST_BYTES = 256 << 20
# Without a call of Python for each slice: there may be ten thousand.
_SLICE, _SIZE_BYTES = itemgetter(1), attrgetter("size_bytes")


def read_slice(store: SliceStore, path: str) -> OpenSlice:
    """Opens and checks a slice.

    Raises:
        CorruptError: It is damaged.
        StoreError: It cannot be read.
    """
    return WholeSlice(verified(path, store.read(path))) if path.endswith(".parquet") else RangedSlice(store, path)


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
        most_bytes: Memory that the slices may take. One slice may be larger.
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
            taken = sum(map(_SIZE_BYTES, map(_SLICE, self._found.values())))
            while taken > self.most_bytes and len(self._found) > 1:
                _, (_, oldest) = self._found.popitem(last=False)
                taken -= oldest.size_bytes
        return known[1]


SHARED = SliceCache(read_slice)
SHARED_FILTERS = SliceCache(FilterSlice)
SHARED_LOOKUPS = SliceCache(LookupSlice)
