"""What a query reads, and what makes its rows unpredictable, as Spark analyses it."""

import pyspark
import pytest

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.spark.read.query_inputs import (
    FilesInput,
    TableInput,
    TableRead,
    query_inputs,
    session_facts,
    source_now,
    temporary_views,
)
from dbt.adapters.zlayout.table.ztable import ZTable


@pytest.fixture(scope="module")
def tables(spark):
    enable(spark)
    for name in ("read_1", "read_2"):
        ZTable.write(spark, f"z.{name}", spark.range(10).selectExpr("id", "id % 2 p"), zorder=["id"])
    records = spark.range(10).selectExpr("id", "id % 2 p")
    settings = {"table_type": "merge_on_read", "unique_key": ["id"]}
    ZTable.write(spark, "z.read_records", records, zorder=["id"], **settings)
    spark.range(4).selectExpr("id", "id p").write.partitionBy("p").saveAsTable("z.read_plain")
    spark.sql("create view z.read_view as select id from z.read_2 where p in (select p from z.read_plain)")
    spark.sql("create temporary view read_temp as select id from z.read_1")
    spark.udf.register("read_udf", lambda value: value, "bigint")


def found(spark, sql):
    return query_inputs(sql, spark.sql(sql))


def test_a_query_reads_tables_at_versions_and_other_files_by_digest(spark, tables):
    sql = "with c as (select id from z.read_1) select c.id from c join z.read_view using (id) where c.id in (select id from z.read_records)"
    inputs = found(spark, sql)
    assert not inputs.unknown
    kinds = {name: type(each) for name, each in inputs.sources.items()}
    managed = dict.fromkeys(("z.read_1", "z.read_2", "z.read_records"), TableInput)
    assert kinds == {**managed, "z.read_plain": FilesInput}
    assert inputs.sources["z.read_plain"].count == 4
    assert all(source_now(spark, name).difference(each.to_dict()) is None for name, each in inputs.sources.items())
    before = inputs.sources["z.read_records"].to_dict()
    ZTable.for_name(spark, "z.read_records").upsert(spark.sql("select 3L id, 1L p"))
    assert "has other rows since" in source_now(spark, "z.read_records").difference(before)
    spark.sql("create or replace view z.read_view as select id from z.read_2 where p > 0")
    assert found(spark, sql).definitions != inputs.definitions


def test_a_column_that_comes_without_rows_is_a_change(spark, tables):
    # The name in the subquery is that of the other table, until this one has such a column.
    sql = "select id from z.read_1 where exists (select 1 from z.read_columns where p = 5)"
    table = ZTable.write(spark, "z.read_columns", spark.sql("select 1 as other"))
    before = found(spark, sql)
    table.append(spark.sql("select 1 as other, 5L as p where false"), on_schema_change="append_new_columns")
    now = found(spark, sql)
    assert now.sources["z.read_columns"].difference(before.sources["z.read_columns"].to_dict()) == "has other columns"
    # Other places of the same rows are none.
    ZTable.for_name(spark, "z.read_records").upsert(spark.sql("select 4L id, 1L p"))
    before = found(spark, "select id from z.read_records")
    assert ZTable.for_name(spark, "z.read_records").compact().groups
    now = found(spark, "select id from z.read_records")
    assert now.sources["z.read_records"].difference(before.sources["z.read_records"].to_dict()) is None
    assert now.definitions == before.definitions


def test_a_view_of_changes_is_the_table_whose_changes_it_holds(spark, tables):
    table = ZTable.for_name(spark, "z.read_2")
    table.delete("id = 3")
    table.net_changes(table.version - 1, unique_key="id").createOrReplaceTempView("read_changes")
    spark.sql("create or replace temporary view read_through as select * from read_changes")
    sql = "with unread as (select * from read_temp) select id from z.read_1 where id in (select id from read_through)"
    assert {"read_changes", "read_through"} <= temporary_views(spark.sql(sql))
    assert temporary_views(spark.sql("select 'read_changes' as `read_changes` /* read_changes */")) == set()
    sql = "select * from read_changes"
    reads = {"read_changes": TableRead("z.read_2", table.location, table.version)}
    inputs = query_inputs(sql, spark.sql(sql), reads)
    assert (set(inputs.sources), inputs.unknown) == ({"z.read_2"}, ())
    assert inputs.sources["z.read_2"].version == table.version


