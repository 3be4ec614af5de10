"""Merge-on-read tables: upserts and deletes go to logs, every reader sees them, compaction changes no row."""

import pytest

from dbt.adapters.zlayout.errors import ConfigError, WriteError
from dbt.adapters.zlayout.table import ZTable


def rows(spark, sql):
    return sorted(map(tuple, spark.sql(sql).collect()), key=repr)


@pytest.fixture
def table(spark):
    made = ZTable.write(
        spark,
        "z.records",
        spark.range(100).selectExpr("id k", "id % 7 a", "concat('v', id) v"),
        table_type="merge_on_read",
        unique_key=["k"],
        zorder=["k"],
        compaction="off",
    )
    yield made
    for kind, name in (("view", "records"), ("view", "records__ro"), ("table", "records__files")):
        spark.sql(f"drop {kind} if exists z.{name}")


def test_an_upsert_updates_and_inserts_through_logs(spark, table):
    done = table.upsert(spark.range(95, 105).selectExpr("id k", "-1L a", "'new' v"))
    assert (done.rows_inserted, done.rows_updated, done.files_removed) == (5, 5, 0)
    assert done.log_bytes > 0
    expected = [(k, k % 7, f"v{k}") for k in range(95)] + [(k, -1, "new") for k in range(95, 105)]
    assert rows(spark, "select * from z.records") == sorted(expected, key=repr)
    assert spark.table("z.records__ro").count() == 100
    assert spark.table("z.records__files").count() == 110


def test_a_delete_goes_to_the_logs_too_and_a_row_may_come_again(spark, table):
    done = table.delete("k < 10")
    assert (done.rows_deleted, done.files_removed) == (10, 0)
    assert spark.table("z.records").count() == 90
    table.upsert(spark.sql("select 3L k, 1L a, 'back' v"))
    assert rows(spark, "select * from z.records where k < 12") == [(10, 3, "v10"), (11, 4, "v11"), (3, 1, "back")]


def test_compaction_changes_no_row(spark, table):
    table.upsert(spark.range(50, 150).selectExpr("id k", "-1L a", "'new' v"))
    table.delete("k % 10 = 0")
    before = rows(spark, "select * from z.records")
    done = table.compact()
    assert done.groups == 1
    assert rows(spark, "select * from z.records") == before
    assert rows(spark, "select * from z.records__ro") == before
    assert spark.table("z.records__files").where("_zl_op is not null").count() == 0
