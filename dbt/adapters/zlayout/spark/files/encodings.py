"""Chooses the encodings of a file's columns by measuring some rows, unless a dictionary clearly pays off."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.spark.schema.arrow_columns import DIGITS_OF_EIGHT_BYTES

FEWEST_ROWS = 1 << 14
_MEASURED_ROWS = 1 << 14
# If values repeat this often on average, a dictionary always pays off.
_PLAINLY_REPEATED = 16
_NEARLY_UNIQUE = 0.98
# Other encodings cost readers more than plain values do, so they have to save some space.
_WORTH = 0.95


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
        if rows.num_rows < FEWEST_ROWS:
            return cls()
        found = {name: _encoding(rows.column(name), compression) for name in rows.column_names}
        return cls({name: each for name, each in found.items() if each is not None})

    def options(self, leaf_names: list[str]) -> dict[str, Any]:
        """Returns the encodings as options of ``ParquetWriter``.

        Args:
            leaf_names: Parquet's names of all leaf columns of the schema.
        """
        if not self.chosen:
            return {}
        encoded = {name: each for name, each in self.chosen.items() if each != "PLAIN"}
        return {
            "use_dictionary": [name for name in leaf_names if name not in self.chosen],
            "column_encoding": encoded or None,
        }


DICTIONARIES = Encodings()


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
    plain = _bytes_per_row(sample, "PLAIN", compression)
    best, size = "PLAIN", plain
    if other != "PLAIN":
        packed = _bytes_per_row(sample, other, compression)
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


def _bytes_per_row(column: pa.ChunkedArray, encoding: str, compression: Mapping[str, Any]) -> float:
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
