"""Writes one Parquet file with Arrow, row group by row group, so that every Spark version reads it as its own.

A column has a dictionary unless a sample of its rows takes clearly less space in another encoding.
"""

from __future__ import annotations

import inspect
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.index.bloom.file_filters import FilterBuilder
from dbt.adapters.zlayout.index.bloom.hashing import Hashes
from dbt.adapters.zlayout.index.lookup.lookup_key import HashCollector, LookupKey
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.publish.iceberg_schema import with_field_ids
from dbt.adapters.zlayout.spark.schema.arrow_columns import DIGITS_OF_EIGHT_BYTES, at_path

_FEWEST_ROWS = 1 << 14
_MEASURED_ROWS = 1 << 14
# If values repeat this often on average, a dictionary always pays off.
_PLAINLY_REPEATED = 16
_NEARLY_UNIQUE = 0.98
# Other encodings cost readers more than plain values do, so they have to save some space.
_WORTH = 0.95
# Arrow writes Parquet's Bloom filters since release 26.
_WRITES_FILTERS = "bloom_filter_options" in inspect.signature(pq.ParquetWriter).parameters
# The size of a filter is a power of two: with this limit 1 to 2 bytes a value, and 1.1 % found by mistake on average.
_MOST_FALSE_POSITIVES = 0.024


@dataclass(frozen=True)
class Encodings:
    """The encodings of columns that do not use Parquet's dictionaries.

    Attributes:
        chosen: 'PLAIN', 'DELTA_BINARY_PACKED' or 'DELTA_LENGTH_BYTE_ARRAY' by top-level column. Spark's vectorized
            reader supports them since 3.3. All other columns have dictionaries.
    """

    chosen: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: pa.Table, compression: Mapping[str, Any]) -> Encodings:
        """Chooses encodings for rows in the order in which a file will hold them. Few rows keep dictionaries.

        Args:
            rows: A row group.
            compression: Compression options of ``ParquetWriter``.
        """
        if rows.num_rows < _FEWEST_ROWS:
            return cls()
        found = {name: _encoding(rows.column(name), compression) for name in rows.column_names}
        return cls({name: each for name, each in found.items() if each is not None})

    def options(self, leaves: Mapping[ColumnPath, str], without_dictionary: Collection[ColumnPath]) -> dict[str, Any]:
        """Returns the encodings as options of ``ParquetWriter``.

        Args:
            leaves: Parquet's names of all leaf columns of the schema, by path.
            without_dictionary: Further columns that get no dictionary.
        """
        if not self.chosen and not without_dictionary:
            return {}
        shared = _shared_names(leaves)
        encoded = {name: each for name, each in self.chosen.items() if each != "PLAIN" and name not in shared}
        without = {*self.chosen, *(name for path, name in leaves.items() if path in without_dictionary)}
        return {
            "use_dictionary": [name for name in leaves.values() if name not in without],
            "column_encoding": encoded or None,
        }


DICTIONARIES = Encodings()


@dataclass(frozen=True)
class SpecialFloats:
    """The float columns of a file with values that Spark's Parquet reader would skip wrongly.

    Attributes:
        nan: Columns that may hold NaN get no bounds in the footer. Spark orders NaN above every number, but a footer's
            bounds leave it out.
        negative_zero: Columns that may hold -0.0 get no dictionary. The reader skips a row group whose dictionary lacks
            the constant of a filter bit for bit, but in SQL -0.0 equals 0.0.
    """

    nan: frozenset[ColumnPath] = frozenset()
    negative_zero: frozenset[ColumnPath] = frozenset()

    @classmethod
    def of(cls, rows: pa.Table, paths: Collection[ColumnPath]) -> SpecialFloats:
        """Returns those among float columns of some rows."""
        columns = {path: at_path(rows, path) for path in paths}
        return cls(
            frozenset(path for path, column in columns.items() if pc.any(pc.is_nan(column)).as_py()),
            frozenset(path for path, column in columns.items() if _has_negative_zero(column)),
        )

    def plus(self, other: SpecialFloats) -> SpecialFloats:
        """Returns the columns of both."""
        return SpecialFloats(self.nan | other.nan, self.negative_zero | other.negative_zero)

    def within(self, other: SpecialFloats) -> bool:
        """Returns whether all columns are among those of the other."""
        return self.nan <= other.nan and self.negative_zero <= other.negative_zero


NO_SPECIAL_FLOATS = SpecialFloats()


