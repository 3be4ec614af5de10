"""Rows of a table's own files, read by Arrow inside the tasks that want them: no row passes through the JVM."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.curve.sizing import PartitionKey
from dbt.adapters.zlayout.spark.footers import footers_found
from dbt.adapters.zlayout.store import Store, open_store

_UNIT_BYTES = 48 << 20
_SMALL_DICTIONARY_BYTES = 8 << 10
_MOST_BYTES_A_VALUE = 2.0
_SPARK_VERSION = b"org.apache.spark.version"
_NEW_CALENDAR_SINCE = 3
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")

Piece = tuple[str, tuple[int, ...]]
Units = tuple[tuple[Piece, ...], ...]


@dataclass(frozen=True)
class ArrowSource:
    """Files whose rows Arrow reads as Spark would.

    Attributes:
        root_uri: Where the table lies.
        units: What a task reads: pieces of files, each a path and the numbers of its row groups.
        schema: Arrow types of the rows; texts with few values have dictionaries.
        partition: Of all files, as the rows spell its values.
    """

    root_uri: str
    units: Units
    schema: pa.Schema
    partition: PartitionKey

    @classmethod
    def of(
        cls, store: Store, paths: Sequence[str], schema: pa.Schema, partition: Sequence[tuple[str | None, pa.DataType]]
    ) -> ArrowSource | None:
        """A source of some files' rows.

        Args:
            store: The table's folder.
            paths: The files, below it; all of one partition.
            schema: Arrow types of the table's data columns.
            partition: Raw value and type of each partition column.

        Returns:
            None where there are none, or Spark has to read them: a file lacks a column or has another type for it, its
            days may be counted by the old calendar, it cannot be read here, or a partition's value is spelled in a way
            that its type does not print.
        """
        footers = footers_found(store, paths)
        known = [footer for footer in footers if footer is not None and _reads_alike(footer, schema)]
        if not any(footer.num_rows for footer in known) or len(known) < len(paths):
            return None
        if not all(_is_canonical(*each) for each in partition):
            return None
        dictionaries = [
            name
            for name, kind in zip(schema.names, schema.types, strict=True)
            if pa.types.is_string(kind) and all(_has_small_dictionary(footer, name) for footer in known)
        ]
        fields = [
            field.with_type(pa.dictionary(pa.int32(), pa.string())) if field.name in dictionaries else field
            for field in schema
        ]
        units = _units(paths, known, whole_files=store.local_path(paths[0]) is None)
        return cls(store.root_uri, units, pa.schema(fields), tuple(value or None for value, _ in partition))

    def tables(self, numbers: Iterable[int], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows of some units, a table for each row group.

        Args:
            numbers: Of the units.
            columns: Those to read, in the order of ``schema``; None for all.
        """
        store = open_store(self.root_uri)
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        dictionaries = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        for number in numbers:
            for path, groups in self.units[number]:
                local = store.local_path(path)
                source = pa.memory_map(str(local)) if local is not None else pa.BufferReader(store.read(path))
                with source, pq.ParquetFile(source, read_dictionary=dictionaries) as file:
                    for group in groups:
                        rows = file.read_row_group(group, columns=columns, use_threads=False)
                        yield rows.select(schema.names).cast(schema)


def _reads_alike(footer: pq.FileMetaData, schema: pa.Schema) -> bool:
    """Whether Arrow and Spark read the same values from a file, under the table's names."""
    try:
        found = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError):
        return False
    if sorted(found.names) != sorted(schema.names):
        return False
    if not all(_same_values(found.field(field.name).type, field.type) for field in schema):
        return False
    metadata = footer.metadata or {}
    if any(key in metadata for key in _LEGACY):
        return False
    if _SPARK_VERSION in metadata:
        return int(metadata[_SPARK_VERSION].split(b".")[0]) >= _NEW_CALENDAR_SINCE
    return not any(_has_days(field.type) for field in schema)


def _same_values(found: pa.DataType, wanted: pa.DataType) -> bool:
    types = pa.types
    if types.is_string(wanted):
        return bool(types.is_string(found) or types.is_large_string(found) or types.is_string_view(found))
    if types.is_binary(wanted):
        return bool(types.is_binary(found) or types.is_large_binary(found) or types.is_binary_view(found))
    return bool(found.equals(wanted))


def _has_days(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return _has_days(kind.key_type) or _has_days(kind.item_type)
    if kind.num_fields:
        return any(_has_days(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _is_canonical(value: str | None, kind: pa.DataType) -> bool:
    """Whether Spark prints a partition's value as its folder has it."""
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


def _has_small_dictionary(footer: pq.FileMetaData, name: str) -> bool:
    """Whether a text column is worth being read as a dictionary, by how its chunks are stored."""
    # Columns with children come apart into leaves, so a column's number is that of its name's leaf.
    number = next(each for each in range(footer.num_columns) if footer.schema.column(each).path == name)
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(number)
        if not chunk.has_dictionary_page or chunk.dictionary_page_offset is None:
            return False
        if chunk.data_page_offset - chunk.dictionary_page_offset > _SMALL_DICTIONARY_BYTES:
            return False
        if chunk.total_uncompressed_size > _MOST_BYTES_A_VALUE * max(1, chunk.num_values) + _SMALL_DICTIONARY_BYTES:
            return False
    return True


def _units(paths: Sequence[str], footers: Sequence[pq.FileMetaData], *, whole_files: bool) -> Units:
    """Row groups put together until a task has something to do.

    Args:
        paths: The files.
        footers: Theirs.
        whole_files: Whether a file is read at one go, wherever it lies.
    """
    units: list[list[Piece]] = []
    held = _UNIT_BYTES
    for path, footer in zip(paths, footers, strict=True):
        sizes = [footer.row_group(group).total_byte_size for group in range(footer.num_row_groups)]
        steps = [tuple(range(len(sizes)))] if whole_files else [(group,) for group in range(len(sizes))]
        for groups in steps:
            size = sum(sizes[group] for group in groups)
            if not units or held + size > _UNIT_BYTES:
                units.append([])
                held = 0
            held += size
            before = units[-1].pop()[1] if units[-1] and units[-1][-1][0] == path else ()
            units[-1].append((path, (*before, *groups)))
    return tuple(tuple(unit) for unit in units)
