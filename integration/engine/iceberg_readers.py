"""Readers of Iceberg tables that know nothing of this package: pyiceberg, DuckDB and ClickHouse."""

import contextlib
import re
from functools import cache
from pathlib import Path

import duckdb
import duckdb_ext
import pyarrow as pa
from chdb import session
from published_tables import folder_of, rows_of
from pyiceberg.table import StaticTable


@cache
def _duckdb():
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    [folder] = duckdb_ext.__path__
    for name in ("avro", "iceberg"):
        [extension] = Path(folder).glob(f"extensions/*/*/{name}.duckdb_extension")
        connection.execute(f"load '{extension}'")
    connection.execute("set timezone='UTC'")
    return connection


@cache
def _clickhouse():
    return session.Session()


def static_table(folder):
    """The table as pyiceberg opens it by its path."""
    return StaticTable.from_metadata(f"file://{folder}")


def pyiceberg_filter(condition):
    """A condition in pyiceberg's words."""
    condition = re.sub(r"(date|timestamp) '", "'", condition).replace(" 00:00:00'", "T00:00:00'")
    return {"b": "b = true", "not b": "b = false"}.get(condition, condition)


def by_pyiceberg(folder, condition="true", columns="*"):
    """The rows that meet a condition, as an Arrow table."""
    options = {} if condition == "true" else {"row_filter": pyiceberg_filter(condition)}
    return static_table(folder).scan(selected_fields=(columns,), **options).to_arrow()


def by_duckdb(folder, condition="true", columns="*"):
    """The same from DuckDB."""
    return _duckdb().sql(f"select {columns} from iceberg_scan('{folder}') where {condition}").to_arrow_table()


def duckdb_answer(query):
    """The rows of DuckDB's answer to a query."""
    return _duckdb().sql(query).fetchall()


def clickhouse_answer(query, form="ArrowStream"):
    """ClickHouse's answer to a query; it reads local files below the working folder only."""
    with contextlib.chdir("/"):
        return _clickhouse().query(query, form).bytes()


def by_clickhouse(folder, condition="true", columns="*"):
    """The same from ClickHouse. Its structs, lists and maps cannot be null, so they are left out."""
    if columns == "*":
        names = [each.name for each in static_table(folder).schema().fields if each.field_type.is_primitive]
        columns = ", ".join(f"`{name}`" for name in names)
    query = f"select {columns} from icebergLocal('{folder}') where {condition}"
    return pa.ipc.open_stream(clickhouse_answer(query)).read_all()


READERS = {"pyiceberg": by_pyiceberg, "duckdb": by_duckdb, "clickhouse": by_clickhouse}


def files_opened_by_duckdb(folder, condition):
    """How many files DuckDB opens for a condition, as it says itself."""
    text = str(
        _duckdb().sql(f"explain analyze select count(*) from iceberg_scan('{folder}') where {condition}").fetchall()
    )
    [_, after] = text.split("Total Files Read: ", 1)
    return int("".join(letter for letter in after[:8] if letter.isdigit()))


def plain(rows):
    """Rows as every reader can give them: ClickHouse has other zones, and text in place of binary."""
    return rows.from_arrays(list(map(_plain, rows.columns)), rows.column_names)


def _plain(column):
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", "UTC" if kind.tz else None)).cast(pa.timestamp("us"))
    return column.cast("binary") if kind in (pa.string(), pa.large_string()) else column


def assert_seen(spark, table):
    """Every reader sees exactly the rows of plain Spark."""
    wanted = plain(spark.table(table.name).toArrow())
    for name, read in READERS.items():
        found = plain(read(folder_of(table)))
        columns = [each for each in wanted.column_names if name != "clickhouse" or each in found.column_names]
        assert rows_of(found, columns) == rows_of(wanted, columns), name
        assert name == "clickhouse" or sorted(found.column_names) == sorted(wanted.column_names), name


def log_records_not_shown(folder):
    """How many records in logs the newest metadata says that it does not show; None if it says nothing."""
    number = static_table(folder).properties.get("zlayout.log_records_not_shown")
    return None if number is None else int(number)
