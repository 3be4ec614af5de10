"""Bloom filters of files as a table: one row per file and a struct column per column, as writers report them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.index.bloom.hashing import Hashes, distinct, hashes_of
from dbt.adapters.zlayout.index.bloom.split_block import BITS_PER_VALUE, filter_of, held_by
from dbt.adapters.zlayout.index.statistics.column_stats import column_paths, with_column_paths
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath

# A file with more distinct values than fit (three million) has no filter for the column.
MOST_FILTER_BYTES = 4 << 20
_TYPES_KEY = b"zlayout.bloom"
FILTER = pa.struct([("content", pa.binary()), ("refused", pa.bool_())])


class FilterBuilder:
    """Collects the distinct values of one column of one file, as hashes, until they are too many for a filter.

    Args:
        column_type: The column's type, see `canonical_type`.
        most_bytes: The greatest size of a filter.
    """

    def __init__(self, column_type: pa.DataType, most_bytes: int = MOST_FILTER_BYTES) -> None:
        self._type = column_type
        self._most_values = 8 * most_bytes // BITS_PER_VALUE
        self._parts: list[Hashes] | None = []
        self._count = 0

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Adds values of the column, in any order. Values that are not of its type end the filter, not the write."""
        if self._parts is None:
            return
        try:
            self.add_hashes(hashes_of(values, self._type))
        except pa.ArrowException:
            self.add_hashes(None)

    def add_hashes(self, hashes: Hashes | None) -> None:
        """Adds the distinct hashes of some values; None ends the filter."""
        if self._parts is None or hashes is None:
            self._parts = None
            return
        self._parts.append(hashes)
        self._count += len(hashes)
        if self._count > 2 * self._most_values:
            self._merged()

    def _merged(self) -> Hashes | None:
        """Returns the distinct hashes so far; None if they are too many."""
        if self._parts is None:
            return None
        if len(self._parts) > 1:
            self._parts = [distinct(np.concatenate(self._parts))]
        whole = self._parts[0] if self._parts else np.empty(0, np.uint64)
        self._count = len(whole)
        if self._count > self._most_values:
            self._parts = None
            return None
        return whole

    def missing_in(self, content: bytes) -> int:
        """Returns how many of the values a filter lacks; 0 if there are too many to tell."""
        hashes = self._merged()
        return 0 if hashes is None else int(np.count_nonzero(~held_by(content, hashes)))

    def content(self) -> bytes | None:
        """Returns the filter; None if there are too many values."""
        hashes = self._merged()
        return None if hashes is None else filter_of(hashes)


def filter_table(
    paths: Sequence[str], columns: Sequence[TrackedColumn], filters: Mapping[ColumnPath, Sequence[bytes | None]]
) -> pa.Table:
    """Returns the filters of files.

    Args:
        paths: The files.
        columns: The columns that should have filters.
        filters: By column, one per file: the filter, or None if it would be too large. Columns that it lacks are
            unknown.

    Returns:
        ``path``, and a struct for each column: ``content`` (binary), ``refused`` (bool); null for unknown.
    """
    structs = []
    for column in columns:
        found = filters.get(column.path)
        if found is None:
            structs.append(pa.nulls(len(paths), FILTER))
        else:
            rows = [{"content": each, "refused": each is None} for each in found]
            structs.append(pa.array(rows, FILTER))
    names = [f"c{number}" for number in range(len(columns))]
    table = pa.Table.from_arrays([pa.array(paths, pa.string()), *structs], names=["path", *names])
    return with_types(table, {column.path: str(column.type) for column in columns})


def with_types(table: pa.Table, types: Mapping[ColumnPath, str]) -> pa.Table:
    """Returns the table with the paths of ``c0``, ``c1`` … and their types in its metadata."""
    named = with_column_paths(table, list(types))
    return named.replace_schema_metadata({**named.schema.metadata, _TYPES_KEY: json.dumps(list(types.values()))})


def column_types(schema: pa.Schema) -> dict[ColumnPath, str]:
    """Returns the type of each column, as text, in the order of the columns.

    Raises:
        CorruptError: The schema does not say it.
    """
    paths = column_paths(schema)
    try:
        types = [str(each) for each in json.loads(schema.metadata[_TYPES_KEY])]
        return dict(zip(paths, types, strict=True))
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptError("a slice of Bloom filters does not name the types of its columns") from error
