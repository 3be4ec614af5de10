"""Tables that others write: indexed without being touched, or taken over on demand."""

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparing import same_rows

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.errors import ConflictError, TableNotFoundError, UnsupportedError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.index import adopt
from dbt.adapters.zlayout.spark.read.relations import installed
from dbt.adapters.zlayout.table.ztable import ZTable, explain_query

# Files written by parquet-java: 1, NaN and 2.
PARQUET_JAVA = Path(__file__).parents[2] / "tests" / "fixtures" / "parquet_java"
ROWS = "select id, cast(id / 1000 as int) k, case when id % 3 = 0 then 'a b' when id % 3 = 1 then null else 'c' end p from range(20000)"


def scan_of(spark, name):
    return installed(Catalog(spark), Catalog(spark).name(name)).last_scan


@pytest.fixture
def plain(spark, request):
    enable(spark)
    name = f"z.plain_{request.node.name.split('[')[0][-40:]}"
    spark.sql(f"drop table if exists {name}")
    return name


def write_plain(spark, name, partitioned=False, mode="overwrite"):
    frame = spark.sql(ROWS).repartitionByRange(10, "k")
    writer = frame.write.mode(mode).format("parquet")
    (writer.partitionBy("p") if partitioned else writer).saveAsTable(name)


@pytest.mark.parametrize("partitioned", [pytest.param(False, marks=pytest.mark.slow), True])
def test_an_indexed_table_skips_files_and_reads_what_others_add(spark, plain, partitioned):
    write_plain(spark, plain, partitioned)
    table = ZTable.adopt(spark, plain, zorder=["k"])
    assert table.information()["level"] == "indexed"
    source = spark.sql(ROWS)
    for condition in ("k = 3", "k < 2 and id > 500", "p = 'a b' and k = 4", "p is null and k > 18", "id < 0"):
        assert same_rows(spark.sql(f"select * from {plain} where {condition}"), source.where(condition)), condition
    spark.sql(f"select count(*) from {plain} where k = 3").collect()
    kept, total = scan_of(spark, plain)
    assert 0 < kept < total
    spark.sql(f"insert into {plain} select id, 3 k, 'a b' p from range(7)")
    assert spark.sql(f"select count(*) from {plain} where k = 3").collect()[0][0] == 1007
    assert ZTable.for_name(spark, plain).index_status().num_rows > 0


def test_every_verdict_on_an_indexed_table_tells_that_its_index_is_behind(spark, plain):
    write_plain(spark, plain)
    table = ZTable.adopt(spark, plain, zorder=["k"])
    assert table.layout_report().verdict == table.verdict()
    spark.sql(f"insert into {plain} select id, 3 k, 'a b' p from range(7)")
    table = ZTable.for_name(spark, plain)
    assert "the index does not fit" in table.verdict().sentence
    assert table.layout_report().verdict == table.verdict()


def test_an_indexed_table_is_explained(spark, plain):
    write_plain(spark, plain)
    ZTable.adopt(spark, plain, zorder=["k"])
    explanation = explain_query(spark, f"select * from {plain} where k = 3")[0]
    assert 0 < explanation.kept_files < explanation.total_files == 10


@pytest.mark.parametrize("file", ["1.18.0", "1.18.0-type-defined"])
def test_nan_that_the_bounds_of_a_file_leave_out_is_found(spark, plain, tmp_path, file):
    shutil.copy(PARQUET_JAVA / f"{file}.parquet", tmp_path)
    plain = f"{plain}_{len(file)}"
    spark.sql(f"create table {plain} (x double, y float) using parquet location '{tmp_path}'")
    ZTable.adopt(spark, plain)
    for condition, rows in (("isnan(x)", 1), ("isnan(y)", 1), ("x < 100", 2), ("x = 1", 1)):
        assert spark.sql(f"select * from {plain} where {condition}").count() == rows, condition
    # Above every number there is NaN; Spark's own reader of row groups is not asked here, which passes over it.
    for condition in ("x < 100", "x > 100"):
        (explanation,) = explain_query(spark, f"select * from {plain} where {condition}")
        assert explanation.files.column("verdict").to_pylist() == ["READ"], condition


