"""Models that read what changed since their last run: each change once, whatever happened to the tables and the runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.zlayout.spark.commit.catalog_entries import drop_table
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.log.positions import positions_of

ORDERS, RECORDS = "main.feed_orders", "main.feed_records"
MODELS = ("kept_orders", "kept_records", "kept_both", "kept_log", "kept_days")
COLUMNS = "id, v, day"


def some(spark, ids, v):
    listed = ", ".join(f"({each}L, {v})" for each in ids)
    day = "date_add(date'2024-01-01', cast(id % 5 as int)) day"
    return spark.sql(f"select id, cast(v as bigint) v, {day} from values {listed} t(id, v)")


@pytest.fixture
def feeds(dbt, spark):
    """The two tables that the models read: copy-on-write and merge-on-read, 40 rows each."""
    spark.sql("create schema if not exists main")
    for name in (*MODELS, "kept_counts", "kept_default", "feed_orders", "feed_records"):
        drop_table(spark, "main", name, None)
    orders = ZTable.write(
        spark, ORDERS, some(spark, range(40), 0), zorder="id", target_file_size="2kb", retain_versions=50
    )
    records = ZTable.write(
        spark,
        RECORDS,
        some(spark, range(40), 0),
        table_type="merge_on_read",
        unique_key="id",
        compaction="off",
        retain_versions=50,
    )
    return orders, records


def run(dbt, *options, select=MODELS, success=True, **variables):
    done = dbt("run", "--select", *select, *options, **variables)
    assert done.success == success, done.log
    return done


def same(spark, left, right):
    return (
        spark.sql(left).exceptAll(spark.sql(right)).union(spark.sql(right).exceptAll(spark.sql(left))).collect() == []
    )


def check(spark):
    assert same(spark, f"select {COLUMNS} from main.kept_orders", f"select {COLUMNS} from {ORDERS}")
    assert same(spark, f"select {COLUMNS} from main.kept_records", f"select {COLUMNS} from {RECORDS}")
    joined = f"select id, o.v of_order, r.v of_record from {ORDERS} o full join {RECORDS} r using (id)"
    kept = "select * from main.kept_both where of_order is not null or of_record is not null"
    assert same(spark, kept, joined)
    days = "select total, day from main.kept_days where day in (select day from main.feed_orders)"
    assert same(spark, days, f"select sum(v) total, day from {ORDERS} group by day")


def log_of(spark, turn):
    found = spark.sql(f"select what, id, v from main.kept_log where turn = {turn}").collect()
    return sorted(map(tuple, found))


@pytest.mark.slow
def test_each_run_takes_what_changed_since_the_last_one(dbt, spark, feeds):
    orders, records = feeds
    done = run(dbt, turn=0)
    assert "all rows of main.feed_orders v0, as inserts" in done.log
    check(spark)
    orders.append(some(spark, [100, 101], 1))
    orders.merge(some(spark, [3, 100, 102], 2), "id")
    orders.cluster(rewrite_all=True)
    orders.delete("id in (5, 101)")
    records.upsert(some(spark, [3, 200], 1))
    records.compact()
    records.merge(some(spark, [7, 200], 9), "id", deleted_when="v = 9")
    done = run(dbt, turn=1)
    assert f"changes of main.feed_orders from v0 to v{orders.version}" in done.log
    # `_zl_change` is made for the condition, so no line says that it is not stored.
    assert "is not stored" not in done.log
    check(spark)
    # A row that came and went is no change, and one that came and changed is an insert.
    assert log_of(spark, 1) == [("delete", 5, 0), ("insert", 100, 2), ("insert", 102, 2), ("update", 3, 2)]
    # Another layout is no change, and no reason for a version.
    orders.cluster(rewrite_all=True)
    versions = {model: ZTable.for_name(spark, f"main.{model}").version for model in MODELS}
    assert "no changes of main.feed_orders since v" in run(dbt, turn=2).log
    assert {model: ZTable.for_name(spark, f"main.{model}").version for model in MODELS} == versions
    # What is undone is a change, and so is a table that is built anew.
    orders.rollback(0)
    run(dbt, turn=3)
    check(spark)
    assert log_of(spark, 3) == [("delete", 100, 2), ("delete", 102, 2), ("insert", 5, 0), ("update", 3, 0)]
    ZTable.write(spark, ORDERS, some(spark, range(1, 41), 0), zorder="day", retain_versions=50)
    run(dbt, turn=4)
    check(spark)
    assert log_of(spark, 4) == [("delete", 0, 0), ("insert", 40, 0)]
    done = run(dbt, "--full-refresh", turn=5)
    assert f"all rows of main.feed_orders v{ZTable.for_name(spark, ORDERS).version}, as inserts" in done.log
    check(spark)
    assert len(log_of(spark, 5)) == 40


@pytest.mark.slow
def test_rows_are_paired_by_the_key_that_the_model_merges_by_however_it_is_spelled(dbt, spark, feeds):
    orders, _ = feeds
    # The strategy of a merge-on-read table is merge, if the model names none. Its key is text with commas.
    run(dbt, select=["kept_default"])
    orders.merge(some(spark, [3, 100], 2), "id")
    orders.delete("id = 5")
    run(dbt, select=["kept_default"])
    assert same(spark, f"select {COLUMNS} from main.kept_default", f"select {COLUMNS} from {ORDERS}")


@pytest.mark.parametrize("strategy", ["merge", pytest.param("delete+insert", marks=pytest.mark.slow)])
def test_a_row_that_gets_another_key_of_the_model_also_changes_the_old_one(dbt, spark, feeds, strategy):
    _, records = feeds
    run(dbt, "--full-refresh", select=["kept_counts"], counted_by=strategy)
    # The key of the merge-on-read table is not that of the model.
    records.upsert(some(spark, [3], 8))
    run(dbt, select=["kept_counts"], counted_by=strategy)
    counts = f"select v, count(*) as found from {RECORDS} group by v"
    assert same(spark, "select v, found from main.kept_counts", counts)


@pytest.mark.slow
def test_a_merge_without_a_key_says_that_an_update_is_two_rows(dbt, spark, feeds):
    orders, _ = feeds
    drop_table(spark, "main", "changes_in_a_table", None)
    run(dbt, select=["changes_in_a_table"], how="merge")
    orders.merge(some(spark, [3], 2), "id")
    done = run(dbt, select=["changes_in_a_table"], how="merge")
    drop_table(spark, "main", "changes_in_a_table", None)
    assert "from v0 to v1, updates as a delete and an insert: there is no unique_key" in done.log


@pytest.mark.parametrize("point", ["before", pytest.param("after", marks=pytest.mark.slow)])
def test_a_run_that_dies_repeats_nothing_and_loses_nothing(dbt, spark, feeds, monkeypatch, point):
    from dbt.adapters.zlayout.spark.write import modify
    from dbt.adapters.zlayout.timeline.timeline import Timeline

    orders, _ = feeds
    run(dbt, turn=0)
    orders.append(some(spark, [100], 1))

    def dies(*_, **__):
        raise RuntimeError("it dies here")

    with monkeypatch.context() as patch:
        patch.setattr(*((Timeline, "append") if point == "before" else (modify, "publish")), dies)
        run(dbt, select=["kept_log"], success=False, turn=1)
    # The next run takes what is left, with what came in between.
    orders.append(some(spark, [101], 1))
    run(dbt, select=["kept_log"], turn=2)
    found = log_of(spark, 1) + log_of(spark, 2)
    assert found == [("insert", 100, 1), ("insert", 101, 1)]
    assert len(log_of(spark, 2)) == (2 if point == "before" else 1)


@pytest.mark.slow
def test_the_position_is_that_of_the_rows(dbt, spark, feeds):
    orders, _ = feeds
    run(dbt, turn=0, select=["kept_log"])
    log = ZTable.for_name(spark, "main.kept_log")
    orders.append(some(spark, [100], 1))
    run(dbt, turn=1, select=["kept_log"])
    # Neither looking nor an empty run takes anything.
    orders.append(some(spark, [101], 1))
    for command in (("compile",), ("show", "--limit", "5"), ("run", "--empty")):
        done = dbt(*command, "--select", "kept_log", turn=2)
        assert done.success, done.log
    run(dbt, turn=3, select=["kept_log"])
    assert (log_of(spark, 2), log_of(spark, 3)) == ([], [("insert", 101, 1)])
    # Rows that are gone from the model come again, and maintenance of the model does not matter.
    log = ZTable.for_name(spark, "main.kept_log")
    log.cluster(rewrite_all=True)
    log.delete("turn = 3")
    run(dbt, turn=4, select=["kept_log"])
    assert log_of(spark, 4) == []
    log.rollback(0)
    run(dbt, turn=5, select=["kept_log"])
    assert log_of(spark, 5) == [("insert", 100, 1), ("insert", 101, 1)]
    (position,) = positions_of(ZTable.for_name(spark, "main.kept_log").snapshot().properties).values()
    assert position == ZTable.for_name(spark, ORDERS).position


@pytest.mark.slow
def test_a_sampled_run_takes_nothing(dbt, spark, feeds):
    orders, _ = feeds
    run(dbt, turn=0, select=["kept_log", "kept_orders"])
    orders.append(some(spark, [100], 1))
    done = run(dbt, "--sample", "3 days", turn=1, select=["kept_log"], success=False)
    assert "with --sample, zlayout_changes would add rows that the next run adds again" in done.message("kept_log")
    run(dbt, "--sample", "3 days", turn=1, select=["kept_orders"])
    (position,) = positions_of(ZTable.for_name(spark, "main.kept_orders").snapshot().properties).values()
    assert position.version == 0
    run(dbt, turn=2, select=["kept_log", "kept_orders"])
    assert log_of(spark, 2) == [("insert", 100, 1)]
    assert same(spark, f"select {COLUMNS} from main.kept_orders", f"select {COLUMNS} from {ORDERS}")


@pytest.mark.slow
def test_a_run_reads_each_table_at_one_version_and_two_runs_never_take_the_same_rows(dbt, spark, feeds, monkeypatch):
    from dbt.adapters.zlayout.adapter.materialize import materialization

    orders, _ = feeds
    run(dbt, turn=0, select=["kept_log"])
    orders.append(some(spark, [100], 1))
    write = materialization.write_increment

    def while_another_commits(*arguments):
        orders.append(some(spark, [101], 1))
        return write(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(materialization, "write_increment", while_another_commits)
        run(dbt, turn=1, select=["kept_log"])
    assert log_of(spark, 1) == [("insert", 100, 1)]

    def while_another_run_commits(table, rows, wanted, batch, progress, made_from, taken):
        write(ZTable.for_name(spark, table.name), rows, wanted, batch, progress, made_from, taken)
        return write(table, rows, wanted, batch, progress, made_from, taken)

    with monkeypatch.context() as patch:
        patch.setattr(materialization, "write_increment", while_another_run_commits)
        done = run(dbt, turn=2, select=["kept_log"], success=False)
    assert "another run took the changes of main.feed_orders in the meantime" in done.message("kept_log")
    assert log_of(spark, 2) == [("insert", 101, 1)]


@pytest.mark.slow
def test_all_rows_come_again_where_the_last_position_is_lost(dbt, spark, feeds):
    orders, _ = feeds
    run(dbt, turn=0, select=["kept_orders", "kept_log"])
    orders.merge(some(spark, [3], 5), "id")
    orders.delete("id = 4")
    orders.clean(retain_versions=1, retain_hours=0)
    done = run(dbt, turn=1, select=["kept_orders"])
    assert (
        "all rows of main.feed_orders v2 are delivered as inserts, because main.feed_orders: files that changed"
        in done.log
    )
    assert "were cleaned" in done.log
    assert same(spark, f"select {COLUMNS} from main.kept_orders where id <> 4", f"select {COLUMNS} from {ORDERS}")
    # Rows are not doubled.
    done = run(dbt, turn=1, select=["kept_log"], success=False)
    assert "all rows of main.feed_orders would be added again" in done.message("kept_log")
    assert "all rows of main.feed_orders v2 are delivered" not in done.log
    assert "--full-refresh" in done.message("kept_log")
    run(dbt, "--full-refresh", turn=2, select=["kept_log"])
    assert len(log_of(spark, 2)) == 39
    drop_table(spark, "main", "feed_orders", None)
    ZTable.write(spark, ORDERS, some(spark, range(3), 7))
    done = run(dbt, turn=3, select=["kept_orders"])
    assert "main.feed_orders is another table than the one whose changes were taken" in done.log
    done = run(dbt, turn=3, select=["kept_log"], success=False)
    assert "all rows of main.feed_orders would be added again, because main.feed_orders is another table" in (
        done.message("kept_log")
    )


@pytest.mark.slow
def test_all_rows_come_where_files_were_lost_and_dropped(dbt, spark, feeds):
    orders, _ = feeds
    # A run without rows is the first one: the next has nothing to warn of.
    run(dbt, "--empty", turn=0, select=["kept_orders"])
    assert "are delivered as inserts, because" not in run(dbt, turn=0, select=["kept_orders"]).log
    kept = orders.files()["path"].to_pylist()
    orders.append(some(spark, [100], 1))
    run(dbt, turn=0, select=["kept_orders"])
    (lost,) = set(orders.files()["path"].to_pylist()) - set(kept)
    Path(lost).unlink()
    orders.refresh_index(drop_missing=True)
    done = run(dbt, turn=1, select=["kept_orders"])
    assert "were missing from the folder, and version 2 dropped them" in done.log
    orders.merge(some(spark, [39], 5), "id")
    assert "changes of main.feed_orders from v2 to v3" in run(dbt, turn=2, select=["kept_orders"]).log
    kept = f"select {COLUMNS} from main.kept_orders where id in (select id from {ORDERS})"
    assert same(spark, kept, f"select {COLUMNS} from {ORDERS}")


@pytest.mark.slow
def test_what_has_no_changes_is_refused_with_what_to_do(dbt, spark, feeds):
    spark.sql("create or replace view main.feed_view as select 1 id")
    spark.sql("drop table if exists main.feed_foreign")
    spark.sql("create table main.feed_foreign using parquet as select 1 id")
    for others, why in (
        ("feed_view", "main.feed_view is a view"),
        ("feed_foreign", "main.feed_foreign is written by other tools"),
    ):
        done = run(dbt, select=["changes_of_others"], success=False, others=others)
        assert why in done.message("changes_of_others")
    ZTable.adopt(spark, "main.feed_foreign")
    done = run(dbt, select=["changes_of_others"], success=False, others="feed_foreign")
    assert "only indexed" in done.message("changes_of_others")
    of_rows = ({"as": "table"}, {"as": "view"}, {"as": "ephemeral"}, {"how": "microbatch"}, {"how": "insert_overwrite"})
    for config in of_rows:
        done = dbt("compile", "--select", "changes_in_a_table", **config)
        assert not done.success
        assert "zlayout_changes needs a model that keeps its rows" in done.log + str(done.exception)
    done = dbt("compile", "--select", "changes_in_a_table", **{"as": "zordered_table"})
    assert "'zordered_table' without an incremental_strategy does not" in done.log + str(done.exception)


@pytest.mark.slow
def test_a_model_that_skips_unchanged_runs_sees_changes(dbt, spark, feeds):
    config = {"addition": "", "skips": True}
    run(dbt, select=["kept_orders"], **config)
    done = run(dbt, select=["kept_orders"], **config)
    assert done.message("kept_orders").startswith("unchanged since v0: feed_orders v0")
    feeds[0].cluster(rewrite_all=True)
    assert run(dbt, select=["kept_orders"], **config).message("kept_orders").startswith("unchanged since v0")
    feeds[0].append(some(spark, [100], 1))
    told = dbt("run-operation", "zlayout_why_run", "--args", "{model: kept_orders}", **config)
    assert "main.feed_orders has other rows" in told.printed
    run(dbt, select=["kept_orders"], **config)
    assert same(spark, f"select {COLUMNS} from main.kept_orders", f"select {COLUMNS} from {ORDERS}")
    # The changes of a merge-on-read table.
    run(dbt, select=["kept_records"], **config)
    assert run(dbt, select=["kept_records"], **config).message("kept_records").startswith("unchanged since v0")
    feeds[1].upsert(some(spark, [3, 200], 1))
    assert not run(dbt, select=["kept_records"], **config).message("kept_records").startswith("unchanged")
    feeds[1].compact()
    assert run(dbt, select=["kept_records"], **config).message("kept_records").startswith("unchanged since v1")


def test_unit_tests_give_the_changes(dbt, feeds):
    done = dbt("test", "--select", "kept_log,test_type:unit", turn=1)
    assert done.success, done.log
    assert len(done.results) == 2
