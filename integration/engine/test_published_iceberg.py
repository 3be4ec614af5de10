"""A table published as Iceberg, read by engines that know nothing of this package: plain Spark's rows, files skipped."""

import json
import re
import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from iceberg_readers import READERS, assert_seen, clickhouse_answer, duckdb_answer, files_opened_by_duckdb, static_table
from published_tables import CONDITIONS, ROWS, folder_of, output_of, random_conditions
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyspark.sql import functions

from dbt.adapters.zlayout.errors import CommittedError
from dbt.adapters.zlayout.publish.iceberg_schema import field_id, ids_in
from dbt.adapters.zlayout.table.ztable import ZTable

SQL = {"string": "varchar", "timestamp_ntz": "timestamp"}
pytestmark = pytest.mark.newest_spark


@pytest.fixture(scope="module")
def published(spark):
    rows = spark.sql(ROWS.format(0, 200))
    return ZTable.write(
        spark, "z.ice", rows, zorder=["k", "s"], target_file_size="4kb", stats_columns=100, publish=["iceberg"]
    )


def test_every_reader_gets_the_rows_of_every_type(spark, published):
    assert not published.last_commit.unfinished
    assert_seen(spark, published)


@pytest.mark.slow
def test_predicates_mean_the_same_to_every_reader(spark, published):
    assert len(published.snapshot().files) > 4
    spark.sql(ROWS.format(0, 200)).createOrReplaceTempView("ice_rows")
    # pyiceberg takes constants of the column's scale only. ClickHouse's constants are dates after 1900.
    unknown = {"pyiceberg": ("dec < 2.5",), "clickhouse": (" date '",)}
    wrong = []
    for condition in [*CONDITIONS, *random_conditions(25)]:
        expected = sorted(row.k for row in spark.sql(f"select k from ice_rows where {condition}").collect())
        for name, read in READERS.items():
            keys = expected
            if any(each in condition for each in unknown.get(name, ())):
                continue
            try:
                found = sorted(read(folder_of(published), condition, "k")["k"].to_pylist())
            except Exception as error:
                found = str(error)[:200]
            if name != "duckdb":
                # They compare NaN as numbers are compared elsewhere, not as SQL's greatest value.
                found = [each for each in found if each % 40 != 5] if isinstance(found, list) else found
                keys = [each for each in keys if each % 40 != 5]
            if found != keys:
                wrong.append((name, condition, found if isinstance(found, str) else sorted(set(keys) ^ set(found))))
    assert wrong == [], "\n".join(map(str, wrong))


def test_readers_skip_files_by_the_published_statistics(published):
    files, folder = len(published.snapshot().files), folder_of(published)
    for condition, words in (
        ("k = 77", "k = 77"),
        ("d < date '0050-01-01'", "d < '0050-01-01'"),
        ("s = 'txt28'", "s = 'txt28'"),
        ("dec > 240.0000", "dec > 240.0000"),
        ("st.a = 50", "st.a = 50"),
    ):
        # DuckDB does not skip by fields of structs.
        assert "." in condition.split()[0] or files_opened_by_duckdb(folder, condition) <= files / 2, condition
        assert len(list(static_table(folder).scan(row_filter=words).plan_files())) <= files / 2, condition


@pytest.mark.slow
def test_files_are_skipped_by_their_partition(spark):
    rows = spark.sql("select id k, id % 5 p, cast(id % 5 as string) `größe` from range(100)")
    table = ZTable.write(spark, "z.ice_parts", rows, partition_by=["p", "größe"], publish="iceberg")
    folder = folder_of(table)
    assert len(list(static_table(folder).scan(row_filter="p = 3").plan_files())) == 1
    assert files_opened_by_duckdb(folder, "\"größe\" = '3'") == 1
    assert_seen(spark, table)


