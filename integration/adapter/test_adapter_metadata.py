"""What dbt asks about tables: freshness of sources from the log, statistics in the catalog."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import pytest
from dbt.adapters.factory import get_adapter_by_type

from dbt.adapters.zlayout.adapter.operations import maintenance
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.naming import log_path


@pytest.fixture(autouse=True)
def tables(dbt, spark):
    assert dbt("run", "--full-refresh", "--select", "clustered").success
    if not spark.catalog.tableExists("main.told_indexed"):
        spark.range(100).write.format("parquet").saveAsTable("main.told_indexed")
        ZTable.adopt(spark, "main.told_indexed")
        spark.sql("create view main.told_view as select 1 as id")
        spark.sql("create table main.told_csv using csv as select 1 as id")


def jobs(spark):
    return spark._jsc.sc().dagScheduler().numTotalJobs()


def committed_at(table, version):
    (moment,) = [row["committed_at"] for row in table.history().to_pylist() if row["version"] == version]
    return moment


def test_rows_change_with_writes_and_not_with_maintenance(spark):
    table = ZTable.for_name(spark, "main.clustered")
    written = table.version
    table.cluster(rewrite_all=True)
    assert table.version > written
    assert table.rows_changed_at() == committed_at(table, written)
    table.delete("id < 0")
    assert table.rows_changed_at() == committed_at(table, written)
    table.delete("id = 7")
    assert table.rows_changed_at() == committed_at(table, table.version) > committed_at(table, written)


def test_freshness_of_sources_needs_no_column_and_no_job(dbt, spark):
    table = ZTable.for_name(spark, "main.clustered")
    written = committed_at(table, table.version)
    table.cluster(rewrite_all=True)
    before = jobs(spark)
    outcome = dbt("source", "freshness", "--select", "source:told.clustered", "source:told.told_indexed")
    assert outcome.success, outcome.log
    assert jobs(spark) == before
    assert outcome.results["clustered"].max_loaded_at == written
    newest = max(
        each.stat().st_mtime
        for each in Path(ZTable.for_name(spark, "main.told_indexed").location[5:]).glob("*.parquet")
    )
    found = outcome.results["told_indexed"].max_loaded_at
    assert abs((found - datetime.fromtimestamp(newest, timezone.utc)).total_seconds()) < 0.01
    assert "told_indexed` is only indexed" in outcome.log


@pytest.mark.parametrize("name", ["told_view", pytest.param("told_csv", marks=pytest.mark.slow)])
def test_what_tells_no_time_asks_for_loaded_at_field(dbt, name):
    outcome = dbt("source", "freshness", "--select", f"source:told.{name}", "source:told.clustered")
    assert not outcome.success
    assert outcome.results["clustered"].status == "pass"
    assert f"main.{name}" in outcome.log
    assert "set loaded_at_field for this source" in outcome.log


@pytest.mark.parametrize(
    "selection", [pytest.param(["--no-compile"], marks=pytest.mark.slow), ["--select", "clustered", "source:told"]]
)
def test_the_documentation_has_statistics(dbt, spark, selection):
    assert dbt("docs", "generate", *selection).success
    catalog = dbt.artifact("catalog.json")
    node = catalog["nodes"]["model.adapter_suite.clustered"]
    table = ZTable.for_name(spark, "main.clustered")
    stats = {name: each["value"] for name, each in node["stats"].items() if name != "has_stats"}
    assert stats["rows"] == table.count() == 20_000
    assert stats["files"] == len(table.snapshot().files)
    assert stats["bytes"] == table.snapshot().files.total_bytes
    assert stats["version"] == table.version
    assert stats["last_changed"] == f"{table.rows_changed_at():%Y-%m-%d %H:%M:%S}+00:00"
    assert stats["last_commit"] == f"{table.history(1)['committed_at'][0].as_py():%Y-%m-%d %H:%M:%S}+00:00"
    assert stats["keys"] == "id, code"
    assert stats["curve"] == "zorder"
    assert stats["depth"] == round(table.clustering_information().overlap.average_depth, 2) >= 1
    assert "log_records" not in stats
    assert all(each["label"] and each["description"] for name, each in node["stats"].items() if name != "has_stats")
    assert set(node["columns"]) == set(spark.table("main.clustered").columns)
    assert set(catalog["sources"]["source.adapter_suite.told.told_view"]["stats"]) == {"has_stats"}


def test_the_catalog_of_one_relation(dbt, spark, monkeypatch):
    assert dbt("ls", "--select", "clustered").success
    adapter = get_adapter_by_type("zlayout")
    looked_up, find = [], Catalog.find
    monkeypatch.setattr(Catalog, "find", lambda self, name: (looked_up.append(str(name)), find(self, name))[1])
    with adapter.connection_named("one"):
        found = adapter.get_catalog_for_single_relation(adapter.Relation.create(schema="main", identifier="clustered"))
        view = adapter.get_catalog_for_single_relation(adapter.Relation.create(schema="main", identifier="told_view"))
        none = adapter.get_catalog_for_single_relation(adapter.Relation.create(schema="main", identifier="absent"))
    assert found.metadata.name == "clustered"
    assert found.stats["rows"].value == 20_000
    assert [each.type for each in found.columns.values()] == [kind for _, kind in spark.table("main.clustered").dtypes]
    assert (view.metadata.type, view.stats, none) == ("view", {}, None)
    assert looked_up == ["main.clustered", "main.told_view"]


def test_a_schema_that_does_not_exist_costs_no_other_relation_its_place_in_the_catalog(dbt):
    assert dbt("ls", "--select", "clustered").success
    adapter = get_adapter_by_type("zlayout")
    wanted = [adapter.Relation.create(schema=schema, identifier="clustered") for schema in ("nowhere", "main")]
    with adapter.connection_named("two"):
        rows = adapter._catalog_rows(wanted)
        absent = adapter.get_catalog_for_single_relation(wanted[0])
    assert {(row["table_schema"], row["table_name"]) for row in rows} == {("main", "clustered")}
    assert absent is None


@pytest.mark.slow
def test_a_damaged_entry_of_the_log_hides_only_the_statistic_that_needs_it(dbt, spark):
    spark.sql("drop table if exists main.told_damaged")
    ZTable.write(spark, "main.told_damaged", spark.range(10), zorder=["id"])
    table = ZTable.for_name(spark, "main.told_damaged")
    for _ in range(11):
        table.cluster(rewrite_all=True)
    Path(table.location[5:], log_path(0)).write_text("{")
    adapter = get_adapter_by_type("zlayout")
    with adapter.connection_named("three"):
        found = adapter.get_catalog_for_single_relation(
            adapter.Relation.create(schema="main", identifier="told_damaged")
        )
    assert (found.stats["rows"].value, found.stats["version"].value) == (10, table.version)
    assert "last_changed" not in found.stats


def test_an_adopted_table_is_as_old_as_its_newest_file(spark):
    spark.sql("drop table if exists main.told_adopted")
    spark.range(10).write.format("parquet").saveAsTable("main.told_adopted")
    folder = spark.sql("describe formatted main.told_adopted").where("col_name = 'Location'").first()["data_type"]
    for each in Path(folder[5:]).glob("*.parquet"):
        os.utime(each, (1_700_000_000, 1_700_000_000))
    table = ZTable.adopt(spark, "main.told_adopted", managed=True)
    assert table.rows_changed_at() == datetime.fromtimestamp(1_700_000_000, timezone.utc)


def test_a_hook_that_clusters_follows_partition_by_of_meta(spark):
    spark.sql("drop table if exists main.told_partitioned")
    rows = spark.sql("select id, id % 3 as code from range(100)")
    ZTable.write(spark, "main.told_partitioned", rows, zorder=["id"])
    maintenance.cluster(spark, "main.told_partitioned", {"meta": {"zlayout": {"partition_by": ["code"]}}}, {}, {})
    assert ZTable.for_name(spark, "main.told_partitioned").information()["partition_by"] == ["code"]
