"""Readers of Delta tables that know nothing of this package: delta-rs with DataFusion, DuckDB and Polars."""

from functools import cache
from pathlib import Path

import duckdb
import duckdb_ext
import polars
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder


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


READERS = {"delta-rs": by_delta_rs, "duckdb": by_duckdb, "polars": by_polars}


def files_opened_by_duckdb(folder, condition):
    """How many files DuckDB opens for a condition, as it says itself."""
    text = str(
        _duckdb().sql(f"explain analyze select count(*) from delta_scan('{folder}') where {condition}").fetchall()
    )
    [_, after] = text.split("Total Files Read: ", 1)
    return int("".join(letter for letter in after[:8] if letter.isdigit()))
