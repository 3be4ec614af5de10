"""The files of other software in a published table: what readers of Delta and Iceberg would misread is refused.

Plain Spark finds columns in any case, and reads values of other types. Readers of published tables do not, or not all.
What is said here of them was tried with DuckDB, delta-rs, Polars, pyiceberg and ClickHouse.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.index.footers.footer import footer_in
from dbt.adapters.zlayout.index.footers.parquet_values import (
    DAY_US,
    FIRST_SAFE_DAY,
    is_of_old_calendar,
    is_of_todays_calendar,
)
from dbt.adapters.zlayout.index.statistics.column_stats import column_paths
from dbt.adapters.zlayout.index.statistics.tracked import decimal_type
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.log.entry import TableState

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_STORED: Mapping[str, tuple[pa.DataType, ...]] = {
    "boolean": (pa.bool_(),),
    "float": (pa.float32(),),
    "double": (pa.float64(),),
    "date": (pa.date32(), pa.date64()),
    "string": (pa.string(), pa.large_string(), pa.string_view()),
    "binary": (pa.binary(), pa.large_binary(), pa.binary_view()),
}
# The first day of today's calendar.
_FIRST_DAY = (dt.date(1582, 10, 15) - dt.date(1970, 1, 1)).days
# Spellings of UTC; pyiceberg reads times in no other zone.
_UTC = {"UTC", "Etc/UTC", "+00:00", "Z"}
# The nanoseconds that 64 bits hold, in microseconds from 1970: until 2262-04-11, and from 1677-09-21.
_MOST_INT96 = (2**63 - 1) // 1000
_PER_SECOND = {"milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}
_FIRST_SECOND = FIRST_SAFE_DAY * DAY_US // _PER_SECOND["microseconds"]


@dataclass(frozen=True)
class AdoptedFile:
    """A file of other software.

    Attributes:
        columns: Its columns, with their field ids.
    """

    path: str
    footer: pq.FileMetaData
    columns: pa.Schema


def opened(store: Store, paths: Iterable[str]) -> Iterator[AdoptedFile]:
    """Yields files with their footers.

    Raises:
        UnsupportedError: A footer cannot be read.
        StoreError: The store failed.
    """
    for path in paths:
        try:
            footer = footer_in(store, path)
            columns = footer.schema.to_arrow_schema()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UnsupportedError(f"the footer of {path} cannot be read ({error}); rewrite this file") from error
        yield AdoptedFile(path, footer, columns)


def check_readable(file: AdoptedFile, state: TableState, column_stats: pa.Table, format_name: str) -> None:
    """Checks that readers of a format find in a file what plain Spark finds.

    Args:
        column_stats: What the index has about the files, from `TableIndex.stored`.

    Raises:
        UnsupportedError: They do not.
    """
    schema = json.loads(state.schema_json)
    problem = _other_columns(schema, file.columns, "", format_name)
    if problem is None and format_name == "iceberg":
        # Readers of Delta take the value of the folder.
        stored = next((each for each in state.partition_by if each in file.columns.names), None)
        problem = (
            stored and f"holds the partition column '{stored}', which readers take from it and not from the folder"
        )
    problem = problem or _old_times(file.footer, [each["name"] for each in schema["fields"]])
    problem = problem or _wide_times(file, column_stats)
    if problem:
        raise refused(file, problem, format_name)


def refused(file: AdoptedFile, problem: str, format_name: str) -> UnsupportedError:
    """Returns the error for a file that cannot be published."""
    return UnsupportedError(
        f"{file.path} {problem}; rewrite it (cluster with rewrite_all), or remove '{format_name}' from publish"
    )


def _other_columns(struct: Mapping[str, Any], columns: Iterable[pa.Field], name: str, format_name: str) -> str | None:
    """Returns what is wrong with the columns of a file, or with the fields of a struct in it; None if nothing is."""
    kinds = {each["name"]: each["type"] for each in struct["fields"]}
    folded = {each.lower() for each in kinds}
    for each in columns:
        below = f"{name}.{each.name}" if name else each.name
        if each.name in kinds:
            problem = _other_type(kinds[each.name], each.type, below, format_name)
            if problem is not None:
                return problem
        elif each.name.lower() in folded:
            return f"spells column '{below}' in another case than the table, and readers would not find it"
    return None


def _other_type(kind: Any, found: pa.DataType, name: str, format_name: str) -> str | None:
    """Returns what is wrong with the type of a column in a file."""
    types = pa.types
    # pyiceberg cannot read files with dictionaries and files without in one table.
    if types.is_dictionary(found) and format_name != "iceberg":
        found = found.value_type
    if isinstance(kind, str):
        # pyiceberg knows no columns that are nothing but null.
        if _is_read(kind, found, format_name) or (types.is_null(found) and format_name == "delta"):
            return None
        return f"stores column '{name}' of type {kind} as {found}, which some readers cannot read as such"
    if kind["type"] == "struct" and types.is_struct(found):
        return _other_columns(kind, found, name, format_name)
    if kind["type"] == "array" and (types.is_list(found) or types.is_large_list(found)):
        return _other_type(kind["elementType"], found.value_type, name, format_name)
    if kind["type"] == "map" and types.is_map(found):
        return _other_type(kind["keyType"], found.key_type, name, format_name) or _other_type(
            kind["valueType"], found.item_type, name, format_name
        )
    return f"stores column '{name}' of type {kind['type']} as {found}, which some readers cannot read as such"


def _is_read(kind: str, found: pa.DataType, format_name: str) -> bool:
    """Returns whether all readers take values of a type in a file for those of the column's type."""
    decimal = decimal_type(kind)
    if decimal is not None:
        is_decimal = bool(pa.types.is_decimal(found))
        return is_decimal and found.scale == decimal.scale and found.precision <= decimal.precision
    if kind in _BITS:
        if format_name == "iceberg":
            # Iceberg has no integers of fewer bits. For filters, pyiceberg takes unsigned ones for signed ones.
            return bool(pa.types.is_signed_integer(found)) and found.bit_width <= max(_BITS[kind], 32)
        is_integer = bool(pa.types.is_integer(found))
        return is_integer and found.bit_width + pa.types.is_unsigned_integer(found) <= _BITS[kind]
    if kind in ("timestamp", "timestamp_ntz"):
        is_time = bool(pa.types.is_timestamp(found))
        return is_time and (format_name != "iceberg" or found.tz is None or found.tz in _UTC)
    # Readers compare 32-bit floats with constants that they have rounded to 32 bits: no column of doubles has them.
    return found in _STORED.get(kind, _STORED["string"])


