"""The entries of data files in Iceberg's manifests: partition values, counts and bounds from the index.

Source: the Iceberg table specification, sections Manifests and Appendix D.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from dbt.adapters.zlayout.index.statistics.column_stats import column_paths
from dbt.adapters.zlayout.index.statistics.partitions import only_where, typed_partition_values
from dbt.adapters.zlayout.index.statistics.tracked import decimal_type
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.publish.iceberg_manifests import DIGITS_OF_EIGHT_BYTES, WIDE_BYTES
from dbt.adapters.zlayout.publish.iceberg_schema import IcebergSchema, field_id, partition_types
from dbt.adapters.zlayout.publish.publication import all_finite, misspelled_folder
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

# The entries of a file's maps, in the order of `DataFile`.
_MAPS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
_Values = list[Any]
_FORMS = {
    "boolean": "?",
    **dict.fromkeys(("int", "date"), "<i"),
    **dict.fromkeys(("long", "timestamp", "timestamptz"), "<q"),
}
_ARROW: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}


def data_file_entries(location: str, files: DataFiles, column_stats: pa.Table, schema: IcebergSchema) -> list[DataFile]:
    """Returns the entries of files.

    Args:
        location: The table's folder, not escaped.
        column_stats: What the index has about them, from `TableIndex.stored`. The others have only a row count.
        schema: The columns. The index also knows dropped columns, and those of logs.

    Returns:
        One entry for each file. A bound that is not the value of a row, or that readers disagree about, is left out.

    Raises:
        UnsupportedError: The name of a partition folder is not a value of the column's type.
    """
    rows = pc.index_in(contiguous(files["path"]), value_set=contiguous(column_stats.column("path")))
    row_counts = contiguous(files["row_count"])
    leaves = schema.leaves()
    columns: dict[int, tuple[_Values, ...]] = {
        field_id(path): _column(contiguous(column_stats.column(name)).take(rows), row_counts, leaves[path])
        for path, name in column_paths(column_stats.schema).items()
        if path in leaves and path[0] not in schema.partition_by
    }
    partitions = []
    for name, kind in partition_types(schema).items():
        values = _partition_values(files, name, kind)
        partitions.append(_plain(values, kind))
        columns[field_id((name,))] = _partition_column(values, row_counts.to_pylist(), kind)
    maps = _maps(columns, len(files))
    return [
        DataFile.from_args(
            _table_format_version=2,
            content=DataFileContent.DATA,
            file_path=f"{location}/{path}",
            file_format=FileFormat.PARQUET,
            partition=Record(*partition),
            record_count=row_count,
            file_size_in_bytes=size,
            **dict(zip(_MAPS, found, strict=True)),
        )
        for path, row_count, size, partition, found in zip(
            files["path"].to_pylist(),
            files["row_count"].to_pylist(),
            files["size_bytes"].to_pylist(),
            zip(*partitions, strict=True) if partitions else [()] * len(files),
            maps,
            strict=True,
        )
    ]


def arrow_type(kind: str) -> pa.DataType:
    """Returns the Arrow type of an Iceberg type that is not nested."""
    return decimal_type(kind) or _ARROW[kind]


def _maps(columns: Mapping[int, Sequence[_Values]], count: int) -> list[tuple[dict[int, Any] | None, ...]]:
    """Returns the maps of each file from the values of each column. An empty map is None."""
    ids = list(columns)
    parts = []
    for number in range(len(_MAPS)):
        by_file = zip(*(columns[each][number] for each in ids), strict=True) if ids else [()] * count
        parts.append(
            [
                {each: value for each, value in zip(ids, values, strict=True) if value is not None} or None
                for values in by_file
            ]
        )
    return list(zip(*parts, strict=True))


def _partition_values(files: DataFiles, name: str, kind: str) -> pa.Array:
    typed = typed_partition_values(files.partition_values(name), arrow_type(kind))
    if not pc.all(typed.known, min_count=0).as_py():
        text = files.partition_values(name).filter(pc.invert(typed.known))[0].as_py()
        raise misspelled_folder(name, text, kind, "iceberg")
    return typed.values


def _plain(values: pa.Array, kind: str) -> _Values:
    """Returns values as a partition's record has them: days and microseconds are numbers."""
    if kind == "date":
        values = values.cast(pa.int32())
    elif kind.startswith("timestamp"):
        values = values.cast(pa.int64())
    listed: _Values = values.to_pylist()
    return listed


