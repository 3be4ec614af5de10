"""Writing one Parquet file with Arrow, row group by row group, so that every Spark reads it as one of its own."""

from __future__ import annotations

import io
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.columns import at_path


@dataclass(frozen=True)
class ParquetSettings:
    """How data files are written.

    Attributes:
        compression: Parquet codec, as Arrow names it ('none' for no compression).
        schema_json: Spark's schema of the data columns, stored in the footer.
        spark_version: Of the writing session. Without it Spark takes dates before 1582 for ambiguous and refuses them.
    """

    compression: str
    schema_json: str
    spark_version: str

    def open(self, sink: object, schema: pa.Schema) -> pq.ParquetWriter:
        """A writer for rows of a schema."""
        writer = pq.ParquetWriter(
            sink,
            schema,
            compression=self.compression,
            compression_level=3 if self.compression == "zstd" else None,
            version="2.6",
            store_decimal_as_integer=True,
            write_page_index=True,
            store_schema=False,
        )
        # Not by way of the schema: its metadata is dropped together with Arrow's own copy of the schema.
        writer.add_key_value_metadata(
            {
                "org.apache.spark.version": self.spark_version,
                "org.apache.spark.sql.parquet.row.metadata": self.schema_json,
            }
        )
        return writer


@dataclass(frozen=True)
class WrittenFile:
    """A finished local file, before it is put in place.

    Attributes:
        local: Where it lies now.
        metadata: Its footer.
        nan_counts: NaN values of each float path that was asked for.
        null_counts: Nulls of each column that was asked for.
    """

    local: Path
    row_count: int
    size_bytes: int
    metadata: pq.FileMetaData
    nan_counts: dict[ColumnPath, int]
    null_counts: dict[str, int]


class ParquetFile:
    """One file being written in a scratch folder.

    Args:
        scratch: A local folder.
        schema: Arrow types of the data columns.
        settings: How to write.
        float_paths: Float columns whose NaNs are counted, since footers do not.
        required: Columns whose nulls are counted.
    """

    def __init__(
        self,
        scratch: Path,
        schema: pa.Schema,
        settings: ParquetSettings,
        float_paths: Sequence[ColumnPath],
        required: Sequence[str],
    ) -> None:
        self._local = scratch / f".{uuid.uuid4().hex}.parquet"
        self._writer = settings.open(str(self._local), schema)
        self._schema = schema
        self._float_paths = tuple(float_paths)
        self._nans = dict.fromkeys(self._float_paths, 0)
        self._nulls = {name: 0 for name in required if name in schema.names}
        self.row_count = 0

    def write_row_group(self, rows: pa.Table) -> None:
        """Appends the rows, in their order, as one row group."""
        if not rows.num_rows:
            return
        for path in self._float_paths:
            self._nans[path] += int(pc.sum(pc.is_nan(at_path(rows, path))).as_py() or 0)
        for name in self._nulls:
            self._nulls[name] += rows.column(name).null_count
        self._writer.write_table(rows.select(self._schema.names), row_group_size=rows.num_rows)
        self.row_count += rows.num_rows

    def bytes_so_far(self) -> int:
        """Size of what is on disk, the footer not counted."""
        return self._local.stat().st_size

    def close(self) -> WrittenFile:
        """Writes the footer."""
        self._writer.close()
        return WrittenFile(
            self._local,
            self.row_count,
            self.bytes_so_far(),
            pq.read_metadata(self._local),
            dict(self._nans),
            dict(self._nulls),
        )

    def discard(self) -> None:
        """Removes what was written."""
        self._writer.close()
        self._local.unlink(missing_ok=True)


def encoded_bytes_per_row(rows: pa.Table, settings: ParquetSettings, without: Sequence[str]) -> float:
    """Bytes that a row takes in a file, measured by writing some."""
    sink = io.BytesIO()
    kept = rows.drop_columns(list(without)) if without else rows
    with settings.open(sink, kept.schema) as writer:
        writer.write_table(kept)
    return len(sink.getvalue()) / max(1, int(rows.num_rows))


def ordered_by(rows: pa.Table, curve_values: np.ndarray) -> pa.Table:
    """The rows in the curve's order; rows of equal value keep theirs."""
    return rows.take(pa.array(np.argsort(curve_values, kind="stable")))
