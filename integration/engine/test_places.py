"""Where tables may lie and what they may be called; nothing is written where they may not."""

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dbt.adapters.zlayout.errors import CommittedError, ConfigError, UnsupportedError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.commit.catalog_entries import drop_table, rename_table
from dbt.adapters.zlayout.table.ztable import ZTable


@pytest.mark.parametrize("name", ["../../escaped", "a/b", "a b", "a.b", "ä"])
def test_a_name_that_the_catalog_takes_not_is_refused_before_anything_is_written(spark, tmp_path, name):
    root = tmp_path / "deep" / "root"
    root.mkdir(parents=True)
    with pytest.raises(ConfigError, match="allowed are letters a to z, digits and '_'"):
        ZTable.write(spark, f"z.`{name}`", spark.range(3), location_root=str(root))
    with pytest.raises(ConfigError, match="allowed are letters a to z, digits and '_'"):
        rename_table(spark, "z", "whatever", "z", name)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_table_inside_of_another_is_refused_and_the_outer_one_stays(spark, tmp_path):
    outer = ZTable.write(spark, "z.outer_place", spark.range(3), location_root=str(tmp_path))
    folder = tmp_path / "outer_place"
    before = sorted(folder.rglob("*"))
    with pytest.raises(UnsupportedError, match="is inside the folder of the table at"):
        ZTable.write(spark, "z.inner_place", spark.range(3), location_root=str(folder))
    spark.range(2).write.option("path", str(folder / "plain")).saveAsTable("z.plain_inside")
    with pytest.raises(UnsupportedError, match="is inside the folder of the table at"):
        ZTable.adopt(spark, "z.plain_inside")
    spark.sql("drop table z.plain_inside")
    assert [path for path in sorted(folder.rglob("*")) if "plain" not in path.parts] == before
    assert ZTable.for_name(spark, "z.outer_place").version == outer.version


def test_a_table_in_a_linked_folder_is_not_dropped_and_stays_in_the_catalog(spark, tmp_path):
    ZTable.write(spark, "z.linked_place", spark.range(3), location_root=str(tmp_path))
    folder = tmp_path / "linked_place"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsupportedError, match="is a link to"):
        drop_table(spark, "z", "linked_place")
    assert spark.table("z.linked_place").count() == 3
    folder.unlink()
    Path(tmp_path / "elsewhere").rename(folder)
    drop_table(spark, "z", "linked_place")
    assert not folder.exists()
    assert not spark.catalog.tableExists("z.linked_place")


def test_no_variable_of_the_process_gets_into_the_catalog(spark):
    text = "${env:HOME} ${system:user.home} ${spark.app.name}"
    rows = spark.sql("select id k, 1 v from range(3)")
    ZTable.write(
        spark,
        "z.no_secrets",
        rows,
        table_type="merge_on_read",
        unique_key="k",
        comment=text,
        column_comments={"v": text},
        properties={"note": text},
    )
    for name in ("z.no_secrets", "z.no_secrets__ro", "z.no_secrets__files"):
        assert spark.catalog.getTable(name).description == text
        assert {each.name: each.description for each in spark.catalog.listColumns(name)}["v"] == text
        assert os.environ["HOME"] not in spark.sql(f"show create table {name}").head()[0]
    assert [tuple(row) for row in spark.sql("show tblproperties z.no_secrets ('note')").collect()] == [("note", text)]


def test_a_table_that_another_location_root_moves_says_so_before_its_old_folder_is_deleted(spark, tmp_path):
    told, places = [], [tmp_path / each / "moving_place" for each in ("old", "new")]
    for place in (places[0], *places):
        ZTable.write(spark, "z.moving_place", spark.range(3), location_root=str(place.parent), progress=told.append)
    old, new = (f"file://{each}" for each in places)
    [line] = [each for each in told if "rebuilt" in each]
    assert line == f"the table is rebuilt at {new}; its folder {old} is deleted afterwards unless other tools write it"
    assert [each.exists() for each in places] == [False, True]
    assert spark.table("z.moving_place").count() == 3


@pytest.mark.parametrize(
    "settings", [{}, pytest.param({"table_type": "merge_on_read", "unique_key": "id"}, marks=pytest.mark.slow)]
)
def test_a_table_renamed_in_sql_keeps_its_rows_when_its_old_name_is_built_again(spark, settings):
    kind = "mor" if settings else "cow"
    old, new, files = f"z.first_{kind}", f"z.second_{kind}", "__files" if settings else ""
    renamed = ZTable.write(spark, old, spark.range(200), **settings)
    spark.sql(f"alter table {old}{files} rename to {new}{files}")
    if settings:
        spark.sql(f"drop view {old}")
        spark.sql(f"drop view {old}__ro")
    built = ZTable.write(spark, old, spark.range(5), **settings)
    assert built.location != renamed.location
    if settings:
        ZTable.register(spark, new, renamed.location)
    assert (spark.table(old).count(), spark.table(new).count()) == (5, 200)
    assert not ZTable.for_name(spark, new).verify().num_rows
    ZTable.write(spark, old, spark.range(6), **settings)
    assert (ZTable.for_name(spark, old).location, spark.table(old).count()) == (built.location, 6)


def test_the_folder_of_a_table_of_spark_goes_only_after_the_table_that_replaces_it_is_there(spark, monkeypatch):
    name = "z.was_sparks"
    spark.range(5).write.format("parquet").saveAsTable(name)
    old = Path(urlsplit(Catalog(spark).find_named(name).location).path)
    made, refused = Catalog.__init__, []

    class RefusesOnce:
        def __init__(self, native):
            self._native = native

        def __getattr__(self, method):
            return getattr(self._native, method)

        def createTable(self, *given):  # noqa: N802 - Java's name
            if not refused:
                refused.append(given)
                raise RuntimeError("the metastore says no")
            return self._native.createTable(*given)

    def refusing(self, session):
        made(self, session)
        self._native = RefusesOnce(self._native)

    with monkeypatch.context() as metastore:
        metastore.setattr(Catalog, "__init__", refusing)
        with pytest.raises(CommittedError, match="the metastore says no"):
            ZTable.write(spark, name, spark.range(3), zorder=["id"])
    assert spark.read.parquet(str(old)).count() == 5
    ZTable.write(spark, name, spark.range(3), zorder=["id"])
    assert spark.table(name).count() == 3
    assert not old.exists()


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_an_empty_table_of_spark_leaves_its_folder_to_the_table_that_replaces_it(spark, table_type):
    name = f"z.was_empty_{table_type}"
    spark.sql(f"create table {name} (id long) using parquet")
    key = {"unique_key": "id"} if table_type == "merge_on_read" else {}
    table = ZTable.write(spark, name, spark.range(3), table_type=table_type, **key)
    assert spark.table(name).count() == table.read().count() == 3


def test_files_of_a_table_of_spark_that_is_only_indexed_stay(spark):
    name = "z.was_indexed"
    spark.range(5).write.format("parquet").saveAsTable(name)
    table = ZTable.adopt(spark, name)
    ZTable.write(spark, name, spark.range(3), zorder=["id"])
    assert spark.table(name).count() == 3
    assert spark.read.parquet(table.location).count() == 5