@dataclass(frozen=True)
class ParquetSettings:
    """Settings for writing data files.

    Attributes:
        compression: Parquet codec, as Arrow names it ('none' for no compression).
        schema_json: Spark's schema of the data columns, stored in the footer.
        spark_version: Version of the writing session. Without it, Spark refuses dates before 1582 as ambiguous.
    """

    compression: str
    schema_json: str
    spark_version: str

    @property
    def codec(self) -> dict[str, Any]:
        """Codec and level, as options of ``ParquetWriter``."""
        return {"compression": self.compression, "compression_level": 3 if self.compression == "zstd" else None}

    def open(
        self,
        sink: object,
        schema: pa.Schema,
        special_floats: SpecialFloats = NO_SPECIAL_FLOATS,
        encodings: Encodings = DICTIONARIES,
        filters: Mapping[str, Any] | None = None,
    ) -> pq.ParquetWriter:
        """Returns a writer for rows of a schema.

        Args:
            sink: A path or a file.
            schema: Arrow types of the rows.
            special_floats: Columns that get no bounds in the footer, or no dictionary.
            encodings: Encodings of the columns without a dictionary.
            filters: Parquet's Bloom filters, as options of ``ParquetWriter``; Arrow before release 26 takes none.
        """
        is_plain = special_floats == NO_SPECIAL_FLOATS and not encodings.chosen
        leaves = {} if is_plain else _leaf_names(schema)
        statistics: bool | list[str] = True
        if special_floats.nan:
            without = {name for path, name in leaves.items() if path in special_floats.nan}
            statistics = [name for name in leaves.values() if name not in without]
        writer = pq.ParquetWriter(
            sink,
            with_field_ids(schema),
            **self.codec,
            version="2.6",
            store_decimal_as_integer=True,
            write_page_index=True,
            write_page_checksum=True,
            write_statistics=statistics,
            store_schema=False,
            **encodings.options(leaves, special_floats.negative_zero),
            **({"bloom_filter_options": filters} if filters else {}),
        )
        # Not set on the schema: with store_schema=False, Arrow drops the schema's metadata.
        writer.add_key_value_metadata(
            {
                "org.apache.spark.version": self.spark_version,
                "org.apache.spark.sql.parquet.row.metadata": self.schema_json,
            }
        )
        return writer


@dataclass(frozen=True)
class FloatFacts:
    """Statistics of a float column: bounds without NaN (None if there is no other value), null and NaN counts."""

    minimum: float | None = None
    maximum: float | None = None
    null_count: int = 0
    nan_count: int = 0

    def plus(self, column: pa.ChunkedArray | pa.Array) -> FloatFacts:
        """Returns the statistics with those of more rows added."""
        nan = pc.is_nan(column)
        bounds = pc.min_max(column.filter(pc.invert(pc.fill_null(nan, True)))).as_py()
        lows = [each for each in (self.minimum, bounds["min"]) if each is not None]
        highs = [each for each in (self.maximum, bounds["max"]) if each is not None]
        return FloatFacts(
            min(lows, default=None),
            max(highs, default=None),
            self.null_count + column.null_count,
            self.nan_count + int(pc.sum(nan).as_py() or 0),
        )


@dataclass(frozen=True)
class WrittenFile:
    """A finished local file that is not yet in the table's folder.

    Attributes:
        local: Path of the local file.
        metadata: The file's footer.
        floats: Statistics of each float column.
        null_counts: Number of nulls in each required column.
        filters: Bloom filters by column; None for one that would be too large.
        hashes: The hashes of its values by lookup index; None for one without.
    """

    local: Path
    row_count: int
    size_bytes: int
    metadata: pq.FileMetaData
    floats: dict[ColumnPath, FloatFacts]
    null_counts: dict[str, int]
    filters: dict[ColumnPath, bytes | None] = field(default_factory=dict)
    hashes: dict[LookupKey, Hashes | None] = field(default_factory=dict)


