"""Opened index slices, kept across the versions and sessions of a process: an append leaves most slices as they are.

Slices of earlier releases are one Parquet file with the digest of its content in the name. They are read whole.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from threading import Lock
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.index.bloom.filter_slices import FilterSlice
from dbt.adapters.zlayout.index.column_slices import (
    Groups,
    Note,
    OpenSlice,
    RangedSlice,
    SliceStore,
    digest_in,
    digest_of,
)
from dbt.adapters.zlayout.index.lookup.lookup_slices import LookupSlice
from dbt.adapters.zlayout.index.memory_budget import HELD
from dbt.adapters.zlayout.index.slice_writing import FILE_KEY, file_keys
from dbt.adapters.zlayout.index.statistics.column_stats import column_paths
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.files.bounded_parquet import BoundedParquet
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY

_MOST_BYTES = 256 << 20
# Without a call of Python for each slice: there may be ten thousand.
_SLICE, _SIZE_BYTES = itemgetter(1), attrgetter("size_bytes")


class WholeSlice:
    """A slice that is read whole, and has one row group.

    Args:
        content: The slice.

    Raises:
        CorruptError: It is not such a slice.
    """

    def __init__(self, content: bytes) -> None:
        self._reader = open_slice(content)
        schema = self._reader.schema
        self.paths = column_paths(schema)
        self.types = {each.name: each.type for each in schema}
        self._has_keys = self.types.keys() >= {"path", *IDENTITY}
        if self._has_keys:
            self.types[FILE_KEY] = pa.uint64()
        self.row_count: int = self._reader.row_count
        self.group_rows: Groups = np.array([self.row_count], np.int64)
        self.size_bytes = self._reader.open_bytes
        self._decoded: dict[str, pa.Array] = {}
        self._lock = Lock()

    def groups_of(self, _: npt.NDArray[np.object_]) -> Groups:
        """Returns the one row group."""
        return np.zeros(1, np.int64)

    def load(self, _: Collection[str], __: Groups | None = None) -> None:
        """Does nothing: the slice is in memory."""

    def forget(self, name: Hashable) -> None:
        """Drops a decoded column."""
        # Without the lock: others call this while they hold their own.
        self._decoded.pop(str(name), None)

    def column(self, name: str, _: Note, groups: Groups | None = None) -> pa.Array:
        """Returns a column."""
        with self._lock:
            values = self._decoded.get(name)
            if values is None:
                values = self._decode(name)
                self._decoded[name] = values
                HELD.keep(self, name, values.nbytes)
            else:
                HELD.use(self, [name])
        return values if groups is None or len(groups) else values[:0]

    def _decode(self, name: str) -> pa.Array:
        if name == FILE_KEY and self._has_keys:
            return file_keys(read_columns(self._reader, ["path", *IDENTITY]))
        return read_columns(self._reader, [name]).column(0).combine_chunks()


def verified(path: str, content: bytes) -> bytes:
    """Returns the content of a whole slice after checking it against the digest in its name.

    Raises:
        CorruptError: The content has another digest, or the name has none.
    """
    if digest_in(path) != digest_of(content).hex():
        raise CorruptError(f"index slice {path} is damaged: its content does not have the digest in its name")
    return content


def open_slice(content: bytes) -> BoundedParquet:
    """Opens a whole slice for reading some of its columns.

    Raises:
        CorruptError: The content is not Parquet.
    """
    try:
        return BoundedParquet(content)
    except CorruptError as error:
        raise CorruptError(f"an index slice cannot be read: {error}") from error


def read_columns(reader: BoundedParquet, names: Sequence[str]) -> pa.Table:
    """Reads whole columns of a whole slice.

    Raises:
        CorruptError: A column is missing, cannot be decoded, or would take far more memory than the slice.
    """
    if missing := [name for name in names if name not in reader.schema.names]:
        raise CorruptError(f"an index slice lacks the columns {', '.join(missing)}")
    try:
        # The reader interprets dots in names as levels and may return other columns with the same prefix.
        return reader.read(names).select(list(names))
    except CorruptError as error:
        raise CorruptError(f"an index slice cannot be read: {error}") from error


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