@pytest.mark.slow
def test_each_kind_of_commit_is_published_as_what_it_is(spark):
    name, settings = "z.ice_kinds", {"zorder": ["k"], "partition_by": ["p"], "target_file_size": "8kb"}
    table = ZTable.write(spark, name, spark.sql(ROWS.format(0, 100)), **settings, publish="delta,iceberg")
    assert table.publish() == {"delta": 0, "iceberg": 0}
    folder = folder_of(table)
    assert_seen(spark, table)
    history = {}

    def changed(change, operation, snapshots):
        change()
        assert not table.last_commit.unfinished
        opened = static_table(folder)
        summary = opened.current_snapshot().summary
        assert summary.operation.value == operation
        assert summary.additional_properties["zlayout.version"] == str(table.snapshot().version)
        assert len(opened.snapshots()) == snapshots
        assert_seen(spark, table)
        history[opened.current_snapshot().snapshot_id] = spark.table(name).count()

    wide = spark.sql(ROWS.format(220, 222)).drop("rare").withColumn("i", functions.lit(1 << 40))
    more = spark.sql(ROWS.format(200, 205)).withColumn("more", functions.lit(1))
    changed(lambda: table.append(spark.sql(ROWS.format(100, 120))), "append", 2)
    changed(lambda: table.merge(spark.sql(ROWS.format(90, 130)), "k"), "overwrite", 3)
    changed(lambda: table.delete("k < 10"), "overwrite", 4)
    changed(lambda: table.cluster(rewrite_all=True), "replace", 5)
    changed(lambda: table.delete("p = '1'"), "delete", 6)
    # Every snapshot is readable for as long as the table has its files.
    for snapshot, rows in history.items():
        assert static_table(folder).scan(snapshot_id=snapshot).to_arrow().num_rows == rows
    changed(lambda: table.overwrite(spark.sql(ROWS.format(0, 5))), "overwrite", 7)
    changed(lambda: table.append(more, on_schema_change="append_new_columns"), "append", 8)
    dropped = spark.sql(ROWS.format(210, 212)).drop("rare")
    changed(lambda: table.append(dropped, on_schema_change="sync_all_columns"), "append", 9)
    # The rows that are there are rewritten first, as a version of its own.
    changed(lambda: table.append(wide, on_schema_change="sync_all_columns"), "append", 11)
    # A column comes back, and its old values must not: a new history begins.
    table.append(spark.sql(ROWS.format(230, 232)), on_schema_change="append_new_columns")
    assert_seen(spark, table)
    assert len(static_table(folder).snapshots()) <= 2
    assert static_table(folder).scan(row_filter="rare is not null").to_arrow().num_rows == 0
    table.rollback(version=2)
    assert not table.last_commit.unfinished
    assert_seen(spark, table)
    table.refresh_index()
    assert_seen(spark, table)
    ZTable.write(spark, name, spark.sql("select 1 other, 'x' p"), zorder=["other"])
    table = ZTable.for_name(spark, name)
    assert_seen(spark, table)
    empty = ZTable.write(spark, name, spark.sql("select 1 other where false"))
    assert_seen(spark, empty)


def test_files_of_both_writers_have_the_columns_that_the_ids_name(spark):
    rows = spark.sql(ROWS.format(0, 20))
    for writer in ("arrow", "spark"):
        table = ZTable.write(spark, "z.ice_writers", rows, writer=writer, publish=["iceberg"])
        [path] = table.snapshot().files["path"].to_pylist()
        ids = ids_in(pq.read_metadata(folder_of(table) / path).schema.to_arrow_schema())
        assert set(ids.values()) == ({None} if writer == "spark" else {*map(field_id, ids)})
        table.append(spark.sql(ROWS.format(20, 25)))
        assert_seen(spark, table)


@pytest.mark.slow
def test_rebuilds_with_other_types_and_folders_are_read(spark):
    for kind, values in (
        ("string", ["a/b", "a%2Fb", "é😀", " ", "a'b", 'a"b', "a\\\\b", "null", "#?[+~", "1"]),
        ("date", ["0001-01-01", "1582-10-10", "9999-12-31"]),
        ("decimal(38, 0)", ["0", "-1", "99999999999999999999999999999999999999"]),
        ("decimal(20, 5)", ["1.00000", "-0.00001", "123456789012345.12345"]),
        ("timestamp_ntz", ["2026-01-01 00:00:00", "1969-12-31 23:59:59.123456"]),
        ("boolean", ["true", "false"]),
    ):
        rows = spark.createDataFrame(list(enumerate([*values, None])), "k long, s string")
        rows = rows.selectExpr("k", f"cast(s as {kind}) p", f"cast(s as {kind}) v")
        table = ZTable.write(spark, "z.ice_rebuilt", rows, partition_by=["p"], publish=["iceberg"])
        assert not table.last_commit.unfinished
        assert_seen(spark, table)
        for row in rows.collect():
            condition = "p is null" if row.p is None else f"p = cast('{row.p}' as {SQL.get(kind, kind)})"
            if "'" not in str(row.p):
                assert READERS["duckdb"](folder_of(table), condition, "k")["k"].to_pylist() == [row.k], condition


