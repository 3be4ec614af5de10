"""A published table read by Spark with Iceberg, in a process of its own: it gets plain Spark's rows and skips files."""

import json
import re
import sys
from pathlib import Path

import environments
import pyspark
import pytest
from foreign_engine import ForeignEngine
from published_tables import (
    TABLES,
    as_arrow,
    assert_conditions_mean_the_same,
    assert_follows_commits,
    assert_skips_files,
    folder_of,
    rows_of,
)

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.table.ztable import ZTable

SPARK = pyspark.__version__.rpartition(".")[0]
pytestmark = pytest.mark.skipif(
    SPARK not in environments.JARS["iceberg"], reason=f"Iceberg has no release for Spark {SPARK} that is tested here"
)


def name_in(catalog, table):
    """The table's name in a catalog whose warehouse is the folder above the schema's folder."""
    return f"{catalog}.`{folder_of(table).parent.name}`.`{folder_of(table).name}`"


@pytest.fixture(scope="module")
def iceberg_spark(spark):
    warehouse = folder_of(ZTable.write(spark, "z.is_place", spark.range(1))).parents[1]
    page = (Path(__file__).parents[2] / "docs" / "readers" / "iceberg.md").read_text()
    lines = dict(re.findall(r"--conf (\S+?)=(\S+)", page))
    settings = {**environments.jar_settings("iceberg", SPARK), **lines}
    assert settings["spark.sql.catalog.lake.warehouse"] == "/lake"
    settings |= {"spark.sql.catalog.lake.warehouse": str(warehouse), "spark.sql.catalog.lake.cache-enabled": "false"}
    engine = ForeignEngine(sys.executable, "spark_reader.py", json.dumps(settings))
    yield engine
    engine.close()


class TestSparkWithIceberg:
    """One session for all of them: starting it takes longer than they do."""

    def test_it_reads_every_table_as_plain_spark_does_and_skips_files(self, spark, iceberg_spark):
        refused = []
        for name, each in TABLES.items():
            settings = {**each.settings, "publish": ["iceberg"]}
            try:
                table = ZTable.write(spark, f"z.is_{name}", spark.sql(each.sql), **settings)
            except ConfigError as error:
                assert "partition column" in str(error)  # noqa: PT017 - the others are written
                refused.append(name)
                continue
            wanted = as_arrow(spark.table(table.name))
            found = iceberg_spark.ask(query=f"select * from {name_in('lake', table)}")
            assert rows_of(found, wanted.column_names) == rows_of(wanted, wanted.column_names), name
        assert len(refused) < len(TABLES) / 2, refused
        table = ZTable.for_name(spark, "z.is_every_type")
        source = name_in("lake", table)
        assert_conditions_mean_the_same(spark, iceberg_spark, source)
        conditions = ("k = 77", "d < date'0050-01-01'", "dec > 240")
        assert_skips_files(iceberg_spark, source, len(table.snapshot().files), conditions)

    def test_it_follows_commits(self, spark, iceberg_spark):
        rows = spark.sql("select id k, cast(id as int) v, id % 3 p from range(100)")
        table = ZTable.write(spark, "z.is_kinds", rows, zorder=["k"], partition_by=["p"], publish=["iceberg"])
        assert_follows_commits(spark, iceberg_spark, table, name_in("lake", table))

    def test_the_line_of_its_page_works(self, spark, iceberg_spark):
        rows = spark.sql("select date_add(date'2026-01-01', int(id)) order_date, id customer_id from range(100)")
        table = ZTable.write(spark, "z.is_orders", rows, zorder=["order_date"], publish=["iceberg"])
        page = (Path(__file__).parents[2] / "docs" / "readers" / "iceberg.md").read_text()
        assert f"| {SPARK} | `{environments.JARS['iceberg'][SPARK][0]}` |" in page
        [query] = [each for each in re.findall(r"```sql\n(.*?)\n```", page, re.DOTALL) if "lake.shop.orders" in each]
        query = query.replace("lake.shop.orders", name_in("lake", table))
        assert iceberg_spark.ask(query=query).to_pylist() == [{"count(1)": 1}]
