"""Readers of Delta tables that know nothing of this package: delta-rs with DataFusion, DuckDB and Polars."""

from functools import cache

import duckdb
import duckdb_ext
import polars
from deltalake import DeltaTable, QueryBuilder
from pathlib import Path


@cache
def duckdb_connection():
    """A connection that reads times as UTC, like the tests' Spark session."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    [folder] = duckdb_ext.__path__
    [extension] = Path(folder).glob("extensions/*/*/delta.duckdb_extension")
    connection.execute(f"load '{extension}'")
    connection.execute("set timezone='UTC'")
    return connection


def by_delta_rs(folder, condition="true", columns="*"):
    """Rows as an Arrow table."""
    import pyarrow as pa
    query = QueryBuilder().register("t", DeltaTable(str(folder))).execute(f"select {columns} from t where {condition}")
    return pa.table(query.read_all())


def by_duckdb(folder, condition="true", columns="*"):
    return duckdb_connection().sql(f"select {columns} from delta_scan('{folder}') where {condition}").to_arrow_table()


def by_polars(folder, condition="true", columns="*"):
    frame = polars.scan_delta(str(folder))
    return polars.SQLContext(t=frame).execute(f"select {columns} from t where {condition}", eager=True).to_arrow()


READERS = {"delta-rs": by_delta_rs, "duckdb": by_duckdb, "polars": by_polars}