def test_a_new_column_does_not_show_values_that_the_files_hold_under_its_name(spark, plain, tmp_path):
    spark.sql("select id, 5 x from range(10)").write.parquet(str(tmp_path / "t"))
    spark.sql(f"create table {plain} (id bigint) using parquet location '{tmp_path}/t'")
    table = ZTable.adopt(spark, plain, zorder=["id"], managed=True)
    table.append(spark.sql("select 10L id, 5 x"), on_schema_change="append_new_columns")
    assert spark.sql(f"select id from {plain} where x = 5").collect() == [(10,)]
    assert spark.table(plain).where("x is null").count() == 10


def test_an_overwrite_by_another_tool_gives_its_rows(spark, plain):
    write_plain(spark, plain)
    ZTable.adopt(spark, plain, zorder=["k"])
    assert spark.sql(f"select count(*) from {plain} where k = 3").collect()[0][0] == 1000
    spark.sql(f"insert overwrite {plain} select id, 3 k, 'x' p from range(11)")
    assert spark.sql(f"select count(*) from {plain} where k = 3").collect()[0][0] == 11


@pytest.mark.parametrize(
    ("partitioned", "external"),
    [
        (True, True),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((False, False), (False, True), (True, False))),
    ],
)
def test_a_table_taken_over_becomes_managed_and_keeps_its_rows(spark, plain, partitioned, external, tmp_path):
    plain = f"{plain}_{partitioned}_{external}"
    frame = spark.sql(ROWS).repartitionByRange(10, "k").write.format("parquet")
    if external:
        frame = frame.option("path", str(tmp_path / "t"))
    (frame.partitionBy("p") if partitioned else frame).saveAsTable(plain)
    table = ZTable.adopt(spark, plain, zorder=["k"], managed=True)
    assert table.information()["level"] == "managed"
    assert same_rows(spark.table(plain), spark.sql(ROWS))
    assert table.index_status().num_rows == 0
    assert Path(table.location.removeprefix("file://"), "_spark_metadata").exists()
    again = ZTable.write(
        spark, plain, spark.sql(ROWS), zorder=["k"], partition_by=["p"] if partitioned else (), target_file_size="20kb"
    )
    assert again.version == 1
    assert again.location == table.location
    assert same_rows(spark.table(plain), spark.sql(ROWS))


def test_files_that_came_after_the_session_looked_are_taken_over(spark, plain, tmp_path):
    folder = tmp_path / "loaded"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), folder / "first.parquet")
    spark.sql(f"create table {plain} (id bigint) using parquet location '{folder}'")
    assert spark.table(plain).count() == 2
    pq.write_table(pa.table({"id": [3]}), folder / "second.parquet")
    table = ZTable.adopt(spark, plain, managed=True)
    assert len(table.snapshot().files) == 2
    assert sorted(row.id for row in spark.table(plain).collect()) == [1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "folders"), [("decimal(10,2)", ["2.50", "1.5"]), ("int", ["5", "%2B4"]), ("double", ["0.5", "inf"])]
)
def test_a_partition_folder_that_spark_reads_in_two_ways_is_not_taken_over(spark, plain, tmp_path, kind, folders):
    plain = f"{plain}_{kind[:3]}"
    for number, folder in enumerate(folders):
        (tmp_path / f"p={folder}").mkdir()
        pq.write_table(pa.table({"id": [number]}), tmp_path / f"p={folder}" / "a.parquet")
    spark.sql(f"create table {plain} (id bigint, p {kind}) using parquet partitioned by (p) location '{tmp_path}'")
    spark.sql(f"msck repair table {plain}")
    before = sorted(map(str, spark.table(plain).collect()))
    text = re.escape(unquote(folders[1]))
    with pytest.raises(UnsupportedError, match=f"folder 'p={text}' is not spelled as Spark writes"):
        ZTable.adopt(spark, plain, managed=True)
    assert sorted(map(str, spark.newSession().table(plain).collect())) == before
    indexed = ZTable.adopt(spark, plain)
    assert sorted(map(str, spark.table(plain).collect())) == before
    assert indexed.information()["level"] == "indexed"


