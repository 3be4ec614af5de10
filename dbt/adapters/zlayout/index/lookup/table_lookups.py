"""The lookup indexes of a table at one version. Whatever is missing or damaged keeps files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.errors import ZlayoutError
from dbt.adapters.zlayout.index.bloom.filter_slices import Positions, rows_in
from dbt.adapters.zlayout.index.bloom.hashing import Hashes, combined, distinct, hashes_of_rows
from dbt.adapters.zlayout.index.lookup.lookup_key import KeyPaths, LookupKey, key_name
from dbt.adapters.zlayout.index.lookup.lookup_slices import LookupSlice, SliceName, first_bits
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import EXPRESSION, Column
from dbt.adapters.zlayout.pruning.statistics.column_bounds import Together
from dbt.adapters.zlayout.pruning.statistics.validation import widened
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

_MOST_VALUES = 100_000
_MOST_READ_BYTES = 256 << 20
_MOST_COLUMNS = 8
_UNTOLD = -2


class TableLookups:
    """The slices of a snapshot.

    Args:
        paths: Paths of the slices.
        read: Opens a slice.
        note: Receives a sentence for each problem with a slice.
    """

    def __init__(self, paths: Sequence[str], read: Callable[[str], LookupSlice], note: Callable[[str], None]) -> None:
        self.note = note
        self._read = read
        self._by_key: dict[str, list[tuple[str, SliceName]]] = {}
        for path in paths:
            name = SliceName.of(path)
            if name is None:
                note(f"index slice {path} is damaged: its name is not that of a lookup slice")
            else:
                self._by_key.setdefault(name.key, []).append((path, name))
        self._opened: dict[str, LookupSlice | None] = {}

    def names(self, paths: KeyPaths) -> Sequence[tuple[str, SliceName]]:
        """Returns the path and the name of each slice of an index."""
        return self._by_key.get(key_name(paths), [])

    @property
    def keys(self) -> frozenset[KeyPaths]:
        """The columns of each index that has a readable slice."""
        firsts = (
            next((part for path, _ in named if (part := self.open(path)) is not None), None)
            for named in self._by_key.values()
        )
        return frozenset(part.paths for part in firsts if part is not None)

    def open(self, path: str) -> LookupSlice | None:
        """Returns a slice; None if it cannot be read."""
        if path not in self._opened:
            try:
                self._opened[path] = self._read(path)
            except (ZlayoutError, OSError) as error:
                self._opened[path] = None
                self.note(str(error))
        return self._opened[path]

    def of(self, files: DataFiles) -> FilesLookups:
        """Returns the entries of files of the snapshot."""
        return FilesLookups(self, files)


@dataclass(frozen=True)
class HashPlaces:
    """Where hashes are.

    Attributes:
        hash: int64[m], the position of a hash among those looked for, once for each file that holds it.
        file: int64[m], the position of that file.
        unknown: For each file whether it may hold some of the hashes, because nothing is known about it.
    """

    hash: Positions
    file: Positions
    unknown: Flags


@dataclass
class FilesLookups:
    """The entries of some files, in their order.

    Attributes:
        whole: The indexes of the table.
        files: The files. A file whose size, time or row count differs from the index is unknown.
    """

    label = "its lookup index"
    lack = "is not in the lookup index"
    knows_null = True

    whole: TableLookups
    files: DataFiles
    _rows: dict[str, Positions] = field(default_factory=dict)
    _answers: dict[tuple[LookupKey, bytes], Flags | None] = field(default_factory=dict)
    _read_bytes: int = 0

    def anew(self) -> FilesLookups:
        """Returns the same entries for one scan, which may read so much and no more."""
        return FilesLookups(self.whole, self.files, self._rows)

    def may_hold(self, column: Column, values: pa.Array | pa.Scalar) -> Flags | None:
        """Returns for each file whether it may hold one of the values.

        Args:
            column: The column, of its type in the table.
            values: The values. Null is a value.

        Returns:
            bool, one per file. None if no index knows: there is none of a column of this type, or there are too
            many values.
        """
        if not self.whole.names((column.path,)):
            return None
        hashes = _hashes_of_values(column, values)
        if hashes is None or len(hashes) > _MOST_VALUES:
            return None
        return self.may_hold_hashes(LookupKey.of(_tracked([column])), hashes)

    def may_hold_together(self, wanted: Mapping[Column, pa.Array | pa.Scalar]) -> Sequence[Together]:
        """Returns what indexes over several columns know about rows with one of the given values in each column.

        Args:
            wanted: The values by column.
        """
        # Indexes of several columns have no expressions.
        by_path = sorted({each.path: each for each in wanted if each.path[0] != EXPRESSION}.items())
        if not 1 < len(by_path) <= _MOST_COLUMNS:
            return []
        found = []
        for count in range(2, len(by_path) + 1):
            for some in combinations(by_path, count):
                columns = tuple(column for _, column in some)
                if not self.whole.names(tuple(path for path, _ in some)):
                    continue
                hashes = _products([_hashes_of_values(each, wanted[each]) for each in columns])
                kept = None if hashes is None else self.may_hold_hashes(LookupKey.of(_tracked(columns)), hashes)
                if kept is not None:
                    found.append(Together(columns, kept))
        return found

    def lacks(self, column: Column) -> Flags | None:
        """Returns which files have no entries for a column of its type; None if no file has any."""
        known = self.covered(LookupKey.of(_tracked([column])))
        return ~known if known.any() else None

    def may_hold_hashes(self, key: LookupKey, hashes: Hashes) -> Flags | None:
        """Returns for each file whether it may hold rows with one of the hashes; None if nothing is known of any.

        Args:
            key: The columns of an index.
            hashes: Distinct hashes, sorted.
        """
        asked = key, hashes.tobytes()
        if asked not in self._answers:
            self._answers[asked] = self._may_hold(key, hashes)
        return self._answers[asked]

    def _may_hold(self, key: LookupKey, hashes: Hashes) -> Flags | None:
        if not self.whole.names(key.paths):
            return None
        found = self.places(key, hashes)
        kept = found.unknown.copy()
        kept[found.file] = True
        return None if kept.all() else kept

    def places(self, key: LookupKey, hashes: Hashes) -> HashPlaces:
        """Returns which files hold each of some hashes.

        Args:
            key: The columns of an index.
            hashes: Distinct hashes, sorted.
        """
        names = self.whole.names(key.paths)
        bits = max((name.bits for _, name in names), default=0)
        buckets = first_bits(hashes, bits)
        unknown = np.zeros(len(self.files), dtype=bool)
        pairs = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for bucket in np.unique(buckets).tolist():
            some, is_known = np.flatnonzero(buckets == bucket), np.zeros(len(self.files), dtype=bool)
            for path, name in names:
                if bucket >> (bits - name.bits) == name.bucket:
                    found = self._found(path, key, hashes[some], is_known)
                    pairs.append((some[found[0]], found[1]))
            unknown[~is_known] = True
        hash_of, file_of = (np.concatenate(each) for each in zip(*pairs, strict=True))
        return HashPlaces(hash_of, file_of, unknown)

    def _found(self, path: str, key: LookupKey, hashes: Hashes, is_known: Flags) -> tuple[Positions, Positions]:
        """Looks for hashes in the slice of their bucket, and notes the files that it knows.

        Returns:
            The positions of hashes, and of a file that holds each of them.
        """
        nothing = np.empty(0, np.int64), np.empty(0, np.int64)
        part, rows = self.whole.open(path), self._rows_in(path, key)
        if part is None or rows is None:
            return nothing
        self._read_bytes += part.read_bytes(hashes)
        if self._read_bytes > _MOST_READ_BYTES:
            self.whole.note(f"a search in lookup indexes would read more than {_MOST_READ_BYTES >> 20} MB")
            return nothing
        try:
            found = part.find(hashes)
        except (ZlayoutError, OSError) as error:
            self.whole.note(str(error))
            return nothing
        if found.damaged.any():
            self.whole.note(f"index slice {path} is damaged: a part of it does not have its checksum")
            return nothing
        known = np.flatnonzero(rows >= 0)
        is_known[known] = True
        file_of_row = np.full(part.rows.num_rows, -1, np.int64)
        file_of_row[rows[known]] = known
        files = file_of_row[found.file]
        return found.hash[files >= 0], files[files >= 0]

    def covered(self, key: LookupKey) -> Flags:
        """Returns which files have all their entries in an index."""
        names = self.whole.names(key.paths)
        bits = max((name.bits for _, name in names), default=0)
        known = np.zeros((1 << bits, len(self.files)), dtype=bool)
        for path, name in names:
            rows = self._rows_in(path, key)
            if rows is not None:
                width = 1 << (bits - name.bits)
                known[name.bucket * width : (name.bucket + 1) * width] |= rows >= 0
        covered: Flags = np.logical_and.reduce(known, axis=0)
        return covered

    def untold(self, key: LookupKey) -> Flags:
        """Returns for which files an index says that the hashes of their values are unknown."""
        found: Flags = np.zeros(len(self.files), dtype=bool)
        for path, _ in self.whole.names(key.paths):
            rows = self._rows_in(path, key)
            if rows is not None:
                found[rows == _UNTOLD] = True
        return found

    def missing(self, key: LookupKey, hashes: Hashes, position: int) -> int:
        """Returns how many hashes an index does not have of a file that it says to have all hashes of.

        Args:
            key: The columns of the index.
            hashes: Distinct hashes, sorted, each of some row of the file.
            position: The position of the file.

        Raises:
            StoreError: The index cannot be read.
        """
        count = 0
        for path, name in self.whole.names(key.paths):
            part, rows = self.whole.open(path), self._rows_in(path, key)
            if part is None or rows is None or rows[position] < 0:
                continue
            some = hashes[name.within(hashes)]
            found = part.find(some)
            held = found.damaged.copy()
            held[found.hash[found.file == rows[position]]] = True
            count += int(np.count_nonzero(~held))
        return count

    def _rows_in(self, path: str, key: LookupKey) -> Positions | None:
        """Returns the row of each file in a slice; None if the slice is unreadable or of other types.

        A file has a negative number if it has no row, or one that says that its hashes are unknown.
        """
        part = self.whole.open(path)
        if part is None or part.types != key.types or part.paths != key.paths:
            return None
        if path not in self._rows:
            rows = rows_in(part.rows, self.files)
            there = np.flatnonzero(rows >= 0)
            rows[there[part.pairs_of_file[rows[there]] < 0]] = _UNTOLD
            self._rows[path] = rows
        return self._rows[path]


def _tracked(columns: Collection[Column]) -> Sequence[TrackedColumn]:
    return [TrackedColumn(each.path, each.type) for each in columns]


def _hashes_of_values(column: Column, values: pa.Array | pa.Scalar) -> Hashes | None:
    listed = (
        pa.array([values.as_py()], values.type) if isinstance(values, pa.Scalar) and not values.is_valid else values
    )
    listed = pa.repeat(listed, 1) if isinstance(listed, pa.Scalar) else listed
    typed = widened(listed, column.type)
    if typed is None or not len(typed) or len(typed) > _MOST_VALUES:
        return None
    try:
        return distinct(hashes_of_rows(typed, column.type))
    except pa.ArrowException:
        return None


def _products(parts: Sequence[Hashes | None]) -> Hashes | None:
    """Returns the hashes of all combinations; None if they are too many."""
    known = [each for each in parts if each is not None]
    if len(known) < len(parts) or np.prod([float(len(each)) for each in known]) > _MOST_VALUES:
        return None
    grids = np.meshgrid(*known, indexing="ij")
    return distinct(combined([np.ascontiguousarray(each).ravel() for each in grids]))
