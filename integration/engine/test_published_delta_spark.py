"""A published table read by Spark with Delta, in a process of its own: it gets plain Spark's rows and cannot write."""

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
    kind_of,
    rows_of,
)

from dbt.adapters.zlayout.table.ztable import ZTable

SPARK = pyspark.__version__.rpartition(".")[0]
pytestmark = pytest.mark.skipif(
    SPARK not in environments.JARS["delta"], reason=f"Delta has no release for Spark {SPARK} that is tested here"
)


@pytest.fixture(scope="module")
def delta_spark(tmp_path_factory):
    settings = {
        **environments.jar_settings("delta", SPARK),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("delta_spark")),
    }
    engine = ForeignEngine(sys.executable, "spark_reader.py", json.dumps(settings))
    yield engine
    engine.close()


class TestSparkWithDelta:
    """One session for all of them: starting it takes longer than they do."""

    def test_it_reads_every_table_as_plain_spark_does_and_skips_files(self, spark, delta_spark):
        for name, each in TABLES.items():
            table = ZTable.write(spark, f"z.ds_{name}", spark.sql(each.sql), **each.settings, publish=["delta"])
            found, wanted = (
                delta_spark.ask(query=f"select * from delta.`{folder_of(table)}`"),
                as_arrow(spark.table(table.name)),
            )
            kinds = [[(each.name, kind_of(each.type)) for each in rows.schema] for rows in (found, wanted)]
            assert kinds[0] == kinds[1], name
            assert rows_of(found, wanted.column_names) == rows_of(wanted, wanted.column_names), name
        table = ZTable.for_name(spark, "z.ds_every_type")
        source = f"delta.`{folder_of(table)}`"
        assert_conditions_mean_the_same(spark, delta_spark, source)
        conditions = ("k = 77", "d < date'0050-01-01'", "day >= date'2016-01-01'", "dec > 240")
        assert_skips_files(delta_spark, source, len(table.snapshot().files), conditions)

    def test_it_follows_commits_and_cannot_write(self, spark, delta_spark):
        rows = spark.sql("select id k, cast(id as int) v, id % 3 p from range(100)")
        table = ZTable.write(spark, "z.ds_kinds", rows, zorder=["k"], partition_by=["p"], publish=["delta"])
        source = f"delta.`{folder_of(table)}`"
        assert_follows_commits(spark, delta_spark, table, source)
        log = folder_of(table) / "_delta_log"
        before = sorted(log.iterdir())
        for change in (
            f"insert into {source} select * from {source}",
            f"optimize {source}",
            f"vacuum {source} retain 200 hours",
            f"delete from {source} where k = 1",
        ):
            with pytest.raises(RuntimeError, match="zlayoutManaged"):
                delta_spark.ask(query=change)
        assert sorted(log.iterdir()) == before
        assert spark.table(table.name).count() == delta_spark.ask(query=f"select k from {source}").num_rows

    def test_the_line_of_its_page_works(self, spark, delta_spark):
        rows = spark.sql("select date_add(date'2026-01-01', int(id)) order_date, id customer_id from range(100)")
        table = ZTable.write(spark, "z.ds_orders", rows, zorder=["order_date"], publish=["delta"])
        page = (Path(__file__).parents[2] / "docs" / "readers" / "spark-delta.md").read_text()
        assert f"| {SPARK} | `{environments.JARS['delta'][SPARK][0]}` |" in page
        (query,) = re.findall(r"```sql\n(.*?)\n```", page, re.DOTALL)
        query = query.replace("/lake/shop/orders", str(folder_of(table)))
        assert delta_spark.ask(query=query).to_pylist() == [{"count(1)": 1}]
