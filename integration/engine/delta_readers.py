"""Readers of Delta tables that know nothing of this package: delta-rs with DataFusion, DuckDB, Polars, ClickHouse, Daft."""

import sys
from functools import cache
from pathlib import Path

import duckdb
import duckdb_ext
import environments
import polars
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from foreign_engine import ForeignEngine
from published_tables import folder_of, kind_of, rows_of


@cache
def _duckdb():
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    [folder] = duckdb_ext.__path__
    [extension] = Path(folder).glob("extensions/*/*/delta.duckdb_extension")
    connection.execute(f"load '{extension}'")
    connection.execute("set timezone='UTC'")
    return connection


def by_delta_rs(folder, condition="true", columns="*"):
    """The rows that meet a condition, as an Arrow table."""
    builder = QueryBuilder().register("t", DeltaTable(str(folder)))
    return pa.table(builder.execute(f"select {columns} from t where {condition}").read_all())


def by_duckdb(folder, condition="true", columns="*"):
    """The same from DuckDB."""
    return _duckdb().sql(f"select {columns} from delta_scan('{folder}') where {condition}").to_arrow_table()


def duckdb_answer(query):
    """The rows of DuckDB's answer to a query."""
    return _duckdb().sql(query).fetchall()


def by_polars(folder, condition="true", columns="*"):
    """The same from Polars."""
    context = polars.SQLContext(t=polars.scan_delta(str(folder)))
    return context.execute(f"select {columns} from t where {condition}", eager=True).to_arrow()


@cache
def _clickhouse():
    return ForeignEngine(sys.executable, "clickhouse_reader.py")


def clickhouse_answer(query):
    """ClickHouse's answer to a query, as an Arrow table."""
    return _clickhouse().ask(query=query)


def by_clickhouse(folder, condition="true", columns="*", plain=False):
    """The same from ClickHouse; or the rows of a plain Parquet file."""
    source = f"file('{folder}', Parquet)" if plain else f"deltaLakeLocal('{folder}')"
    return clickhouse_answer(f"select {columns} from {source} where {condition}")


@cache
def _daft():
    return ForeignEngine(environments.python_of("daft"), "daft_reader.py")


def by_daft(folder, condition="true", columns="*", plain=False):
    """The same from Daft."""
    return _daft().ask(folder=str(folder), condition=condition, columns=columns, plain=plain)


READERS = {
    "delta-rs": by_delta_rs,
    "duckdb": by_duckdb,
    "polars": by_polars,
    "clickhouse": by_clickhouse,
    "daft": by_daft,
}
# These have not all of Spark's values or comparisons: what a plain Parquet file with the same rows gives them counts.
OWN_WAYS = {"clickhouse": by_clickhouse, "daft": by_daft}


def files_opened_by_duckdb(folder, condition):
    """How many files DuckDB opens for a condition, as it says itself."""
    text = str(
        _duckdb().sql(f"explain analyze select count(*) from delta_scan('{folder}') where {condition}").fetchall()
    )
    [_, after] = text.split("Total Files Read: ", 1)
    return int("".join(letter for letter in after[:8] if letter.isdigit()))


def files_opened_by_clickhouse(folder, condition):
    """The same of ClickHouse, which counts them."""
    query = f"select * from deltaLakeLocal('{folder}') where {condition}"
    return _clickhouse().ask(query=query, files=True)["files"][0].as_py()


def plain_file(table, path):
    """Writes the rows as a Parquet file that every reader can read on its own."""
    pq.write_table(table, path, use_dictionary=False)
    return path


def own_columns(found, wanted):
    """The columns that a reader shows in other values or types than plain Spark."""
    return {
        name
        for name in wanted.column_names
        if kind_of(found.schema.field(name).type) != kind_of(wanted.schema.field(name).type)
        or repr(found[name].to_pylist()) != repr(wanted[name].to_pylist())
    }


def clickhouse_lacks(schema):
    """The columns of which it has no such values: times without a zone, binary, and null arrays, maps and structs."""
    return {
        each.name
        for each in schema
        if pa.types.is_nested(each.type)
        or pa.types.is_binary(each.type)
        or (pa.types.is_timestamp(each.type) and each.type.tz is None)
    }


def assert_seen(spark, table, but=()):
    """Every reader sees exactly the rows of plain Spark, in its types; `but` names readers that are known not to."""
    wanted = spark.table(table.name).toArrow()
    columns, folder = wanted.column_names, folder_of(table)
    for name, read in READERS.items():
        if name in but:
            continue
        found = read(folder)
        assert sorted(found.column_names) == sorted(columns), name
        compared = columns
        if name in OWN_WAYS:
            plain = OWN_WAYS[name](plain_file(wanted, f"{folder}.rows.parquet"), plain=True)
            strange = clickhouse_lacks(wanted.schema) if name == "clickhouse" else set()
            assert own_columns(plain, wanted) <= strange, name
            assert rows_of(found, columns) == rows_of(plain, columns), name
            compared = [each for each in columns if each not in own_columns(plain, wanted)]
        for column in compared:
            kinds = [kind_of(each.schema.field(column).type) for each in (found, wanted)]
            assert kinds[0] == kinds[1], f"{name}: {column}"
        assert rows_of(found, compared) == rows_of(wanted, compared), name


def log_records_not_shown(folder):
    """How many records in logs the newest commit says that it does not show; None if it says nothing."""
    return DeltaTable(str(folder)).history(1)[0].get("zlayout.log_records_not_shown")