def _old_times(footer: pq.FileMetaData, columns: Collection[str]) -> str | None:
    """Returns what is wrong with dates and times that Spark shifts from an older calendar, and readers do not."""
    if is_of_todays_calendar(footer.metadata or {}):
        return None
    stated = is_of_old_calendar(footer.metadata or {})
    for position in range(footer.num_columns):
        leaf = footer.schema.column(position)
        logical = json.loads(leaf.logical_type.to_json())
        if logical["Type"] == "Date":
            first = _FIRST_DAY
        elif logical["Type"] == "Timestamp":
            first = _FIRST_SECOND * _PER_SECOND[logical["timeUnit"]]
        elif leaf.physical_type == "INT96":
            first = 0
        else:
            continue
        known, least = _minimum(footer, position)
        old = stated if not known else least is not None and least < first
        if old and any(leaf.path == each or leaf.path.startswith(f"{each}.") for each in columns):
            before = "1582-10-15" if first == _FIRST_DAY else "1900"
            may = "holds" if known else "may hold"
            return f"{may} values before {before} in column '{leaf.path}', of a calendar that readers do not know"
    return None


def _wide_times(file: AdoptedFile, column_stats: pa.Table) -> str | None:
    """Returns what is wrong with times of 96 bits, which most readers take as nanoseconds since 1970 in 64 bits.

    Footers have no bounds of such times. The index has some if it tracks the column.
    """
    leaves = map(file.footer.schema.column, range(file.footer.num_columns))
    wide = [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]
    if not wide:
        return None
    here = column_stats.filter(pc.equal(column_stats["path"], file.path))
    tracked = {".".join(path): name for path, name in column_paths(column_stats.schema).items()}
    for path in filter(tracked.__contains__, wide):
        for side in ("min", "max"):
            bounds = pc.struct_field(here[tracked[path]], side)
            if pa.types.is_timestamp(bounds.type) and any(
                abs(each) > _MOST_INT96 for each in bounds.cast(pa.int64()).to_pylist() if each is not None
            ):
                return f"stores times before 1678 or after 2261 in 96 bits, which readers misread, in '{path}'"
    return None


def _minimum(footer: pq.FileMetaData, position: int) -> tuple[bool, int | None]:
    """Returns whether the least value of a column is known, and the value; None if all are null."""
    found = []
    for number in range(footer.num_row_groups):
        chunk = footer.row_group(number).column(position)
        statistics = chunk.statistics
        if statistics is not None and statistics.has_null_count and statistics.null_count == chunk.num_values:
            continue
        if statistics is None or not statistics.has_min_max or chunk.physical_type == "INT96":
            return not chunk.num_values, None
        found.append(int(statistics.min_raw))
    return True, min(found, default=None)
