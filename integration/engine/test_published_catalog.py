"""A table registered in a catalog of pyiceberg: who opens it there reads plain Spark's rows after each commit."""

import re
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
import yaml
from catalogs import KINDS, catalog_of
from iceberg_readers import plain
from published_tables import ROWS, folder_of, output_of, rows_of
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from dbt.adapters.zlayout.errors import CommittedError, ConfigError
from dbt.adapters.zlayout.spark.commit.catalog_entries import drop_table, rename_table
from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = pytest.mark.newest_spark


class Lake:
    """A catalog that pyiceberg's configuration names 'lakehouse'."""

    def __init__(self, home, properties):
        self.home, self.properties, self.kind = home, properties, properties["type"]
        self.configure()

    def configure(self, **catalogs):
        text = yaml.safe_dump({"catalog": {"lakehouse": self.properties, **catalogs}})
        (self.home / ".pyiceberg.yaml").write_text(text)

    def entry(self, name):
        with load_catalog("lakehouse", **self.properties) as catalog:
            try:
                return catalog.load_table(name)
            except NoSuchTableError:
                return None

    def assert_seen(self, spark, table):
        """Who opens it by the catalog sees exactly the rows of plain Spark."""
        wanted, found = (
            plain(each) for each in (spark.table(table.name).toArrow(), self.entry(table.name).scan().to_arrow())
        )
        assert sorted(found.column_names) == sorted(wanted.column_names)
        assert rows_of(found, wanted.column_names) == rows_of(wanted, wanted.column_names)


@pytest.fixture(
    scope="module", params=[each if each == "sql" else pytest.param(each, marks=pytest.mark.slow) for each in KINDS]
)
def running(request, tmp_path_factory):
    with catalog_of(request.param, tmp_path_factory.mktemp("catalogs") / request.param) as properties:
        yield properties


@pytest.fixture
def lake(running, tmp_path, monkeypatch):
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    return Lake(tmp_path, running)


@pytest.fixture
def sql_lake(tmp_path, monkeypatch):
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    with catalog_of("sql", tmp_path / "sql") as properties:
        yield Lake(tmp_path, properties)


CATALOG = {"publish": ["iceberg"], "publish_catalog": "lakehouse"}


def test_the_catalog_has_the_rows_after_each_kind_of_commit(spark, lake):
    name = f"z.cat_kinds_{lake.kind}"
    table = ZTable.write(spark, name, spark.sql(ROWS.format(0, 40)), zorder=["k"], partition_by=["p"], **CATALOG)
    lake.assert_seen(spark, table)
    more = spark.sql(ROWS.format(200, 205)).selectExpr("*", "1 more")
    dropped = spark.sql(ROWS.format(210, 212)).drop("rare")
    for change in (
        lambda: table.append(spark.sql(ROWS.format(100, 110))),
        lambda: table.merge(spark.sql(ROWS.format(30, 50)), "k"),
        lambda: table.delete("k < 10"),
        lambda: table.cluster(rewrite_all=True),
        lambda: table.append(more, on_schema_change="append_new_columns"),
        lambda: table.append(dropped, on_schema_change="sync_all_columns"),
        lambda: table.rollback(version=2),
        table.refresh_index,
    ):
        change()
        assert not table.last_commit.unfinished
        assert not table.information()["unfinished"]
        lake.assert_seen(spark, table)
    table = ZTable.write(spark, name, spark.sql("select 1 other"))
    assert not table.last_commit.unfinished
    lake.assert_seen(spark, table)
    assert table.information()["published"]["iceberg"]["catalog"] == "lakehouse"
    # The catalog writes nothing into the folder.
    assert not [each.name for each in (folder_of(table) / "metadata").glob("*.metadata.json") if each.name[0] != "v"]
    drop_table(spark, *name.split("."))
    assert lake.entry(name) is None


