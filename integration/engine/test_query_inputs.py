"""What a query reads, and what makes its rows unpredictable, as Spark analyses it."""

import pytest

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.spark.catalog.session_catalog import TableName
from dbt.adapters.zlayout.spark.read.query_inputs import FilesInput, TableInput, query_inputs, source_now
from dbt.adapters.zlayout.table.ztable import ZTable

OWN = TableName("z", "own")


@pytest.fixture(scope="module")
def tables(spark):
    enable(spark)
    for name in ("own", "read_1", "read_2"):
        ZTable.write(spark, f"z.{name}", spark.range(10).selectExpr("id", "id % 2 p"), zorder=["id"])
    records = spark.range(10).selectExpr("id", "id % 2 p")
    settings = {"table_type": "merge_on_read", "unique_key": ["id"]}
    ZTable.write(spark, "z.read_records", records, zorder=["id"], **settings)
    spark.range(4).selectExpr("id", "id p").write.partitionBy("p").saveAsTable("z.read_plain")
    spark.sql("create view z.read_view as select id from z.read_2 where p in (select p from z.read_plain)")
    spark.sql("create temporary view read_temp as select id from z.read_1")
    spark.udf.register("read_udf", lambda value: value, "bigint")


def found(spark, sql):
    return query_inputs(sql, spark.sql(sql), OWN)


def test_a_query_reads_tables_at_versions_and_other_files_by_digest(spark, tables):
    sql = (
        "with c as (select id from z.read_1) select c.id from c join z.read_view using (id) left join z.own using (id)"
        " where c.id in (select id from z.read_records)"
    )
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


def test_the_version_is_that_of_the_analysis(spark, tables):
    frame = spark.sql("select * from z.read_1")
    version = ZTable.for_name(spark, "z.read_1").version
    ZTable.for_name(spark, "z.read_1").append(spark.sql("select 100L id, 0L p"))
    assert query_inputs("select * from z.read_1", frame, OWN).sources["z.read_1"].version == version
    assert frame.count() == 10


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("select rand()", "such as rand or uuid"),
        ("select id from z.read_1 where id = (select length(uuid()))", "such as rand or uuid"),
        ("select now()", "the current time"),
        ("select 1 where current_user() = 'x'", "the current time, user"),
        ("select * from z.read_1 where id in (select unix_timestamp())", "the current time"),
        ("select * from z.read_1 tablesample (50 percent)", "a sample"),
        ("select read_udf(id) from z.read_1", "a Python function"),
        ("select * from read_temp", "the temporary view read_temp"),
    ],
)
def test_rows_that_may_differ_are_told(spark, tables, sql, why):
    unknown = found(spark, sql).unknown
    assert any(why in each for each in unknown), unknown


def test_functions_and_variables_of_sql_may_change(spark, tables):
    if spark.version < "4":
        pytest.skip("they came with Spark 4")
    spark.sql("create temporary function read_sql(x bigint) returns bigint return x + 1")
    spark.sql("declare variable read_variable = 5")
    assert found(spark, "select read_sql(id) from z.read_1").unknown == (
        "it calls read_sql, which is not a function of Spark",
    )
    assert not found(spark, "select upper('read_sql(1)') /* read_sql(1) */, coalesce(id, 1) from z.read_1").unknown
    assert found(spark, "select id from z.read_1 where id > read_variable").unknown == ("it uses an SQL variable",)


def test_views_over_a_version_of_the_past_are_fixed(spark, tables):
    table = ZTable.for_name(spark, "z.read_2")
    table.read(version=0).createOrReplaceTempView("zlayout_at_z_read_2_v0_abcd")
    inputs = found(spark, "select * from zlayout_at_z_read_2_v0_abcd")
    assert not inputs.unknown
    ((name, each),) = inputs.sources.items()
    assert name.endswith("/read_2 v0")
    assert each.to_dict() == {"table": each.table_id, "version": 0}
