"""Reads the rows of a table's files with Arrow, inside the tasks that need them. No row passes through the JVM."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.curve.model import PartitionKey
from dbt.adapters.zlayout.index.footers.footer import file_leaves
from dbt.adapters.zlayout.index.footers.parquet_values import writer_rules
from dbt.adapters.zlayout.spark.files.existing_files import footers_found
from dbt.adapters.zlayout.spark.schema.arrow_columns import in_type, short_decimal
from dbt.adapters.zlayout.store import Store, open_store

_CODED_TEXT = pa.dictionary(pa.int32(), pa.string())
_MOST_BYTES_AT_ONCE = 128 << 20
_BATCH_ROWS = 1 << 17
_UNIT_BYTES = 48 << 20
_SMALL_DICTIONARY_BYTES = 8 << 10
_MOST_BYTES_A_VALUE = 2.0

_Piece = tuple[str, tuple[int, ...]]
_Units = tuple[tuple[_Piece, ...], ...]


@dataclass(frozen=True)
class ArrowSource:
    """Files whose rows Arrow reads exactly as Spark would.

    Attributes:
        root_uri: URI of the table's folder.
        units: Units of work. Each holds pieces of files: a path and the numbers of its row groups.
        schema: Arrow types of the rows. Texts with few distinct values are dictionary-encoded, and decimals are as
            narrow as in a file.
        partition: The partition of all files, with values as the rows spell them.
    """

    root_uri: str
    units: _Units
    schema: pa.Schema
    partition: PartitionKey

    @classmethod
    def of(
        cls, store: Store, paths: Sequence[str], schema: pa.Schema, partition: Sequence[tuple[str | None, pa.DataType]]
    ) -> ArrowSource | None:
        """Returns a source for the rows of some files.

        Args:
            paths: Paths of the files relative to the folder. All are of one partition.
            schema: Arrow types of the table's data columns.
            partition: Raw value and type of each partition column.

        Returns:
            None if there are no rows, or if Spark has to read the files: a file lacks a column or has another type for
            it, its dates may use the old calendar, it cannot be read here, or a partition value is not spelled as its
            type prints it.
        """
        if not all(_is_canonical(*each) for each in partition):
            return None
        footers = footers_found(store, paths)
        known = [footer for footer in footers if footer is not None and _reads_alike(footer, schema)]
        if not any(footer.num_rows for footer in known) or len(known) < len(paths):
            return None
        texts = {field.name for field in schema if pa.types.is_string(field.type)}
        dictionaries = texts.intersection(*(_small_dictionaries(footer) for footer in known))
        kinds = [_CODED_TEXT if field.name in dictionaries else short_decimal(field.type) for field in schema]
        units = _units(paths, known, together=store.local_path(paths[0]) is None)
        return cls(
            store.root_uri,
            units,
            pa.schema(list(zip(schema.names, kinds, strict=True))),
            tuple(value or None for value, _ in partition),
        )

    def tables(self, numbers: Iterable[int], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yields the rows of some units, in tables of bounded size.

        Args:
            numbers: Numbers of the units.
            columns: The columns to read, in the order of ``schema``. None for all.
        """
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        for number in numbers:
            for path, groups in self.units[number]:
                with self._opened(path, schema) as file:
                    for group in groups:
                        for rows in _in_bounds(file, group, columns):
                            yield in_schema(rows, schema)

    def packed(self, packs: Sequence[Sequence[str]]) -> ArrowSource:
        """Returns the same files with one unit for each pack.

        Args:
            packs: Paths of all files, in the order in which their rows are read.
        """
        pieces: dict[str, list[_Piece]] = {}
        for path, groups in (piece for unit in self.units for piece in unit):
            pieces.setdefault(path, []).append((path, groups))
        units = tuple(tuple(piece for path in pack for piece in pieces.get(path, ())) for pack in packs)
        return replace(self, units=units)

    def first_rows(self, most_rows: int) -> pa.Table:
        """Returns the first rows of the first row group, at most ``most_rows``."""
        path, groups = self.units[0][0]
        with self._opened(path, self.schema) as file:
            batches = file.iter_batches(most_rows, row_groups=groups[:1], use_threads=False)
            return in_schema(pa.Table.from_batches([next(batches)]), self.schema)

    @contextlib.contextmanager
    def _opened(self, path: str, schema: pa.Schema) -> Iterator[pq.ParquetFile]:
        store = open_store(self.root_uri)
        local = store.local_path(path)
        source = pa.memory_map(str(local)) if local is not None else pa.BufferReader(store.read(path))
        dictionaries = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        # A rewrite would give damaged rows a sound file.
        with source, pq.ParquetFile(source, read_dictionary=dictionaries, page_checksum_verification=True) as file:
            yield file


