"""Published tables read by Trino, whose server runs here: it gets plain Spark's rows and skips files."""

import re
from pathlib import Path

import environments
import pyarrow as pa
import pytest
from catalogs import catalog_of
from foreign_engine import ForeignEngine
from published_tables import TABLES, assert_conditions_mean_the_same, assert_follows_commits, folder_of, rows_of
from trino_server import trino_of
from trino_values import plain

from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = [
    pytest.mark.newest_spark,
    pytest.mark.exhaustive,
    pytest.mark.skipif(
        environments.java_home(environments.JAVA_OF_TRINO) is None,
        reason=f"Trino needs Java {environments.JAVA_OF_TRINO} or newer, in JAVA_HOME or below /usr/lib/jvm",
    ),
]
PAGE = (Path(__file__).parents[2] / "docs" / "readers" / "trino.md").read_text()
DELTA, DELTA_SQL, ICEBERG, ICEBERG_SQL = re.findall(r"```\w+\n(.*?)\n```", PAGE, re.DOTALL)
TYPES = {
    "tinyint": "int8",
    "smallint": "int16",
    "integer": "int32",
    "bigint": "int64",
    "real": "float",
    "double": "double",
    "boolean": "bool",
    "varbinary": "binary",
    "varchar": "string",
    "date": "date32[day]",
    "timestamp(6)": "timestamp[us]",
    "timestamp(3) with time zone": "timestamp[us, tz=UTC]",
    "timestamp(6) with time zone": "timestamp[us, tz=UTC]",
}


@pytest.fixture(scope="module")
def trino(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trino")
    with pytest.MonkeyPatch.context() as patch, catalog_of("rest", folder / "rest") as lakehouse:
        for key, value in lakehouse.items():
            patch.setenv(f"PYICEBERG_CATALOG__LAKEHOUSE__{key.upper()}", value)
        catalogs = {
            "lake": DELTA.replace("/lake", str(folder)),
            "lakehouse": ICEBERG.replace("http://localhost:8181", lakehouse["uri"]),
        }
        with trino_of(folder / "server", catalogs) as port:
            engine = ForeignEngine(environments.python_of("trino"), "trino_reader.py", str(port))
            yield engine
            engine.close()


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def publish(request, trino):
    """Settings with which a table is published, and what tells its name there, once Trino knows it."""

    def registered(table):
        schema, name = table.name.split(".")
        if request.param == "iceberg":
            return f"lakehouse.{schema}.{name}"
        [create, call, _] = DELTA_SQL.splitlines()
        trino.ask(query=create.rstrip(";"))
        call = call.replace("file:///lake/shop/orders", f"file://{folder_of(table)}").replace("'orders'", f"'{name}'")
        trino.ask(query=call.rstrip(";"))
        return f"lake.shop.{name}"

    catalog = {"publish_catalog": "lakehouse"} if request.param == "iceberg" else {}
    return {"publish": [request.param], **catalog}, registered


def plainly(rows, digits):
    """The rows as the reader gives Trino's, with times of so many digits."""
    columns = zip(rows.column_names, rows.columns, strict=True)
    return pa.table({name: [repr(plain(each, digits)) for each in column.to_pylist()] for name, column in columns})


def test_it_reads_every_table_as_plain_spark_does(spark, trino, publish):
    settings, registered = publish
    [kind] = settings["publish"]
    # Iceberg has no shorter integers. Of a Delta table, Trino rounds times to milliseconds.
    types_of_spark, digits = ({"int8": "int32", "int16": "int32"}, 6) if kind == "iceberg" else ({}, 3)
    for name, each in TABLES.items():
        table = ZTable.write(spark, f"z.trino_{kind}_{name}", spark.sql(each.sql), **each.settings, **settings)
        # Trino rounds the last microsecond of the year 9999 up, which Python cannot tell.
        rows = "k <> 7" if name == "limits" else "true"
        source, wanted = registered(table), spark.table(table.name).where(rows).toArrow()
        found = trino.ask(query=f"select * from {source} where {rows}", plainly=True)
        assert rows_of(found, wanted.column_names) == rows_of(plainly(wanted, digits), wanted.column_names), name
        types = trino.ask(query=f"select * from {source} where false", about="types").to_pylist()[0]
        for column in wanted.schema:
            kind_there = types[column.name.lower()]
            if not pa.types.is_nested(column.type) and not pa.types.is_decimal(column.type):
                kind_here = types_of_spark.get(str(column.type), str(column.type))
                assert TYPES[kind_there] == kind_here, f"{name}: {column.name}"


def test_conditions_mean_the_same_and_skip_files(spark, trino, publish):
    settings, registered = publish
    each = TABLES["every_type"]
    table = ZTable.write(
        spark, f"z.trino_{settings['publish'][0]}_skips", spark.sql(each.sql), **each.settings, **settings
    )
    source = registered(table)
    # To Spark, NaN is the greatest number.
    assert_conditions_mean_the_same(spark, trino, source, but={"n > 50", "n >= 100"})
    for condition in ("k = 77", "d < date '0050-01-01'", "dec > 240", "s = 'é😀txt1'"):
        [[read]] = trino.ask(query=f"select k from {source} where {condition}", about="rows_read").to_pydict().values()
        assert 0 < read <= 100, condition


def test_it_follows_commits(spark, trino, publish):
    settings, registered = publish
    rows = spark.sql("select id k, cast(id as int) v, id % 3 p from range(100)")
    table = ZTable.write(
        spark, f"z.trino_{settings['publish'][0]}_kinds", rows, zorder=["k"], partition_by=["p"], **settings
    )
    assert_follows_commits(spark, trino, table, registered(table))


def test_the_lines_of_the_page_work(spark, trino):
    rows = spark.sql("select date_add(date'2026-01-01', int(id)) order_date, id customer_id from range(100)")
    table = ZTable.write(
        spark, "z.orders", rows, zorder=["order_date"], publish=["delta", "iceberg"], publish_catalog="lakehouse"
    )
    for line in DELTA_SQL.replace("/lake/shop/orders", str(folder_of(table))).splitlines():
        found = trino.ask(query=line.rstrip(";"))
    assert found.to_pylist() == [{"_col0": 1}]
    assert trino.ask(query=ICEBERG_SQL.replace("shop", "z").rstrip(";")).to_pylist() == [{"_col0": 1}]