class ParquetFile:
    """One local Parquet file while it is written.

    Args:
        local: Path of the file.
        schema: Arrow types of the data columns.
        settings: How to write the file.
        required: Columns whose nulls are counted.
        special_floats: Float columns that may hold NaN or -0.0 in this file.
        group_rows: About how many rows a row group will have.
        encodings: Encodings of the columns without a dictionary.
        filtered: Columns that get a Bloom filter, and one of Parquet's in each row group.
        looked_up: Lookup indexes that get the hashes of its values.
    """

    def __init__(
        self,
        local: Path,
        schema: pa.Schema,
        settings: ParquetSettings,
        required: Sequence[str],
        special_floats: SpecialFloats,
        group_rows: int,
        encodings: Encodings = DICTIONARIES,
        filtered: Sequence[TrackedColumn] = (),
        looked_up: Sequence[LookupKey] = (),
    ) -> None:
        self._local = local
        filters = _parquet_filters(schema, filtered, group_rows) if _WRITES_FILTERS and filtered else None
        self._writer = settings.open(str(self._local), schema, special_floats, encodings, filters)
        self._schema = schema
        self._floats = {path: FloatFacts() for path in float_paths(schema)}
        self.special_floats = special_floats
        self._nulls = {name: 0 for name in required if name in schema.names}
        self._filters = {column.path: FilterBuilder(column.type) for column in filtered}
        self._hashes = {key: HashCollector(key) for key in looked_up}
        self.row_count = 0

    def write_row_group(self, rows: pa.Table) -> None:
        """Appends the rows in their order as one row group. NaN and -0.0 may only be in columns of `special_floats`."""
        if not rows.num_rows:
            return
        for path, facts in self._floats.items():
            self._floats[path] = facts.plus(at_path(rows, path))
        for name in self._nulls:
            self._nulls[name] += rows.column(name).null_count
        for path, builder in self._filters.items():
            builder.add(at_path(rows, path))
        for key, collector in self._hashes.items():
            collector.add([at_path(rows, path) for path in key.paths])
        self._writer.write_table(rows.select(self._schema.names), row_group_size=rows.num_rows)
        self.row_count += rows.num_rows

    def bytes_so_far(self) -> int:
        """Returns the bytes on disk so far, without the footer."""
        return self._local.stat().st_size

    def close(self) -> WrittenFile:
        """Writes the footer and returns the finished file."""
        self._writer.close()
        return WrittenFile(
            self._local,
            self.row_count,
            self.bytes_so_far(),
            pq.read_metadata(self._local),
            dict(self._floats),
            dict(self._nulls),
            {path: builder.content() for path, builder in self._filters.items()},
            {key: collector.hashes() for key, collector in self._hashes.items()},
        )

    def discard(self) -> None:
        """Closes and deletes the file."""
        self._writer.close()
        self._local.unlink(missing_ok=True)


def float_paths(schema: pa.Schema) -> list[ColumnPath]:
    """Returns the float columns and float fields of structs. Spark does not push filters into lists and maps."""
    return [path for path in _leaf_names(schema) if pa.types.is_floating(_type_at(schema, path))]


def _parquet_filters(schema: pa.Schema, columns: Sequence[TrackedColumn], group_rows: int) -> dict[str, Any]:
    """Returns the options for Parquet's Bloom filters. Booleans cannot have one.

    Floats get none: readers look for the bits of a constant, but in SQL -0.0 equals 0.0, and every NaN each other.
    """
    shared = _shared_names(_leaf_names(schema))
    # Arrow shrinks a filter that turns out too large for its values, but cannot make one grow.
    size = {"ndv": 2 * max(1, group_rows), "fpp": _MOST_FALSE_POSITIVES}
    return {
        name: size
        for column in columns
        if not pa.types.is_floating(column.type) and not pa.types.is_boolean(column.type)
        if (name := ".".join(column.path)) not in shared
    }


def _has_negative_zero(column: pa.ChunkedArray | pa.Array) -> bool:
    zeros = column.filter(pc.fill_null(pc.equal(column, 0.0), False))
    return bool(np.signbit(zeros.to_numpy()).any())


def _shared_names(leaves: Mapping[ColumnPath, str]) -> set[str]:
    """Returns Parquet's names of several columns at once: `a.b` beside a struct `a` with a field `b`.

    Arrow's options reach all columns of a name.
    """
    return {name for name, count in Counter(leaves.values()).items() if count > 1}


@lru_cache(maxsize=8)  # each file of a commit asks several times
def _leaf_names(schema: pa.Schema) -> Mapping[ColumnPath, str]:
    """Returns Parquet's name of each leaf column, by its path. Paths inside lists and maps contain a mark."""
    sink = io.BytesIO()
    pq.ParquetWriter(sink, schema, store_schema=False).close()
    leaves = pq.read_metadata(sink).schema
    names = [leaves.column(position).path for position in range(len(leaves))]
    paths = [path for field in schema for path in _leaf_paths(field.type, (field.name,))]
    return dict(zip(paths, names, strict=True))