def _partition_column(values: pa.Array, row_counts: Sequence[int], kind: str) -> tuple[_Values, ...]:
    """Returns the maps' values of a partition column. Some readers skip files by bounds only."""
    floating = pa.types.is_floating(values.type)
    plain = _plain(values, kind)
    nulls = [rows if value is None else 0 for value, rows in zip(plain, row_counts, strict=True)]
    nans = [
        (rows if value is not None and value != value else 0) if floating else None  # noqa: PLR0124 - NaN
        for value, rows in zip(plain, row_counts, strict=True)
    ]
    if floating:
        values = pc.if_else(pc.is_finite(values), values, pa.scalar(None, values.type))
    bounds = _encoded(values, kind)
    return list(row_counts), nulls, nans, bounds, bounds


def _column(stats: pa.StructArray, row_counts: pa.Array, kind: str) -> tuple[_Values, ...]:
    """Returns the maps' values of a column. Statistics of another number of rows are not used."""
    same = pc.fill_null(pc.equal(stats.field("value_count"), row_counts), False)
    unknown = pa.scalar(None, pa.int64())
    counts, nulls, nans = (
        pc.if_else(same, stats.field(name), unknown) for name in ("value_count", "null_count", "nan_count")
    )
    floating = pa.types.is_floating(stats.field("min").type)
    usable = pc.and_(same, all_finite(stats)) if floating else same
    bounds = []
    for side in ("min", "max"):
        values, proven = stats.field(side), usable
        if kind not in ("string", "binary"):
            # Readers answer MIN and MAX with bounds, but not with those of texts, which may be cut.
            proven = pc.and_kleene(proven, stats.field(f"{side}_exact"))
        bounds.append(_encoded(only_where(values, proven), kind))
    # Readers skip files of nothing but NaN, though Spark takes NaN for the greatest number.
    other_values = pc.less(pc.add(nans, pc.fill_null(nulls, 0)), counts)
    nan_counts = only_where(nans, other_values).to_pylist() if floating else [None] * len(stats)
    return counts.to_pylist(), nulls.to_pylist(), nan_counts, *bounds


def _encoded(values: pa.Array, kind: str) -> _Values:
    """Returns bounds in Iceberg's binary form; none if they have another type than the column."""
    wanted = arrow_type(kind)
    if values.type != wanted:
        integers = pa.types.is_integer(values.type) and pa.types.is_integer(wanted)
        decimals = pa.types.is_decimal(values.type) and pa.types.is_decimal(wanted)
        if not integers and not (decimals and values.type.scale == wanted.scale):
            return [None] * len(values)
        values = values.cast(wanted)
    if pa.types.is_floating(wanted):
        # Footers have -0.0 for the minimum of 0.0 and 0.0 for the maximum of -0.0, and readers differ on their order.
        values = only_where(values, pc.not_equal(values, 0))
    encode = _encoder(kind)
    return [None if value is None else encode(value) for value in _plain(values, kind)]


def _encoder(kind: str) -> Callable[[Any], bytes]:
    if kind.startswith("decimal"):
        fewest = WIDE_BYTES if arrow_type(kind).precision > DIGITS_OF_EIGHT_BYTES else 1
        return lambda value: _decimal_bytes(value, fewest)
    if kind in ("float", "double"):
        return struct.Struct("<f" if kind == "float" else "<d").pack
    if kind == "string":
        return str.encode
    return bytes if kind == "binary" else struct.Struct(_FORMS[kind]).pack


def _decimal_bytes(value: Decimal, fewest: int) -> bytes:
    """Returns the digits of a decimal as one number.

    Args:
        fewest: How many bytes it has at least. DuckDB 1.4 reads decimals of more than 18 digits only from 16 bytes.
    """
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits)))
    number = -number if sign else number
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes(max((bits + 7) // 8, fewest), "big", signed=True)