def test_a_table_that_cannot_be_taken_over_stays_indexed(spark, plain, tmp_path):
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "first.parquet")
    spark.sql(f"create table {plain} (id bigint) using parquet location '{tmp_path}'")
    ZTable.adopt(spark, plain, zorder=["id"])
    (tmp_path / "broken.parquet").write_bytes(b"no Parquet")
    with pytest.raises(UnsupportedError, match="broken.parquet is not a Parquet file"):
        ZTable.adopt(spark, plain, managed=True)
    (tmp_path / "broken.parquet").unlink()
    spark.sql(f"insert into {plain} values (3)")
    assert sorted(row.id for row in spark.table(plain).collect()) == [1, 2, 3]
    assert ZTable.for_name(spark, plain).information()["level"] == "indexed"
    table = ZTable.adopt(spark, plain, managed=True)
    assert table.information()["level"] == "managed"
    assert sorted(row.id for row in spark.table(plain).collect()) == [1, 2, 3]
    with pytest.raises(UnsupportedError, match="already managed"):
        ZTable.adopt(spark, plain, managed=True)


@pytest.mark.parametrize("managed", [True, False])
def test_an_index_that_changes_while_its_table_is_adopted_is_a_conflict(spark, plain, tmp_path, monkeypatch, managed):
    plain = f"{plain}_{managed}"
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "first.parquet")
    spark.sql(f"create table {plain} (id bigint) using parquet location '{tmp_path}'")
    ZTable.adopt(spark, plain, zorder=["id"])

    def collected_beside_another(*given, **keywords):
        monkeypatch.undo()
        other = ZTable.adopt(spark, plain, managed=True)
        other.append(spark.sql("select 3L as id"))
        return adopt.collect(*given, **keywords)

    monkeypatch.setattr(adopt, "collect", collected_beside_another)
    with pytest.raises(ConflictError, match="another session has changed its index just now"):
        ZTable.adopt(spark, plain, managed=managed)
    assert ZTable.for_name(spark, plain).information()["level"] == "managed"
    assert sorted(row.id for row in spark.table(plain).collect()) == [1, 2, 3]


def test_a_build_under_the_name_of_an_indexed_table_leaves_its_files_alone(spark, plain, tmp_path):
    spark.sql(ROWS).write.format("parquet").option("path", str(tmp_path / "t")).saveAsTable(plain)
    indexed = ZTable.adopt(spark, plain, zorder=["k"])
    built = ZTable.write(spark, plain, spark.sql("select 1 k"), zorder=["k"])
    assert built.location != indexed.location
    assert spark.table(plain).collect() == [(1,)]
    assert spark.read.parquet(str(tmp_path / "t")).count() == 20000


def test_a_schema_that_is_not_there_is_named(spark):
    with pytest.raises(TableNotFoundError, match="no schema 'nowhere'"):
        ZTable.write(spark, "nowhere.t", spark.sql("select 1 k"), zorder=["k"])


def test_what_cannot_be_adopted_is_named(spark, plain):
    with pytest.raises(TableNotFoundError, match="z.nowhere"):
        ZTable.adopt(spark, "z.nowhere")
    spark.sql(f"create or replace view {plain} as select 1 a")
    with pytest.raises(UnsupportedError, match="is a view"):
        ZTable.adopt(spark, plain)
    with pytest.raises(TableNotFoundError, match="is a view, which has no files; name a table that it reads"):
        ZTable.for_name(spark, plain)
    spark.sql(f"drop view {plain}")
    spark.sql(f"create table {plain} (a int) using json")
    with pytest.raises(UnsupportedError, match="json"):
        ZTable.adopt(spark, plain)
    with pytest.raises(TableNotFoundError, match="is not a dbt-zlayout table"):
        ZTable.for_name(spark, plain)
    ZTable.write(spark, "z.managed_already", spark.sql("select 1 a"), zorder=["a"])
    with pytest.raises(UnsupportedError, match="already managed"):
        ZTable.adopt(spark, "z.managed_already", managed=True)