def _in_bounds(file: pq.ParquetFile, group: int, columns: Sequence[str] | None) -> Iterator[pa.Table]:
    """Yields a row group in one table, which is fastest, or in batches if it is too large for a worker's memory."""
    if file.metadata.row_group(group).total_byte_size <= _MOST_BYTES_AT_ONCE:
        yield file.read_row_group(group, columns=columns, use_threads=False)
        return
    for batch in file.iter_batches(_BATCH_ROWS, [group], columns, use_threads=False):
        yield pa.Table.from_batches([batch])


def in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Returns the schema's columns in its types. Texts may be dictionary-encoded in the rows, the schema or both."""
    return pa.table([in_type(rows.column(field.name), field.type) for field in schema], schema=schema)


def _reads_alike(footer: pq.FileMetaData, schema: pa.Schema) -> bool:
    """Returns whether Arrow and Spark read the same values from a whole file, under the table's column names.

    `file_values` asks it of one leaf, and may take more types: it only needs equal values, and the rows read here are
    written again in these types. Here columns of any type count, so that days and times inside of lists do too.
    """
    try:
        found = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError):
        return False
    if sorted(found.names) != sorted(schema.names):
        return False
    if not all(_same_values(found.field(field.name).type, field.type) for field in schema):
        return False
    rules = writer_rules(footer.created_by or "", footer.metadata or {})
    return rules.old_dates or not any(_has_days(field.type) for field in schema)


def _same_values(found: pa.DataType, wanted: pa.DataType) -> bool:
    types = pa.types
    if types.is_string(wanted):
        return bool(types.is_string(found) or types.is_large_string(found) or types.is_string_view(found))
    if types.is_binary(wanted):
        return bool(types.is_binary(found) or types.is_large_binary(found) or types.is_binary_view(found))
    # Parquet has no type for Spark's day-time intervals: they are plain numbers of microseconds.
    return bool(found.equals(pa.int64() if types.is_duration(wanted) else wanted))


def _has_days(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _has_days(kind.key_type) or _has_days(kind.item_type)
    if kind.num_fields:
        return any(_has_days(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _is_canonical(value: str | None, kind: pa.DataType) -> bool:
    """Returns whether Spark prints a partition value exactly as its folder spells it."""
    if not value or pa.types.is_string(kind):
        return True
    try:
        if pa.types.is_integer(kind):
            return str(int(value)) == value
        if pa.types.is_date32(kind):
            return datetime.date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False
    return False


def _small_dictionaries(footer: pq.FileMetaData) -> set[str]:
    """Returns the top-level columns that are worth reading as dictionaries, judged by how their chunks are stored."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return {
        path[0]
        for position, (path, _) in enumerate(file_leaves(footer) or ())
        if len(path) == 1 and all(_has_small_dictionary(group.column(position)) for group in groups)
    }


def _has_small_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    if not chunk.has_dictionary_page or chunk.dictionary_page_offset is None:
        return False
    if chunk.data_page_offset - chunk.dictionary_page_offset > _SMALL_DICTIONARY_BYTES:
        return False
    most_bytes = _MOST_BYTES_A_VALUE * max(1, chunk.num_values) + _SMALL_DICTIONARY_BYTES
    return bool(chunk.total_uncompressed_size <= most_bytes)


def _units(paths: Sequence[str], footers: Sequence[pq.FileMetaData], *, together: bool) -> _Units:
    """Combines row groups into units that are large enough for a task.

    Args:
        together: Whether the row groups of a file stay together, because reading any of them reads the whole file.
    """
    units: list[list[_Piece]] = []
    held = _UNIT_BYTES
    for path, footer in zip(paths, footers, strict=True):
        sizes = [footer.row_group(group).total_byte_size for group in range(footer.num_row_groups)]
        steps = [tuple(range(len(sizes)))] if together else [(group,) for group in range(len(sizes))]
        for groups in steps:
            size = sum(sizes[group] for group in groups)
            if not units or held + size > _UNIT_BYTES:
                units.append([])
                held = 0
            held += size
            before = units[-1].pop()[1] if units[-1] and units[-1][-1][0] == path else ()
            units[-1].append((path, (*before, *groups)))
    return tuple(tuple(unit) for unit in units)