def test_the_version_is_that_of_the_analysis(spark, tables):
    frame = spark.sql("select * from z.read_1")
    version = ZTable.for_name(spark, "z.read_1").version
    ZTable.for_name(spark, "z.read_1").append(spark.sql("select 100L id, 0L p"))
    assert query_inputs("select * from z.read_1", frame).sources["z.read_1"].version == version
    assert frame.count() == 10


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("select rand()", "such as rand or uuid"),
        ("select id from z.read_1 where id = (select length(uuid()))", "such as rand or uuid"),
        ("select now()", "the current time, user or schema (now)"),
        ("select 1 where current_user() = 'x'", "the current time, user or schema (current_user)"),
        ("select * from z.read_1 where id in (select unix_timestamp())", "or schema (current_timestamp)"),
        ("select date'today'", "the literal 'today'"),
        ("select date /* ? */ 'tod\\141y'", "the literal date 'tod\\…"),
        ("select * from z.read_1 where timestamp_seconds(id) < ' Yesterday UTC'", "the literal ' Yesterday UTC'"),
        ("select cast(concat('to', 'day') as date)", "casts a text such as 'today'"),
        ("select id from z.read_1 where id = (select year(to_date('To' || 'day')))", "casts a text such as 'today'"),
        ("select aes_encrypt('a', '0000111122223333')", "it encrypts values"),
        ("select * from z.read_1 tablesample (50 percent)", "a sample"),
        ("select read_udf(id) from z.read_1", "a Python function"),
        ("select id, _metadata.file_name from z.read_1", "the file names of rows"),
        ("select * from read_temp", "the temporary view read_temp"),
        ("select * from z.read_records__ro", "base rows only (z.read_records__ro)"),
    ],
)
def test_rows_that_may_differ_are_told(spark, tables, sql, why):
    unknown = found(spark, sql).unknown
    assert any(why in each for each in unknown), unknown


@pytest.mark.skipif(pyspark.__version__ < "4.1", reason="Spark has recursive queries from 4.1 on")
def test_a_recursive_query_reads_what_it_starts_with(spark, tables):
    sql = (
        "with recursive r(n) as (select id from z.read_1 union all select n + 100 from r where n < 300) select n from r"
    )
    assert (list(found(spark, sql).sources), found(spark, sql).unknown) == (["z.read_1"], ())


def test_texts_that_only_look_like_the_current_time_are_told_apart(spark, tables):
    assert not found(spark, "select cast('2024-01-' || '31' as date), to_date(string(id)) from z.read_1").unknown
    assert not found(
        spark, "select 'now and then', 'todays', 'it is today', `today` from (select 'a' as today)"
    ).unknown
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        assert "it has a backslash" in found(spark, r"select '\', ' -- one', '\'").unknown[0]
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")


def test_functions_and_variables_of_sql_may_change(spark, tables):
    if spark.version < "4":
        pytest.skip("they came with Spark 4")
    spark.sql("create temporary function read_sql(x bigint) returns bigint return x + 1")
    spark.sql("declare variable read_variable = 5")
    assert "it calls read_sql, which is not a function of Spark" in found(spark, "select read_sql(1)").unknown
    assert not found(spark, "select upper('read_sql(1)') /* read_sql(1) */, coalesce(id, 1) from z.read_1").unknown
    assert found(spark, "select id from z.read_1 where id > read_variable").unknown == ("it uses an SQL variable",)
    many = ", ".join(f"id + {each} as c{each}" for each in range(40))
    assert found(spark, f"select {many}, read_variable from z.read_1").unknown == ("it uses an SQL variable",)


def test_views_over_a_version_of_the_past_are_fixed(spark, tables):
    table = ZTable.for_name(spark, "z.read_2")
    table.read(version=0).createOrReplaceTempView("zlayout_at_z_read_2_v0_abcd")
    inputs = found(spark, "select * from zlayout_at_z_read_2_v0_abcd")
    assert not inputs.unknown
    ((name, each),) = inputs.sources.items()
    assert name.endswith("/read_2 v0")
    assert (each.version, each.instant) == (0, table.history().column("instant").to_pylist()[-1])