def test_the_entry_is_switched_on_and_off_and_follows_the_name(spark, lake):
    table = ZTable.write(spark, f"z.cat_switch_{lake.kind}", spark.range(5).selectExpr("id k"), publish=["iceberg"])
    assert lake.entry(f"z.cat_switch_{lake.kind}") is None
    assert table.publish(publish_catalog="lakehouse") == {"iceberg": table.snapshot().version}
    lake.assert_seen(spark, table)
    rename_table(spark, "z", f"cat_switch_{lake.kind}", "z", f"cat_renamed_{lake.kind}")
    assert lake.entry(f"z.cat_switch_{lake.kind}") is None
    table = ZTable.for_name(spark, f"z.cat_renamed_{lake.kind}")
    lake.assert_seen(spark, table)
    table.append(spark.range(5, 7).selectExpr("id k"))
    lake.assert_seen(spark, table)
    table.publish(publish_catalog="")
    assert lake.entry(f"z.cat_renamed_{lake.kind}") is None
    assert (folder_of(table) / "metadata").exists()
    table.publish(publish_catalog="lakehouse")
    lake.assert_seen(spark, table)
    files = sorted(folder_of(table).glob("*.parquet"))
    assert table.publish([]) == {}
    assert lake.entry(f"z.cat_renamed_{lake.kind}") is None
    assert not table.information()["unfinished"]
    assert sorted(folder_of(table).glob("*.parquet")) == files
    assert spark.table(f"z.cat_renamed_{lake.kind}").count() == 7


def test_an_entry_of_other_software_is_left_alone_and_told(spark, lake):
    with load_catalog("lakehouse", **lake.properties) as catalog:
        catalog.create_namespace_if_not_exists("z")
        location = f"{lake.properties['warehouse']}/foreign"
        catalog.create_table(f"z.cat_foreign_{lake.kind}", Schema(NestedField(1, "x", LongType())), location=location)
    before = lake.entry(f"z.cat_foreign_{lake.kind}").metadata_location
    table = ZTable.write(spark, f"z.cat_foreign_{lake.kind}", spark.range(3).selectExpr("id k"), **CATALOG)
    [told] = table.last_commit.unfinished
    assert (
        f"readers of z.cat_foreign_{lake.kind} in catalog 'lakehouse' do not see it yet: the entry is of other software; it is left alone"
        in told
    )
    assert any("is of other software" in each for each in table.information()["unfinished"])
    with pytest.raises(CommittedError, match="is of other software"):
        table.publish()
    table.publish([])
    assert lake.entry(f"z.cat_foreign_{lake.kind}").metadata_location == before
    assert Path(before.removeprefix("file:")).exists()


def test_an_entry_that_lags_behind_the_files_of_metadata_is_mended(spark, lake):
    table = ZTable.write(spark, f"z.cat_lags_{lake.kind}", spark.range(3).selectExpr("id k"), **CATALOG)
    lake.properties, right = {**lake.properties, "type": "sql", "uri": "sqlite:////nowhere/x.db"}, lake.properties
    lake.configure()
    table.append(spark.range(3, 4).selectExpr("id k"))
    assert "failed" in table.last_commit.unfinished[0]
    lake.properties = right
    lake.configure()
    (folder_of(table) / "metadata" / "v1.metadata.json").unlink()
    table.append(spark.range(4, 5).selectExpr("id k"))
    assert not table.last_commit.unfinished
    lake.assert_seen(spark, table)


def test_a_catalog_that_fails_fails_no_commit_and_is_caught_up_by_the_next(spark, sql_lake):
    told = []
    table = ZTable.write(spark, "z.cat_fails", spark.range(3).selectExpr("id k"), **CATALOG)
    database = sql_lake.home / "sql" / "catalog.db"
    with sqlite3.connect(database) as connection:
        connection.execute("create trigger t before update on iceberg_tables begin select raise(abort, 'no'); end")
    connection.close()
    table.append(spark.range(3, 5).selectExpr("id k"), progress=told.append)
    assert spark.table("z.cat_fails").count() == 5
    failure = "readers of z.cat_fails in catalog 'lakehouse' do not see it yet: catalog 'lakehouse' failed: "
    assert table.last_commit.unfinished[0].startswith(failure)
    assert any(failure in each and "is committed" in each for each in told)
    with pytest.raises(CommittedError, match="readers of z.cat_fails in catalog 'lakehouse' do not see it: catalog"):
        table.publish()
    assert table.information()["unfinished"] == [
        f"readers of z.cat_fails in catalog 'lakehouse' see version 0 instead of version {table.snapshot().version}"
    ]
    with sqlite3.connect(database) as connection:
        connection.execute("drop trigger t")
    connection.close()
    table.publish()
    sql_lake.assert_seen(spark, table)