def test_an_adopted_table_is_published_unless_its_files_have_ids_that_mean_other_columns(spark, tmp_path):
    rows = spark.sql("select id k, concat('t', id) s, timestamp_micros(id) ts, id % 2 p from range(50)")
    rows.write.partitionBy("p").saveAsTable("z.ice_adopted", format="parquet")
    table = ZTable.adopt(spark, "z.ice_adopted", zorder=["k"], managed=True)
    table.publish(["iceberg"])
    assert_seen(spark, table)
    # Files that another Iceberg writer has numbered.
    metadata = {"parquet.field.id": 2}, {"parquet.field.id": 1}
    fields = [functions.col(name).alias(name, metadata=each) for name, each in zip(("k", "k2"), metadata, strict=True)]
    spark.sql("select id k, -id k2 from range(9)").select(*fields).write.saveAsTable("z.ice_numbered", format="parquet")
    table = ZTable.adopt(spark, "z.ice_numbered", zorder=["k"], managed=True)
    with pytest.raises(CommittedError, match="has field ids of other software"):
        table.publish(["iceberg"])
    assert not list((folder_of(table)).glob("metadata/*.json"))
    table.cluster(rewrite_all=True)
    assert not table.last_commit.unfinished
    assert_seen(spark, table)


def test_the_metadata_of_other_software_is_left_alone(spark):
    table = ZTable.write(spark, "z.ice_foreign", spark.range(3).selectExpr("id k"))
    folder = folder_of(table)
    other = new_table_metadata(Schema(), UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, f"file://{folder}")
    (folder / "metadata").mkdir()
    (folder / "metadata" / "00000-5b1d.metadata.json").write_text(other.model_dump_json())
    before = sorted((folder / "metadata").rglob("*"))
    table.append(spark.range(3, 4).selectExpr("id k"))
    assert sorted((folder / "metadata").rglob("*")) == before
    with pytest.raises(CommittedError, match="was written by other software; move the folder metadata away"):
        table.publish(["iceberg"])
    assert sorted((folder / "metadata").rglob("*")) == before
    shutil.rmtree(folder / "metadata")
    table.publish()
    assert_seen(spark, table)


@pytest.mark.slow
def test_many_commits_keep_the_metadata_small_and_readable(spark):
    table = ZTable.write(
        spark, "z.ice_many", spark.range(100).selectExpr("id k", "id % 3 p"), partition_by=["p"], publish=["iceberg"],
        retain_hours=0, retain_versions=1,
    )  # fmt: skip
    for number in range(15):
        table.append(spark.range(100 + number, 101 + number).selectExpr("id k", "id % 3 p"))
    metadata = folder_of(table) / "metadata"
    newest = (metadata / "version-hint.text").read_text()
    assert len(json.loads((metadata / f"v{newest}.metadata.json").read_text())["snapshots"]) == 1
    assert len(list(metadata.glob("v*.metadata.json"))) <= 12
    assert len(list(metadata.glob("*list.avro"))) <= 3
    assert_seen(spark, table)


def test_the_lines_of_the_page_work(spark):
    rows = spark.sql("select date_add(date'2026-01-01', int(id)) order_date, id customer_id from range(100)")
    table = ZTable.write(spark, "z.ice_orders", rows, zorder=["order_date"], publish=["iceberg"])
    page = (Path(__file__).parents[2] / "docs" / "readers" / "iceberg.md").read_text()
    page = page.partition("## A catalog")[0].replace("/lake/shop/orders", str(folder_of(table)))
    in_duckdb, in_clickhouse, _ = re.findall(r"```sql\n(.*?)\n```", page, re.DOTALL)
    # Where DuckDB may install no extension, it is loaded from a package.
    assert duckdb_answer(in_duckdb.removeprefix("INSTALL iceberg;\nLOAD iceberg;\n")) == [(1,)]
    assert clickhouse_answer(in_clickhouse, "CSV") == b"1\n"
    for lines in re.findall(r"```python\n(.*?)\n```", page, re.DOTALL):
        assert output_of(sys.executable, lines) == "1\n"