def test_a_function_that_hides_one_of_spark_may_change(spark, tables):
    session = spark.newSession()
    session.sql("create or replace temporary function sha as 'org.apache.hadoop.hive.ql.udf.UDFSha1'")
    (why,) = found(session, "select sha('a')").unknown
    assert "Spark" in why
    assert not found(spark, "select sha('a')").unknown


def test_views_below_a_view_are_those_of_its_own_schema(spark, tables):
    spark.sql("create schema if not exists read_schema")
    spark.sql("use read_schema")
    spark.sql("create view read_lower as select id from z.read_1")
    spark.sql("create view read_upper as select id from read_lower")
    spark.sql("use default")
    before = found(spark, "select * from read_schema.read_upper")
    assert not before.unknown
    spark.sql("create or replace view read_schema.read_lower as select id from z.read_1 where p = 1")
    assert found(spark, "select * from read_schema.read_upper").definitions != before.definitions
    spark.sql("drop schema read_schema cascade")


def test_how_files_are_read_counts_as_well(spark, tables, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.csv").write_text(f"{name}\n{name}\n")

    def now(*definition):
        spark.sql("drop table if exists z.read_csv")
        for each in definition:
            spark.sql(each)
        inputs = found(spark, "select count(s) from z.read_csv")
        assert not inputs.unknown
        return inputs.sources["z.read_csv"]

    def in_parts(*folders):
        parts = [
            f"alter table z.read_csv add partition (p={position}) location '{tmp_path / folder}'"
            for position, folder in enumerate(folders)
        ]
        # With a location of its own, dropping the table keeps the files.
        where = f"partitioned by (p) location '{tmp_path / 'table'}'"
        return now(f"create table z.read_csv (s string, p int) using csv {where}", *parts)

    assert in_parts("a", "b").difference(in_parts("a", "b").to_dict()) is None
    assert in_parts("a", "b").difference(in_parts("b", "a").to_dict()) == "has other files"
    table = f"using csv location '{tmp_path / 'a'}'"
    first = now(f"create table z.read_csv (s string) {table}").to_dict()
    assert now(f"create table z.read_csv (s string) {table}").difference(first) is None
    assert now(f"create table z.read_csv (s string) {table} options (header 'true')").difference(first) is not None
    assert now(f"create table z.read_csv (s int) {table}").difference(first) is not None


def test_a_name_that_ends_like_the_files_of_another_table_is_its_own(spark, tables):
    ZTable.write(spark, "z.read_1__files", spark.range(1), zorder=["id"])
    assert found(spark, "select * from z.read_1, z.read_1__files").sources.keys() == {"z.read_1", "z.read_1__files"}
    unknown = found(spark, "select * from z.read_records__files").unknown
    assert unknown == ("it reads the files of z.read_records, which a compaction changes",)


def test_an_index_that_is_refreshed_meanwhile_leaves_the_files_unknown(spark, tables):
    spark.range(3).coalesce(1).write.format("parquet").saveAsTable("z.read_indexed")
    ZTable.adopt(spark, "z.read_indexed", zorder=["id"])
    frame = spark.sql("select * from z.read_indexed")
    assert isinstance(query_inputs("", frame).sources["z.read_indexed"], FilesInput)
    spark.range(3, 5).coalesce(1).write.insertInto("z.read_indexed")
    ZTable.for_name(spark, "z.read_indexed").refresh_index()
    spark.table("z.read_indexed")
    assert "was refreshed" in query_inputs("", frame).unknown[0]


def test_settings_that_change_the_meaning_of_sql_count(spark):
    before = session_facts(spark)
    for key, value, counts in (("mapKeyDedupPolicy", "LAST_WIN", True), ("shuffle.partitions", "3", False)):
        old = spark.conf.get(f"spark.sql.{key}")
        spark.conf.set(f"spark.sql.{key}", value)
        assert (session_facts(spark) != before) == counts, key
        if counts:
            spark.conf.unset(f"spark.sql.{key}")
        else:
            spark.conf.set(f"spark.sql.{key}", old)