def test_wrong_settings_are_refused_before_anything_is_written(spark, sql_lake):
    rows = spark.range(3).selectExpr("id k")
    for formats, told in (
        (None, "publish is not set"),
        (["delta"], r"publish is \['delta'\]"),
        ([], r"publish is \[\]"),
    ):
        with pytest.raises(
            ConfigError, match=f"publish_catalog: 'lakehouse' needs .* {told}; add 'iceberg' to publish"
        ):
            ZTable.write(spark, "z.cat_refused", rows, publish=formats, publish_catalog="lakehouse")
    with pytest.raises(ConfigError, match="publish_catalog: 'postgresql:…' is not the name of a catalog"):
        ZTable.write(spark, "z.cat_refused", rows, publish="iceberg", publish_catalog="postgresql://me:Secret@db/x")
    assert not spark.catalog.tableExists("z.cat_refused")
    table = ZTable.write(spark, "z.cat_refused", rows)
    with pytest.raises(ConfigError, match="publish_catalog: 'lakehouse' needs"):
        table.publish(publish_catalog="lakehouse")
    with pytest.raises(ConfigError, match="publish_catalog: there is no catalog 'lake' in pyiceberg's configuration"):
        table.publish(["iceberg"], publish_catalog="lake")
    assert table.snapshot().version == 0
    assert table.information()["published"] == {}


@pytest.mark.slow
def test_a_table_that_moves_by_its_setting_or_is_registered_elsewhere_keeps_its_entry(spark, sql_lake, tmp_path):
    rows = spark.range(3).selectExpr("id k")
    ZTable.write(spark, "z.cat_moves", rows, **CATALOG)
    table = ZTable.write(spark, "z.cat_moves", rows, location_root=str(tmp_path / "root"), **CATALOG)
    assert not table.last_commit.unfinished
    sql_lake.assert_seen(spark, table)
    assert sql_lake.entry("z.cat_moves").location() == f"file://{folder_of(table)}"
    shutil.move(folder_of(table), tmp_path / "moved")
    spark.sql("drop table z.cat_moves")
    table = ZTable.register(spark, "z.cat_moved", str(tmp_path / "moved"))
    assert not table.information()["unfinished"]
    assert sql_lake.entry("z.cat_moves") is None
    sql_lake.assert_seen(spark, table)
    shutil.copytree(tmp_path / "moved", tmp_path / "copied")
    copy = ZTable.register(spark, "z.cat_copied", str(tmp_path / "copied"))
    copy.append(rows)
    assert not copy.last_commit.unfinished
    sql_lake.assert_seen(spark, copy)
    sql_lake.assert_seen(spark, table)


@pytest.mark.slow
def test_a_merge_on_read_table_is_registered_by_its_name(spark, sql_lake):
    rows = spark.range(100).selectExpr("id k", "0 v")
    table = ZTable.write(spark, "z.cat_mor", rows, table_type="merge_on_read", unique_key="k", **CATALOG)
    table.upsert(spark.range(5).selectExpr("id k", "1 v"))
    assert not table.last_commit.unfinished
    assert sql_lake.entry("z.cat_mor").scan().to_arrow().num_rows == 100
    table.compact()
    sql_lake.assert_seen(spark, table)
    rename_table(spark, "z", "cat_mor", "z", "cat_mor2")
    assert sql_lake.entry("z.cat_mor") is None
    sql_lake.assert_seen(spark, ZTable.for_name(spark, "z.cat_mor2"))
    drop_table(spark, "z", "cat_mor2")
    assert sql_lake.entry("z.cat_mor2") is None


def test_the_lines_of_the_page_work(spark, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "readers" / "iceberg.md").read_text().partition("## A catalog")[2]
    [configuration] = re.findall(r"```yaml\n(.*?)\n```", page, re.DOTALL)
    (tmp_path / ".pyiceberg.yaml").write_text(configuration.replace("/lake", str(tmp_path)))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    spark.sql("create schema if not exists shop")
    orders = spark.sql("select date_add(date'2026-01-01', int(id)) order_date, id customer_id from range(100)")
    [write, read] = re.findall(r"```python\n(.*?)\n```", page, re.DOTALL)
    exec(write, {"spark": spark, "df": orders, "ZTable": ZTable})
    assert not ZTable.for_name(spark, "shop.orders").information()["unfinished"]
    assert output_of(sys.executable, read) == "1\n"
    drop_table(spark, "shop", "orders")
