"""A table that Spark's own writer wrote, on HDFS and on local files, from its first write to its removal."""

from urllib.parse import unquote

import pytest

from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.commit.catalog_entries import drop_table
from dbt.adapters.zlayout.spark.read.relations import uninstall
from dbt.adapters.zlayout.spark.read.session import enable
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.table.ztable import ZTable

ROWS = """
  select id, id * 7919 % 100003 k, cast(id % 3 as string) part, concat('é ', id) s, rand({seed}) r
  from range({first}, {last})
"""


@pytest.fixture(params=["hdfs", "local"])
def location_root(request, spark, tmp_path):
    spark.sql("create schema if not exists z")
    enable(spark)
    root = request.getfixturevalue("hdfs") if request.param == "hdfs" else f"file://{tmp_path}"
    return f"{root}/with space [é] 100%"


def rows(spark, first, last):
    return spark.sql(ROWS.format(first=first, last=last, seed=1))


def sums(frame):
    return tuple(frame.selectExpr("count(*)", "sum(id)", "sum(k)", "sum(length(s))", "count(distinct part)").first())


def files_read(frame):
    """How many files the scan of a collected query opened, as Spark counted them."""
    plan = frame._jdf.queryExecution().executedPlan()
    while plan.children().size():
        plan = plan.children().head()
    return plan.metrics().get("numFiles").get().value()


def as_plain_spark_reads(spark, name):
    uninstall(Catalog(spark), Catalog(spark).name(name))
    spark.catalog.refreshTable(name)
    return spark.table(name)


def test_a_table_is_written_read_skipped_replaced_and_removed(spark, location_root):
    options = {"location_root": location_root, "writer": "spark", "zorder": ["k"], "target_file_size": "100kb"}
    query = rows(spark, 0, 60_000)
    expected = sums(query)

    table = ZTable.write(spark, "z.far", query, partition_by=["part"], **options)
    location = Catalog(spark).find(Catalog(spark).name("z.far")).location
    assert unquote(location) == f"{location_root}/far"
    store = open_store(location)
    files = [file.path for file in store.list("", recursive=True) if file.path.endswith(".parquet")]
    data = [path for path in files if path.startswith("part=")]
    assert len(data) > 6
    assert not [path for path in files if path.startswith(".zlayout/staging")]
    assert table.snapshot().files.total_rows == 60_000
    assert set(table.snapshot().files["path"].to_pylist()) == set(data)

    assert sums(spark.table("z.far")) == expected
    explained = table.explain("k = 4242")
    assert explained.total_files == len(data) > explained.kept_files > 0
    found = spark.sql("select id from z.far where k = 4242")
    assert sorted(found.collect()) == sorted(query.where("k = 4242").select("id").collect())
    assert files_read(found) == explained.kept_files
    assert sums(as_plain_spark_reads(spark, "z.far")) == expected

    again = ZTable.write(spark, "z.far", rows(spark, 50, 1_000), **options)
    assert again.version == 1
    assert sums(spark.table("z.far")) == sums(rows(spark, 50, 1_000))
    assert sums(as_plain_spark_reads(spark, "z.far")) == sums(rows(spark, 50, 1_000))

    drop_table(spark, "z", "far")
    assert store.list("", recursive=True) == []


def test_a_parquet_table_of_others_is_indexed_where_it_lies(spark, location_root):
    # Spark itself cannot write a table to a folder with brackets in its name: it takes them for a pattern.
    folder = f"{location_root.replace('[é]', 'é')}/theirs"
    rows(spark, 0, 20_000).repartitionByRange(5, "k").write.option("path", folder).saveAsTable("z.theirs")
    table = ZTable.adopt(spark, "z.theirs", zorder=["k"])
    explained = table.explain("k = 4242")
    assert (explained.total_files, explained.kept_files) == (5, 1)
    assert sums(spark.table("z.theirs")) == sums(rows(spark, 0, 20_000))
    spark.sql("drop table z.theirs")


def test_rows_come_and_go(spark, location_root):
    options = {"location_root": location_root, "writer": "spark", "zorder": ["k"]}
    table = ZTable.write(spark, "z.changing", rows(spark, 0, 2_000), **options)
    table = ZTable.for_name(spark, "z.changing")
    assert table.append(rows(spark, 2_000, 3_000)).rows_inserted == 1_000
    ZTable.for_name(spark, "z.changing").delete("id % 10 = 0")
    kept = rows(spark, 0, 3_000).where("id % 10 != 0")
    assert sums(spark.table("z.changing")) == sums(kept)
    assert sums(as_plain_spark_reads(spark, "z.changing")) == sums(kept)
    drop_table(spark, "z", "changing")