def _leaf_paths(kind: pa.DataType, path: ColumnPath) -> Iterator[ColumnPath]:
    children = [kind.field(number) for number in range(kind.num_fields)]
    if pa.types.is_map(kind):
        children = [kind.key_field, kind.item_field]
    if not children:
        yield path
    for child in children:
        # The mark keeps a leaf inside a list or map apart from any column that a user could name.
        inside = () if pa.types.is_struct(kind) else ("[]",)
        yield from _leaf_paths(child.type, (*path, *inside, child.name))


def _type_at(schema: pa.Schema, path: ColumnPath) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        if not pa.types.is_struct(kind):
            return pa.null()
        kind = kind.field(name).type
    return kind


def _encoding(column: pa.ChunkedArray, compression: Mapping[str, Any]) -> str | None:
    """Returns the best encoding that is smaller than a dictionary, or None."""
    kind = column.type
    other = _other_encoding(kind)
    if other is None:
        return None
    sample = column.slice((len(column) - _MEASURED_ROWS) // 2, _MEASURED_ROWS)
    distinct, valid = pc.count_distinct(sample).as_py(), len(sample) - sample.null_count
    if distinct * _PLAINLY_REPEATED <= valid:
        return None
    # If hardly any value repeats in a sample, hardly any repeats often in the whole column.
    nearly_unique, valid = distinct > _NEARLY_UNIQUE * valid, len(column) - column.null_count
    distinct = valid if nearly_unique else pc.count_distinct(column).as_py()
    if distinct * _PLAINLY_REPEATED <= valid:
        return None
    plain = _column_bytes_per_row(sample, "PLAIN", compression)
    best, size = "PLAIN", plain
    if other != "PLAIN":
        packed = _column_bytes_per_row(sample, other, compression)
        if packed < _WORTH * plain:
            best, size = other, packed
    # A dictionary holds each distinct value once, and each non-null row takes a code of that many bits.
    with_dictionary = (plain * distinct + valid * distinct.bit_length() / 8 * valid / len(column)) / max(1, valid)
    return best if size < with_dictionary else None


def _other_encoding(kind: pa.DataType) -> str | None:
    types = pa.types
    whole = types.is_integer(kind) or types.is_date32(kind) or types.is_timestamp(kind) or types.is_duration(kind)
    if whole or (types.is_decimal(kind) and kind.precision <= DIGITS_OF_EIGHT_BYTES):
        return "DELTA_BINARY_PACKED"
    if types.is_string(kind) or types.is_binary(kind):
        return "DELTA_LENGTH_BYTE_ARRAY"
    return "PLAIN" if types.is_floating(kind) else None


def _column_bytes_per_row(column: pa.ChunkedArray, encoding: str, compression: Mapping[str, Any]) -> float:
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"c": column}),
        sink,
        use_dictionary=False,
        column_encoding=None if encoding == "PLAIN" else {"c": encoding},
        store_decimal_as_integer=True,
        write_statistics=False,
        store_schema=False,
        **compression,
    )
    return len(sink.getvalue()) / max(1, len(column))


def encoded_bytes_per_row(
    rows: pa.Table, settings: ParquetSettings, target_file_bytes: int, without: Sequence[str] = ()
) -> float:
    """Returns the bytes that a row takes in a file of the target size, measured by writing some rows.

    Args:
        rows: The rows to measure.
        settings: How files are written.
        target_file_bytes: Target size of a file. If that is only a few rows, `Encodings` keeps dictionaries.
        without: Columns that files do not hold.
    """
    kept = rows.drop_columns(list(without)) if without else rows
    per_row = _bytes_per_row(kept, settings, DICTIONARIES)
    if target_file_bytes < _FEWEST_ROWS * per_row:
        return per_row
    return _bytes_per_row(kept, settings, Encodings.of(kept, settings.codec))


def _bytes_per_row(rows: pa.Table, settings: ParquetSettings, encodings: Encodings) -> float:
    sink = io.BytesIO()
    with settings.open(sink, rows.schema, encodings=encodings) as writer:
        writer.write_table(rows)
    return len(sink.getvalue()) / max(1, int(rows.num_rows))


def ordered_by(rows: pa.Table, curve_values: np.ndarray) -> pa.Table:
    """Returns the rows in the order of the curve. Rows with equal curve values keep their order."""
    return rows.take(pa.array(np.argsort(curve_values, kind="stable")))
