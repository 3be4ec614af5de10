"""Merge-on-read tables: upserts and deletes go to logs, every reader sees them, compaction changes no row."""

import contextlib
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from comparing import same_rows
from pyspark.sql import functions
from scanned import Scans

from dbt.adapters.zlayout.adapter.operations.maintenance import cluster_line
from dbt.adapters.zlayout.errors import ConfigError, ConflictError, UnsupportedError, WriteError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.cluster.group_writer import GroupWriter
from dbt.adapters.zlayout.spark.merge_on_read.compaction_write import SliceWriter
from dbt.adapters.zlayout.spark.merge_on_read.delta_commit import DeltaCommit
from dbt.adapters.zlayout.spark.rewrite import file_writer
from dbt.adapters.zlayout.spark.schema.arrow_columns import key_table
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.table.ztable import ZTable, explain_query
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.log.file_slices import groups_with_logs, log_files, slices_with_logs
from dbt.adapters.zlayout.timeline.transactions.pending import list_scheduled
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

ROWS = "select id k, id % 7 a, concat('v', id) v from range({}, {})"


def rows(spark, sql):
    return sorted(map(tuple, spark.sql(sql).collect()), key=repr)


def made(spark, name, query, **settings):
    given = {"table_type": "merge_on_read", "unique_key": ["k"], "zorder": ["k"], "compaction": "off", **settings}
    return ZTable.write(spark, f"z.mor_{name}", spark.sql(query), **given)


def upsert(spark, table, query, **options):
    return table.upsert(spark.sql(query), **options)


def waiting(table):
    return list_scheduled(table._opened.store, Action.COMPACTION)


def live(table):
    return ZTable.for_name(table._spark, table.name).snapshot().files


def test_an_upsert_updates_and_inserts_through_logs(spark):
    table = made(spark, "records", ROWS.format(0, 100))
    done = upsert(spark, table, "select id k, -1L a, 'new' v from range(95, 105)")
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted, done.files_removed) == (5, 5, 0, 0)
    assert (done.groups_touched, done.log_bytes) == (1, done.bytes_added)
    expected = [(k, k % 7, f"v{k}") for k in range(95)] + [(k, -1, "new") for k in range(95, 105)]
    assert rows(spark, "select * from z.mor_records") == sorted(expected, key=repr)
    assert spark.table("z.mor_records__ro").count() == 100
    assert rows(spark, "select distinct _zl_op, _zl_instant from z.mor_records__files where _zl_op is not null") == [
        ("upsert", int(done.instant))
    ]
    assert table.history(1).column("action").to_pylist() == ["deltacommit"]


@pytest.mark.slow
def test_a_session_without_this_package_reads_the_same_rows(spark):
    table = made(spark, "plain", ROWS.format(0, 50))
    upsert(spark, table, "select id k, -1L a, 'new' v from range(40, 60)")
    table.delete("k < 5")
    other = spark.newSession()
    for query in (
        "select * from z.mor_plain",
        "select v from z.mor_plain where k = 41",
        "select * from z.mor_plain where a = -1",
    ):
        assert rows(other, query) == rows(spark, query)
    assert other.table("z.mor_plain").count() == 55


@pytest.mark.slow
def test_deletes_go_to_the_logs_and_a_row_may_come_again(spark):
    table = made(spark, "gone", ROWS.format(0, 100), ordering="a")
    done = table.delete("k < 10")
    assert (done.rows_deleted, done.files_removed) == (10, 0)
    assert table.delete("k < 10").version == done.version
    upsert(spark, table, "select 3L k, -9L a, 'back' v")
    assert rows(spark, "select * from z.mor_gone where k < 12") == [(10, 3, "v10"), (11, 4, "v11"), (3, -9, "back")]
    table.compact()
    assert rows(spark, "select * from z.mor_gone__ro where k < 12") == [(10, 3, "v10"), (11, 4, "v11"), (3, -9, "back")]


@pytest.mark.exhaustive
@pytest.mark.newest_spark
def test_an_empty_batch_makes_no_version(spark):
    table = made(spark, "empty", ROWS.format(0, 10))
    assert upsert(spark, table, ROWS.format(0, 0)).version == table.version
    nothing = made(spark, "nothing", ROWS.format(0, 0))
    assert upsert(spark, nothing, ROWS.format(0, 3)).rows_inserted == 3
    assert spark.table("z.mor_nothing").count() == 3
    assert spark.table("z.mor_nothing__ro").count() == 0
    nothing.compact()
    assert spark.table("z.mor_nothing__ro").count() == 3


@pytest.mark.slow
def test_the_greater_ordering_wins_wherever_it_lies(spark):
    table = made(spark, "ordered", "select id k, 5 o, 'base' v from range(4)", ordering="o")
    batch = (
        "select k, o, v from values (0, 4, 'late'), (1, 6, 'x'), (1, 7, 'y'), (2, 5, 'same'), (9, 1, 'in') t(k, o, v)"
    )
    done = upsert(spark, table, batch.replace("select k", "select cast(k as bigint) k"))
    assert (done.rows_inserted, done.rows_updated) == (1, 2)
    assert rows(spark, "select * from z.mor_ordered") == [
        (0, 5, "base"),
        (1, 7, "y"),
        (2, 5, "same"),
        (3, 5, "base"),
        (9, 1, "in"),
    ]
    upsert(spark, table, "select 1L k, 6 o, 'lower than the log' v")
    assert rows(spark, "select v from z.mor_ordered where k = 1") == [("y",)]
    table.compact()
    upsert(spark, table, "select 1L k, cast(null as int) o, 'null is least' v")
    assert rows(spark, "select v from z.mor_ordered where k = 1") == [("y",)]


@pytest.mark.slow
@pytest.mark.newest_spark
def test_keys_that_are_null_or_come_twice_are_refused(spark):
    table = made(spark, "refused", ROWS.format(0, 10))
    with pytest.raises(WriteError, match=r"k is null in 1 row\b"):
        upsert(spark, table, "select cast(null as bigint) k, 1L a, 'x' v")
    with pytest.raises(WriteError, match="several rows with the same unique_key"):
        upsert(spark, table, "select 1L k, id a, 'x' v from range(2)")
    with pytest.raises(WriteError, match="unique_key: k is null in 1 row; every key column"):
        made(spark, "refused_at_first", "select cast(null as bigint) k, 1 a")
    with pytest.raises(WriteError, match="`a` is null in 1 row, but the contract says not_null"):
        made(spark, "refused_at_first", "select 1L k, cast(null as int) a", not_null=["a"])
    with pytest.raises(WriteError, match="several rows with the same unique_key"):
        made(spark, "refused_at_first", "select id % 3 k, id a from range(5)")
    assert not spark.catalog.tableExists("z.mor_refused_at_first__files")
    twice = ZTable.write(spark, "z.mor_refused_twice", spark.sql("select id % 3 k, id a, 'v' v from range(5)"))
    with pytest.raises(WriteError, match="several rows with the same unique_key"):
        twice.merge(spark.sql(ROWS.format(0, 1)), "k", settings=config_of(table.snapshot()))
    assert twice.version == ZTable.for_name(spark, "z.mor_refused_twice").version
    assert table.version == ZTable.for_name(spark, "z.mor_refused").version


@pytest.mark.slow
@pytest.mark.newest_spark
def test_keys_are_checked_wherever_a_table_lies(spark, tmp_path):
    root, query = f"{tmp_path}/a b%20{{c", "select id % {} k, concat('p {{=', id % 2) p from range(4)"
    table = made(spark, "placed", query.format(4), partition_by="p", location_root=root)
    assert upsert(spark, table, query.format(4)).rows_updated == 4
    with pytest.raises(WriteError, match="several rows with the same unique_key"):
        made(spark, "placed_twice", query.format(2), partition_by="p", location_root=root)


@pytest.mark.newest_spark
def test_what_a_merge_on_read_table_does_not_do_is_said(spark):
    table = made(spark, "undone", ROWS.format(0, 10))
    more = spark.sql(ROWS.format(0, 1))
    for change in (lambda: table.append(more), lambda: table.overwrite(more)):
        with pytest.raises(ConfigError, match="only takes rows by key"):
            change()
    with pytest.raises(ConfigError, match="not the key of the table"):
        table.merge(more, ["a"])
    with pytest.raises(ConfigError, match="one row per key"):
        table.merge(more, ["k"], predicates=["DBT_INTERNAL_DEST.a > 1"])
    with pytest.raises(ConfigError, match="needs the columns that identify a row"):
        made(spark, "keyless", ROWS.format(0, 1), unique_key=None)
    with pytest.raises(ConfigError, match="_zl_op"):
        made(spark, "taken", "select 1 k, 'x' _zl_op")
    plain = ZTable.write(spark, "z.mor_undone_plain", more)
    with pytest.raises(ConfigError, match="stores no unique_key"):
        plain.upsert(more)
    with pytest.raises(UnsupportedError, match="copy_on_write"):
        plain.compact()


@pytest.mark.slow
@pytest.mark.newest_spark
def test_merges_with_columns_and_conditions_write_whole_rows(spark):
    table = made(spark, "merged", ROWS.format(0, 10))
    source = spark.sql("select id k, -1L a, 'new' v from range(8, 12)")
    done = table.merge(source, "k", update_columns=["a"], not_matched_condition="DBT_INTERNAL_SOURCE.k > 10")
    assert (done.rows_updated, done.rows_inserted) == (2, 1)
    assert rows(spark, "select * from z.mor_merged where k > 7") == [(11, -1, "new"), (8, -1, "v8"), (9, -1, "v9")]
    done = table.merge(source, "k", matched_condition="DBT_INTERNAL_DEST.k = 8", skip_not_matched_step=True)
    assert done.rows_updated == 1
    assert rows(spark, "select v from z.mor_merged where k in (8, 9)") == [("new",), ("v9",)]


@pytest.mark.slow
@pytest.mark.newest_spark
def test_delete_insert_and_replace_where_go_through_logs(spark):
    table = made(spark, "replaced", ROWS.format(0, 20))
    done = table.delete_insert(spark.sql("select id k, 0L a, 'di' v from range(18, 22)"), "k")
    assert (done.rows_updated, done.rows_inserted, done.files_removed) == (2, 2, 0)
    done = table.replace_where(spark.sql("select id k, 1L a, 'rw' v from range(4, 6)"), "k < 6")
    assert (done.rows_deleted, done.rows_updated, done.files_removed) == (4, 2, 0)
    assert rows(spark, "select k from z.mor_replaced where k < 7") == [(4,), (5,), (6,)]
    assert spark.table("z.mor_replaced").count() == 18


@pytest.mark.slow
@pytest.mark.parametrize("moves", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_a_row_that_comes_with_another_partition_moves_or_stays(spark, moves):
    name = f"moving_{int(moves)}"
    query = "select id k, if(id % 2 = 0, 'even', 'odd') p, 'base' v from range(20)"
    table = made(spark, name, query, partition_by="p", update_partition_path=moves)
    done = upsert(spark, table, "select 4L k, 'odd' p, 'moved' v union all select 99L, '', 'new'")
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    there = "odd" if moves else "even"
    for _ in range(2):
        assert rows(spark, f"select p, v from z.mor_{name} where k = 4") == [(there, "moved")]
        assert rows(spark, f"select k, v from z.mor_{name} where p is null") == [(99, "new")]
        assert rows(spark, f"select count(*) from z.mor_{name}") == [(21,)]
        table.compact(where="p = 'odd'")
        assert rows(spark, f"select p, v from z.mor_{name} where k = 4") == [(there, "moved")]
        table.compact()
    assert rows(spark, f"select count(*) from z.mor_{name}__ro") == [(21,)]
    upsert(spark, table, "select 4L k, 'even' p, 'back' v")
    assert rows(spark, f"select p, v from z.mor_{name} where k = 4") == [("even", "back")]


@pytest.mark.slow
@pytest.mark.newest_spark
def test_few_new_rows_fill_small_file_groups_and_many_become_base_files(spark):
    query = "select id k, sha2(cast(id as string), 256) v from range({}, {})"
    table = made(spark, "small", query.format(0, 2000), target_file_size="256kb", small_file_limit="200kb")
    before = {each.group for each in live(table)}
    upsert(spark, table, query.format(10_000, 10_050))
    assert groups_with_logs(live(table)) <= before
    done = upsert(spark, table, query.format(1990, 10_000) + " union all " + query.format(10_050, 16_000))
    assert (done.rows_inserted, done.rows_updated) == (13_950, 10)
    # The rows that change come as logs, the new ones lie between cuts of the curve.
    assert groups_with_logs(live(table)) <= before
    assert done.log_bytes < done.bytes_added / 20
    assert rows(spark, "select count(*) from z.mor_small__files where _zl_op is not null") == [(60,)]
    assert table.explain("k = 15000").kept_files <= 1 + len(log_files(live(table)))
    assert upsert(spark, table, query.format(15_000, 15_001)).rows_updated == 1
    assert same_rows(spark.table("z.mor_small"), spark.sql(query.format(0, 16_000)))


@pytest.mark.exhaustive
@pytest.mark.newest_spark
def test_logs_come_in_blocks_and_roll_over(spark):
    query = "select id k, sha2(cast(id as string), 256) v from range({})"
    table = made(
        spark, "blocks", query.format(10), log_max_size="100kb", bucket_buffer_size="60kb", buffer_size="200kb"
    )
    done = upsert(spark, table, query.format(45_000))
    assert done.files_added > 3
    (only,) = slices_with_logs(live(table))
    assert [path.rpartition("_")[2] for path in only.paths[1:4]] == [
        "0000.log.parquet",
        "0001.log.parquet",
        "0002.log.parquet",
    ]
    assert same_rows(spark.table("z.mor_blocks"), spark.sql(query.format(45_000)))


@pytest.mark.slow
def test_compactions_are_planned_and_carried_out_apart_while_writers_go_on(spark):
    table = made(spark, "apart", ROWS.format(0, 100))
    upsert(spark, table, "select id k, 1L a, 'one' v from range(10)")
    planned = table.compact(schedule=True)
    assert (planned.groups, len(planned.plans)) == (1, 1)
    (plan,) = waiting(table)
    assert Path(plan.path).name == f"{planned.plans[0]}.compaction.scheduled"
    assert table.compact(schedule=True).plans == ()  # the group has its plan
    upsert(spark, table, "select id k, 2L a, 'two' v from range(5, 15)")
    table.clean(retain_versions=1, retain_hours=0)
    expected = rows(spark, "select * from z.mor_apart")
    done = table.compact(execute=True)
    assert (done.groups, done.groups_dropped, done.plans) == (1, 0, planned.plans)
    assert waiting(table) == []
    assert rows(spark, "select * from z.mor_apart") == expected
    # What came after the plan is the log of the next slice.
    assert rows(spark, "select count(*), min(v) from z.mor_apart__files where _zl_op is not null") == [(10, "two")]
    assert rows(spark, "select v from z.mor_apart__ro where k = 7") == [("one",)]


@pytest.mark.exhaustive
def test_several_plans_wait_and_one_may_be_chosen(spark):
    query = "select id k, if(id < 10, 'x', 'y') p, 'base' v from range(20)"
    table = made(spark, "several", query, partition_by="p")
    upsert(spark, table, "select 1L k, 'x' p, 'log' v")
    first = table.compact(schedule=True).plans[0]
    upsert(spark, table, "select 11L k, 'y' p, 'log' v")
    second = table.compact(schedule=True).plans[0]
    assert [each.instant for each in waiting(table)] == [first, second]
    with pytest.raises(ConfigError, match="not the instant of a pending compaction plan"):
        table.compact(plan="2")
    assert table.compact(plan=second).plans == (second,)
    assert [each.instant for each in waiting(table)] == [first]
    assert table.compact(execute=True).plans == (first,)
    assert rows(spark, "select k from z.mor_several__ro where v = 'log'") == [(1,), (11,)]


@pytest.mark.slow
def test_a_condition_chooses_the_file_groups_of_a_compaction(spark):
    query = "select id k, if(id < 10, 'x', 'y') p, 'base' v from range(20)"
    table = made(spark, "where", query, partition_by="p")
    upsert(spark, table, "select 1L k, 'x' p, 'log' v union all select 11L, 'y', 'log'")
    with pytest.raises(ConfigError, match="where: 'nope = 1' does not fit the table"):
        table.compact(where="nope = 1")
    assert table.compact(where="p = 'z'").groups == 0
    assert table.compact(where="p = 'y' and k > 5").groups == 1
    assert rows(spark, "select k from z.mor_where__ro where v = 'log'") == [(11,)]
    with pytest.warns(DeprecationWarning, match="where: write a condition"):
        planned = table.compact(schedule=True, where={"p": "x"})
    assert planned.groups == 1
    assert table.information()["pending"] == {"clustering": [], "compaction": list(planned.plans)}
    for settings in ({"execute": True, "max_bytes": "1gb"}, {"plan": planned.plans[0], "logs_only": True}):
        with pytest.raises(ConfigError, match="only applies to a new plan"):
            table.compact(**settings)
    with pytest.warns(DeprecationWarning, match="execute_only is now called execute"):
        assert table.compact(execute_only=True).plans == planned.plans
    with (
        pytest.warns(DeprecationWarning, match="execute_only is now called execute"),
        pytest.raises(ConfigError, match="where: only applies to a new plan"),
    ):
        table.compact(execute_only=True, where="k = 1")


@pytest.mark.slow
@pytest.mark.newest_spark
def test_a_plan_whose_files_are_replaced_is_dropped(spark):
    table = made(spark, "stale", ROWS.format(0, 10))
    upsert(spark, table, "select 1L k, 1L a, 'log' v")
    table.compact(schedule=True)
    table = made(spark, "stale", ROWS.format(0, 5))
    done = table.compact(execute=True)
    assert (done.groups, done.groups_dropped) == (0, 1)
    assert waiting(table) == []
    assert spark.table("z.mor_stale").count() == 5


def test_a_plan_that_cannot_be_read_is_deleted_and_named(spark):
    table = made(spark, "damaged_plan", ROWS.format(0, 10))
    upsert(spark, table, "select 1L k, 1L a, 'log' v")
    instants = ("20240101000000000", "20240101000000001")
    for instant, content in zip(instants, (b"{", b'{"format_version":1,"operations":[{"logs":1}]}'), strict=True):
        table._opened.store.put(f".zlayout/timeline/{instant}.compaction.scheduled", content)
    done = table.compact(plan=instants[0])
    assert (done.plans, done.groups, done.version) == ((), 0, table.version)
    assert done.problems == (
        f"plan {instants[0]} was deleted without being executed, because its file cannot be read; make a new plan",
    )
    assert [each.instant for each in waiting(table)] == [instants[1]]
    # A run makes a plan of its own, which the damaged one does not hinder.
    done = table.compact()
    assert (done.groups, len(done.plans), len(done.problems)) == (1, 1, 1)
    assert waiting(table) == []


@pytest.mark.exhaustive
@pytest.mark.newest_spark
def test_a_compaction_that_fails_leaves_table_and_plan(spark):
    table = made(spark, "fails", ROWS.format(0, 10))
    upsert(spark, table, "select 1L k, 1L a, 'log' v")
    plan = table.compact(schedule=True).plans
    base = next(path for path in live(table)["path"].to_pylist() if ".log." not in path)
    broken = Path(table.location.removeprefix("file://")) / base
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-20])
    with pytest.raises(WriteError):
        table.compact(execute=True)
    broken.write_bytes(whole)
    assert ZTable.for_name(spark, "z.mor_fails").version == table.version
    assert [each.instant for each in waiting(table)] == list(plan)
    assert table.compact(execute=True).groups == 1


@pytest.mark.slow
def test_log_compaction_leaves_the_base_and_one_log(spark):
    table = made(spark, "logs_only", ROWS.format(0, 10))
    for number in range(3):
        upsert(spark, table, f"select id k, {number}L a, 'log' v from range({number}, 5)")
    table.delete("k = 4")
    planned = table.compact(schedule=True, logs_only=True)
    upsert(spark, table, "select 3L k, 9L a, 'later' v")
    before = rows(spark, "select * from z.mor_logs_only")
    done = table.compact(execute=True)
    assert (done.plans, done.files_removed, done.files_added) == (planned.plans, 4, 1)
    assert rows(spark, "select * from z.mor_logs_only") == before
    assert spark.table("z.mor_logs_only__ro").where("v = 'log'").count() == 0
    assert table.compact(logs_only=True).groups == 1
    assert table.compact(logs_only=True).groups == 0


@pytest.mark.slow
@pytest.mark.newest_spark
def test_clustering_leaves_groups_with_logs_alone(spark):
    table = made(spark, "clustered", ROWS.format(0, 3000), target_file_size="4kb", small_file_limit="1kb")
    upsert(spark, table, "select 5L k, 1L a, 'log' v")
    (logged,) = groups_with_logs(live(table))
    before = rows(spark, "select * from z.mor_clustered")
    done = table.cluster(rewrite_all=True)
    assert done.files_removed > 0
    assert done.files_with_logs == 2
    assert "skipped 2 files in file groups with logs" in cluster_line(table.name, done)
    assert logged in live(table)["group"].to_pylist()
    assert len(log_files(live(table))) == 1
    assert rows(spark, "select * from z.mor_clustered") == before


@pytest.mark.slow
def test_small_upserts_at_default_settings_write_little_but_their_logs(spark):
    columns = "k, k % 7 a, rand(1) b, md5(cast(k as string)) || md5(cast(k + 1 as string)) v"
    query = f"select {columns} from (select id k from range(1000000))"
    given = {"table_type": "merge_on_read", "unique_key": ["k"], "zorder": ["k"]}
    table = ZTable.write(spark, "z.mor_bytes", spark.sql(query), **given)
    root = Path(table.location.removeprefix("file:"))

    def written():
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}

    before, every_byte, log_bytes = written(), 0, 0
    for number in range(20):
        keys = f"select distinct pmod(xxhash64(id, {number}), 1000000) k from range(100)"
        log_bytes += upsert(spark, table, f"select {columns} from ({keys})").log_bytes
        after = written()
        every_byte += sum(size for path, (size, at) in after.items() if before.get(path) != (size, at))
        before = after
    assert every_byte <= 4 * log_bytes, (every_byte, log_bytes)
    assert {path.name for path in root.glob("*.log.parquet")} == {
        Path(path).name for path in log_files(live(table))["path"].to_pylist()
    }


@pytest.mark.slow
@pytest.mark.newest_spark
def test_inline_compaction_comes_after_so_many_commits(spark):
    table = made(spark, "inline", ROWS.format(0, 10), compaction="inline", compact_every=2)
    upsert(spark, table, "select 1L k, 1L a, 'one' v")
    assert len(log_files(live(table))) == 1
    done = upsert(spark, table, "select 2L k, 1L a, 'two' v")
    assert (done.compacted["groups"], done.compacted["version"]) == (1, done.version + 1)
    assert len(log_files(live(table))) == 0
    assert table.history(1).column("operation").to_pylist() == ["compaction"]
    assert rows(spark, "select k from z.mor_inline__ro where v in ('one', 'two')") == [(1,), (2,)]
    later = made(spark, "later", ROWS.format(0, 10), compaction="deferred", compact_every=1)
    upsert(spark, later, "select 1L k, 1L a, 'one' v")
    assert len(waiting(later)) == 1


@pytest.mark.newest_spark
@pytest.mark.slow
def test_a_plan_that_an_inline_compaction_left_is_executed_by_the_next_run(spark, monkeypatch):
    settings = {"compaction": "inline", "compact_every": 1, "compaction_min_log_ratio": 0}
    table, told = made(spark, "left", ROWS.format(0, 10), **settings), []

    def full(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(SliceWriter, "write", full)
        done = upsert(spark, table, "select 1L k, 1L a, 'one' v", progress=told.append)
    assert done.unfinished == ("compaction failed: disk full",)
    assert f"version {done.version} is committed; compaction failed: disk full; the next writer tries again" in told
    assert len(waiting(table)) == 1
    # A plan that another job is executing at this moment is left to it.
    with Transaction.begin(table._opened.timeline, Action.COMPACTION, Operation.COMPACTION):
        upsert(spark, table, "select 2L k, 1L a, 'two' v")
    assert len(waiting(table)) == 1
    upsert(spark, table, "select 3L k, 1L a, 'three' v")
    assert waiting(table) == []
    base_rows = "select k from z.mor_left__ro where v in ('one', 'two', 'three', 'four')"
    assert rows(spark, base_rows) == [(1,)]
    # The plan had the first log only. Later ones are in the next plan, as if nothing had happened.
    upsert(spark, table, "select 4L k, 1L a, 'four' v")
    assert rows(spark, base_rows) == [(1,), (2,), (3,), (4,)]


@pytest.mark.slow
@pytest.mark.newest_spark
def test_inline_compaction_rewrites_a_base_only_where_it_pays(spark):
    query = "select id k, sha2(cast(id as string), 256) v from range({}, {})"
    settings = {"compaction": "inline", "compact_every": 1, "compaction_max_logs": 2}
    table = made(spark, "pays", query.format(0, 5000), **settings)
    (base,) = live(table)["path"].to_pylist()
    for number in range(2):
        assert upsert(spark, table, query.format(number, number + 1)).compacted == {}
    done = upsert(spark, table, query.format(2, 3))
    # Three logs are more than two: they become one, and the base stays.
    assert done.compacted["groups"] == 1
    assert done.compacted["bytes_written"] < 2 * done.log_bytes
    assert (base in live(table)["path"].to_pylist(), len(log_files(live(table)))) == (True, 1)
    done = upsert(spark, table, query.format(0, 1000))
    # Logs of a fifth of the base are worth a new one.
    assert (done.compacted["files_removed"], done.compacted["files_added"]) == (3, 1)
    assert len(log_files(live(table))) == 0
    assert same_rows(spark.table("z.mor_pays"), spark.sql(query.format(0, 5000)))


@pytest.mark.slow
@pytest.mark.newest_spark
def test_a_base_is_rewritten_once_deletes_have_taken_a_share_of_its_rows(spark):
    query = "select id k, sha2(cast(id as string), 256) v from range({}, {})"
    table = made(spark, "deletes", query.format(0, 5000), compaction="inline", compact_every=1)
    assert table.delete("k < 1000").compacted == {}
    done = table.delete("k < 1501")
    assert (done.compacted["groups"], done.rows_deleted) == (1, 501)
    assert (len(log_files(live(table))), live(table).total_rows) == (0, 3499)
    # Deletes count in logs that also hold upserts, and after such logs were merged: 800 of 3499, then 1100.
    feed = "select id k, 'x' v, 'D' op from range({}, {}) union all select 4999L, 'x', 'U'"
    assert table.upsert(spark.sql(feed.format(3000, 3400)), deleted_when="op = 'D'").compacted == {}
    assert table.upsert(spark.sql(feed.format(3400, 3800)), deleted_when="op = 'D'").compacted == {}
    assert table.compact(logs_only=True).groups == 1
    done = table.upsert(spark.sql(feed.format(3800, 4100)), deleted_when="op = 'D'")
    assert (done.compacted["groups"], live(table).total_rows) == (1, 2399)
    expected = spark.sql(f"{query.format(1501, 3000)} union all {query.format(4100, 4999)} union all select 4999L, 'x'")
    assert same_rows(spark.table("z.mor_deletes"), expected)


@pytest.mark.slow
@pytest.mark.newest_spark
def test_old_logs_are_merged_however_small_they_are(spark):
    settings = {"compaction": "inline", "compact_every": 100, "compaction_min_log_ratio": 1000}
    table = made(spark, "old", ROWS.format(0, 1000), **settings, compact_after_hours=0.5 / 3600)
    assert upsert(spark, table, "select 1L k, 1L a, 'one' v").compacted == {}
    time.sleep(0.6)
    assert upsert(spark, table, "select 2L k, 1L a, 'two' v").compacted["groups"] == 1
    assert len(log_files(live(table))) == 0
    assert rows(spark, "select k from z.mor_old__ro where v in ('one', 'two')") == [(1,), (2,)]
    by_commits = made(spark, "young", ROWS.format(0, 1000), **settings, compact_after_hours=24)
    for _ in range(2):
        assert upsert(spark, by_commits, "select 1L k, 1L a, 'one' v").compacted == {}


@pytest.mark.slow
@pytest.mark.newest_spark
def test_a_log_merged_from_others_is_as_old_as_its_oldest_record(spark, monkeypatch):
    hours, clock = [0], time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + hours[0] * 3_600_000_000_000)
    settings = {"compaction": "inline", "compact_every": 100, "compaction_min_log_ratio": 1000, "stats_columns": ["a"]}
    table = made(spark, "aged", ROWS.format(0, 1000), **settings, compact_after_hours=5)
    oldest = upsert(spark, table, "select 1L k, 1L a, 'one' v").instant
    upsert(spark, table, "select 2L k, 1L a, 'two' v")
    hours[0] = 4
    assert table.compact(logs_only=True).groups == 1
    assert table.information()["oldest_log"] == oldest
    assert upsert(spark, table, "select 3L k, 1L a, 'three' v").compacted == {}
    hours[0] = 8
    assert upsert(spark, table, "select 4L k, 1L a, 'four' v").compacted["groups"] == 1
    assert table.information()["oldest_log"] is None
    assert rows(spark, "select k from z.mor_aged__ro where a = 1 and k < 5") == [(1,), (2,), (3,), (4,)]


@pytest.mark.slow
def test_a_compaction_by_hand_merges_logs_that_pay_nothing(spark):
    settings = {"compaction": "inline", "compact_every": 1, "compaction_min_log_ratio": 1000, "compaction_max_logs": 50}
    table = made(spark, "by_hand", ROWS.format(0, 100), **settings)
    # Too few bytes of logs for the table to merge them by itself.
    assert upsert(spark, table, "select 1L k, 1L a, 'one' v").compacted == {}
    assert upsert(spark, table, "select 2L k, 1L a, 'two' v").compacted == {}
    planned = table.compact(schedule=True)
    assert (planned.groups, planned.files_removed) == (1, 3)
    assert table.compact(execute=True).groups == 1
    assert rows(spark, "select k from z.mor_by_hand__ro where v in ('one', 'two')") == [(1,), (2,)]
    assert upsert(spark, table, "select 3L k, 1L a, 'three' v").compacted == {}
    assert table.compact().groups == 1
    assert len(log_files(live(table))) == 0


@pytest.mark.slow
def test_the_type_of_a_table_changes_both_ways_in_one_commit(spark):
    table = ZTable.write(spark, "z.mor_converted", spark.sql(ROWS.format(0, 50)), zorder=["k"], comment="of records")
    version = table.version
    settings = made(spark, "pattern", ROWS.format(0, 1))._opened
    table.merge(spark.sql("select 1L k, 1L a, 'log' v"), "k", settings=config_of(settings.snapshot))
    assert table.history(2).column("operation").to_pylist() == ["merge", "conversion"]
    assert table.version == version + 2
    assert spark.catalog.tableExists("z.mor_converted__files")
    assert rows(spark, "select v from z.mor_converted where k = 1") == [("log",)]
    assert rows(spark, "select v from z.mor_converted__ro where k = 1") == [("v1",)]
    assert table.index_status().num_rows == 0
    assert table.verify().num_rows == 0
    plain = ZTable.write(spark, "z.mor_pattern_plain", spark.sql(ROWS.format(0, 1)), zorder=["k"])
    table.append(spark.sql("select 60L k, 1L a, 'x' v"), settings=config_of(plain._opened.snapshot))
    assert spark.table("z.mor_converted").count() == 51
    assert rows(spark, "select v from z.mor_converted where k = 1") == [("log",)]
    assert not spark.catalog.tableExists("z.mor_converted__files")
    assert not spark.catalog.tableExists("z.mor_converted__ro")


@pytest.mark.slow
def test_the_past_and_its_changes_are_rows_and_not_records(spark):
    table = made(spark, "past", ROWS.format(0, 10))
    first = table.version
    upsert(spark, table, "select 1L k, -1L a, 'new' v union all select 20L, 1L, 'in'")
    table.delete("k = 2")
    table.compact()
    assert sorted(map(tuple, table.read(version=first).collect())) == rows(spark, ROWS.format(0, 10))
    changes = sorted((row._change_type, row.k, row.v) for row in table.changes(first).collect())
    assert changes == [("delete", 1, "v1"), ("delete", 2, "v2"), ("insert", 1, "new"), ("insert", 20, "in")]
    assert table.rollback(first + 1).rows == 11
    assert rows(spark, "select v from z.mor_past where k in (1, 2)") == [("new",), ("v2",)]
    assert table.count("k < 3") == 3


@pytest.mark.slow
def test_columns_that_come_later_are_null_in_older_rows(spark):
    table = made(spark, "wider", ROWS.format(0, 4))
    upsert(spark, table, "select 1L k, 1L a, 'log' v")
    upsert(spark, table, "select 2L k, 1L a, 'x' v, 'e' extra", on_schema_change="append_new_columns")
    assert rows(spark, "select k, extra from z.mor_wider") == [(0, None), (1, None), (2, "e"), (3, None)]
    upsert(spark, table, "select 3L k, 'e' extra, cast(7 as decimal(30, 1)) a", on_schema_change="sync_all_columns")
    assert spark.table("z.mor_wider").columns == ["k", "a", "extra"]
    assert rows(spark, "select extra, cast(a as int) from z.mor_wider where k in (1, 3)") == [("e", 7), (None, 1)]
    table.compact()
    assert spark.table("z.mor_wider__ro").count() == 4


EVERY_TYPE = """
    select cast(id as int) k, cast(id % 100 as byte) b, cast(id as float) / 3 f,
      case id % 5 when 0 then double('NaN') when 1 then -0.0D when 2 then null else id / 7 end d,
      cast(id as decimal(38, 10)) / 7 dec, date_add(date'1500-01-01', cast(id * 300 as int)) day,
      timestamp_micros(id * 86400000123) ts, cast(timestamp_micros(id * 3600000001) as timestamp_ntz) ntz,
      case when id % 4 = 0 then null else concat('ü✓', id) end t, cast(concat('x', id) as binary) bin,
      id % 2 = 0 flag, named_struct('a', id, 'b', array(id, null)) st, map('m', id) mp, array(named_struct('q', id)) arr,
      cast(null as int) nothing, id `dotted.name`, id `a {{brace}}`
    from range({}, {})
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "key",
    [
        ["k"],
        pytest.param(["day", "b"], marks=pytest.mark.newest_spark),
        *(
            pytest.param(each, marks=(pytest.mark.exhaustive, pytest.mark.newest_spark))
            for each in (["ts"], ["dec"], ["t2"], ["bin"], ["dotted.name"])
        ),
    ],
)
def test_rows_of_every_type_and_keys_of_many_survive_logs_and_compaction(spark, key):
    wide = "select *, concat('ü✓', k) t2 from ({})"
    quoted = list(map(backquoted, key))
    table = made(spark, "every", wide.format(EVERY_TYPE.format(0, 300)), unique_key=quoted, zorder=["k", "d"])
    new = spark.sql(wide.format(EVERY_TYPE.format(250, 350)))
    table.upsert(new.withColumn("nothing", new["k"]))
    old = spark.sql(wide.format(EVERY_TYPE.format(0, 250)))
    expected = old.unionByName(new.withColumn("nothing", new["k"]))
    assert same_rows(spark.table("z.mor_every"), expected)
    table.compact()
    assert same_rows(spark.table("z.mor_every"), expected)
    assert same_rows(spark.table("z.mor_every__ro"), expected)
    assert table.verify(data=True).num_rows == 0


@pytest.mark.slow
@pytest.mark.newest_spark
def test_logs_and_bases_are_skipped_by_what_the_index_says_of_them(spark):
    table = made(spark, "skipping", ROWS.format(0, 20_000), target_file_size="8kb", small_file_limit="1kb")
    upsert(spark, table, "select id k, 1L a, 'log' v from range(0, 20000, 1000)")
    scans = explain_query(spark, "select * from z.mor_skipping where k = 5000")
    assert len(scans) >= 2
    assert all(each.kept_files <= 2 for each in scans), [(each.kept_files, each.predicate) for each in scans]
    assert ZTable.for_name(spark, "z.mor_skipping").explain("k = 5000").kept_files <= 2
    upsert(spark, table, "select 5000L k, -5L a, 'newer' v")
    seen = table.explain("a = -5")
    logs = set(log_files(live(table))["path"].to_pylist())
    # No base file has such a row; the logs are read whatever the rows are.
    assert {row["path"] for row in seen.files.to_pylist() if row["verdict"] != "SKIP"} == logs
    assert table.clustering_information(predicate="a = -5").predicate.kept_files == len(logs)


@pytest.mark.slow
@pytest.mark.newest_spark
def test_of_two_writers_of_one_key_the_second_runs_again_and_others_land(spark, monkeypatch):
    table = made(spark, "rivals", ROWS.format(0, 100))

    def interrupted(query, other):
        """An upsert beside which another lands between its tagging and its commit."""
        written = DeltaCommit._written

        def write(self, *args):
            monkeypatch.setattr(DeltaCommit, "_written", written)
            other()
            return written(self, *args)

        monkeypatch.setattr(DeltaCommit, "_written", write)
        return upsert(spark, table, query)

    rival = ZTable.for_name(spark, "z.mor_rivals")
    with pytest.raises(ConflictError, match="some of the same keys"):
        interrupted("select 1L k, 1L a, 'mine' v", lambda: upsert(spark, rival, "select 1L k, 1L a, 'theirs' v"))
    assert rows(spark, "select v from z.mor_rivals where k = 1") == [("theirs",)]
    interrupted("select 2L k, 1L a, 'mine' v", lambda: upsert(spark, rival, "select 3L k, 1L a, 'theirs' v"))
    assert rows(spark, "select k, v from z.mor_rivals where k in (2, 3)") == [(2, "mine"), (3, "theirs")]
    interrupted("select 4L k, 1L a, 'mine' v", rival.compact)
    assert rows(spark, "select v from z.mor_rivals where k = 4") == [("mine",)]
    # So many new rows become base files, and their keys count as those of logs do.
    monkeypatch.setattr("dbt.adapters.zlayout.spark.merge_on_read.tagging._SHARE_OF_A_FILE", 1e-9)
    with pytest.raises(ConflictError, match="some of the same keys"):
        interrupted(ROWS.format(200, 210), lambda: upsert(spark, rival, ROWS.format(209, 220)))
    assert log_files(live(table)).total_rows == 1
    table.delete("k >= 200")
    table.compact()
    # A clustering gives way to writers that it sees; one that it does not see must not lose its rows either.
    monkeypatch.setattr("dbt.adapters.zlayout.timeline.transactions.transaction.yield_to_writers", lambda *_: None)
    with pytest.raises(ConflictError):
        interrupted("select 5L k, 1L a, 'mine' v", lambda: rival.cluster(rewrite_all=True))
    assert rows(spark, "select count(*), count(distinct k) from z.mor_rivals") == [(100, 100)]


@pytest.mark.exhaustive
@pytest.mark.newest_spark
def test_a_clustering_under_way_leaves_groups_that_get_a_log(spark, monkeypatch):
    table = made(spark, "overtaken", ROWS.format(0, 3000), target_file_size="4kb", small_file_limit="1kb")
    write_group = GroupWriter.write

    def write(self, *args):
        monkeypatch.setattr(GroupWriter, "write", write_group)
        upsert(spark, ZTable.for_name(spark, "z.mor_overtaken"), "select 5L k, 1L a, 'log' v")
        return write_group(self, *args)

    monkeypatch.setattr(GroupWriter, "write", write)
    done = table.cluster(rewrite_all=True, max_group_size="20kb", max_concurrent_groups=1)
    assert len(done.groups_dropped) == 1
    assert rows(spark, "select count(*), count(distinct k) from z.mor_overtaken") == [(3000, 3000)]
    assert rows(spark, "select v from z.mor_overtaken where k = 5") == [("log",)]
    table.compact()
    assert rows(spark, "select count(*), count(distinct k) from z.mor_overtaken") == [(3000, 3000)]


@pytest.mark.slow
def test_a_stream_comes_in_exactly_once(spark, tmp_path):
    table = made(spark, "streamed", ROWS.format(0, 10), ordering="a")
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    schema = "k bigint, a bigint, v string"

    def run(batch):
        stream = spark.readStream.schema(schema).parquet(str(source))
        query = stream.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query.foreachBatch(batch).start().awaitTermination()

    spark.sql("select id k, 100L a, 'stream' v from range(5, 15)").write.parquet(str(source))
    run(table.upsert_batch)
    assert rows(spark, "select count(*), count_if(v = 'stream') from z.mor_streamed") == [(15, 10)]
    version = ZTable.for_name(spark, "z.mor_streamed").version
    # Killed between commit and checkpoint: the batch comes again.
    for commit in (checkpoint / "commits").glob("*0"):
        commit.unlink()
    for crc in (checkpoint / "commits").glob(".*crc"):
        crc.unlink()
    upsert(spark, table, "select 5L k, 200L a, 'since' v")
    run(table.upsert_batch)
    assert ZTable.for_name(spark, "z.mor_streamed").version == version + 1
    assert rows(spark, "select v from z.mor_streamed where k = 5") == [("since",)]
    spark.sql("select 30L k, 100L a, 'stream' v").write.mode("append").parquet(str(source))
    run(table.upsert_batch)
    assert spark.table("z.mor_streamed").count() == 16


@pytest.mark.exhaustive
@pytest.mark.newest_spark
def test_two_writers_at_once_and_a_compactor_lose_nothing(spark):
    made(spark, "busy", ROWS.format(0, 50))
    failed = []

    def writing(number):
        for step in range(3):
            low = 100 * number + 10 * step
            for _ in range(10):
                try:
                    mine = ZTable.for_name(spark, "z.mor_busy")
                    mine.upsert(spark.sql(f"select id k, {step}L a, 'w{number}' v from range({low}, {low + 10})"))
                    break
                except ConflictError:
                    continue
            else:
                failed.append((number, step))

    def compacting():
        for _ in range(3):
            with contextlib.suppress(ConflictError):
                ZTable.for_name(spark, "z.mor_busy").compact()

    threads = [threading.Thread(target=writing, args=(1,)), threading.Thread(target=writing, args=(2,))]
    threads.append(threading.Thread(target=compacting))
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failed == []
    table = ZTable.for_name(spark, "z.mor_busy")
    assert rows(spark, "select v, count(*) from z.mor_busy where k >= 100 group by v") == [("w1", 30), ("w2", 30)]
    assert rows(spark, "select count(*), count(distinct k) from z.mor_busy") == [(110, 110)]
    table.compact()
    assert rows(spark, "select count(*), count(distinct k) from z.mor_busy__ro") == [(110, 110)]


@pytest.mark.newest_spark
def test_information_tells_of_logs_and_plans(spark):
    table = made(spark, "told", ROWS.format(0, 10))
    upsert(spark, table, "select 1L k, 1L a, 'log' v")
    planned = table.compact(schedule=True)
    told = ZTable.for_name(spark, "z.mor_told").information()
    assert told["table_type"] == "merge_on_read"
    assert (told["slices_with_logs"], told["log_files"]) == (1, 1)
    assert told["pending_compactions"] == list(planned.plans)


@pytest.mark.slow
@pytest.mark.newest_spark
@pytest.mark.parametrize(
    "nothing",
    [
        lambda table: table.delete("k = -1"),
        *(pytest.param(each, marks=pytest.mark.exhaustive) for each in (ZTable.compact, ZTable.cluster)),
    ],
)
def test_what_finds_nothing_to_do_shows_readers_what_a_dead_writer_left(spark, nothing):
    table = made(spark, "unpublished", ROWS.format(0, 10))
    table.delete("k = 1")
    table.compact()
    manifest = Path(table.location.removeprefix("file://")) / "_spark_metadata" / f"{table.version}.compact"
    manifest.unlink()
    nothing(ZTable.for_name(spark, "z.mor_unpublished"))
    assert manifest.exists()
    assert spark.newSession().table("z.mor_unpublished__ro").count() == 9


MANY = "select cast(id % 997 as decimal(20, 2)) k, date_add(date'2024-01-01', cast(id div 997 as int)) d, {} a, {} v, array(id) l"


@pytest.mark.slow
@pytest.mark.parametrize("key", ["k", "f", "t"])
def test_a_compaction_merges_each_slice_in_its_task_where_arrow_knows_equal_keys(spark, key):
    if key == "t" and spark.version.startswith("3."):
        pytest.skip("Spark 3.5 has no collations")
    alike = "collate(concat({}, k), 'UTF8_LCASE')" if key == "t" else "concat({}, k)"
    of_base, of_change = (f"{alike.format(repr(text))} t" for text in ("K", "k"))
    double = "cast(k as double)"
    table = made(
        spark,
        f"in_tasks_{key}",
        f"select if(k = 0, -0.0D, {double}) f, {of_base}, * from ({MANY.format('id', 'concat(id % 31)')} from range(20000))",
        unique_key=[key, "d"],
        zorder=["a", "d"],
        row_group_rows=1_000,
        target_file_size="60kb",
    )
    assert len(table.snapshot().files) > 2
    for turn in (1, 2):
        changes = MANY.format(f"-{turn} * id", f"'turn {turn}'")
        come = f"{changes} from range(0, 25000, {turn + 6})"
        upsert(spark, table, f"select {double} f, {of_change}, * from ({come})")
    table.delete("a < 0 and a > -500")
    expected = spark.table(f"z.mor_in_tasks_{key}").localCheckpoint()
    with Scans(spark) as scans:
        done = table.compact()
    assert done.groups > 2
    assert (scans.files == []) is (key == "k")
    assert same_rows(spark.table(f"z.mor_in_tasks_{key}__ro"), expected)
    assert table.verify(data=True).num_rows == 0
    if key == "k":
        opened = ZTable.for_name(spark, table.name)._opened
        layout = TableLayout.of(config_of(opened.snapshot), opened.row_schema_json, table.name)
        model = layout.stored_model(opened.store, opened.snapshot)
        for path in opened.files["path"].to_pylist():
            keys = key_table(pq.read_table(opened.store.local_path(path)), layout.keys)
            places = model.curve_values(keys.columns)
            assert (places[1:] >= places[:-1]).all(), path


@pytest.mark.slow
def test_a_compaction_in_tasks_leaves_the_slices_that_it_cannot_read_to_spark(spark):
    table = made(spark, "by_both", "select id k, cast(id % 2 as string) p, 'v' v from range(100)", partition_by="p")
    upsert(spark, table, "select 1L k, '1' p, 'old' v")
    # Logs of one partition lack the column.
    more = spark.sql("select 2L k, '0' p, 'new' v, 'more' w")
    table.upsert(more, on_schema_change="append_new_columns")
    expected = spark.table("z.mor_by_both").localCheckpoint()
    with Scans(spark) as scans:
        assert table.compact().groups == 2
    assert scans.files
    assert expected.count() == 100
    assert same_rows(spark.table("z.mor_by_both__ro"), expected)


def test_a_late_row_changes_nothing_where_the_ordering_column_is_not_updated(spark):
    rows = spark.sql("select 1 k, 5 ts, 'new' v union all select 2, null, 'none'")
    table = ZTable.write(spark, "z.late", rows, table_type="merge_on_read", unique_key=["k"], ordering="ts")
    for ts in (1, 6):
        incoming = spark.sql(f"select k, {ts} ts, 'from {ts}' v from values (1), (2), ({ts + 10}) as t(k)")
        table.merge(incoming, "k", update_columns=["v"])
        found = dict(spark.sql("select k, v from z.late").collect())
        assert found == {1: "new" if ts == 1 else "from 6", 2: f"from {ts}", 11: "from 1"} | (
            {16: "from 6"} if ts == 6 else {}
        )
    assert spark.sql("select ts from z.late where k = 1").first().ts == 5


@pytest.mark.slow
def test_a_partition_in_two_spellings_is_one_when_it_is_compacted(spark, monkeypatch):
    settings = {"table_type": "merge_on_read", "unique_key": "k", "partition_by": ["p"], "compaction": "off"}
    rows = "select 1 k, double('-0.0') p, 'old' v union all select 2, 1D, 'other'"
    table = ZTable.write(spark, "z.zero_parts", spark.sql(rows), **settings)
    assert {each.split("/")[0] for each in table.snapshot().files["path"].to_pylist()} == {"p=0.0", "p=1.0"}
    # As an earlier release wrote it.
    monkeypatch.setattr(file_writer, "_folder_text", lambda field, one_zero: functions.col(field.name).cast("string"))
    table = ZTable.write(spark, "z.zero_parts", spark.sql(rows), **settings)
    monkeypatch.undo()
    assert "p=-0.0" in {each.split("/")[0] for each in table.snapshot().files["path"].to_pylist()}
    for value in ("new", "newer"):
        table.upsert(spark.sql(f"select 1 k, 0D p, '{value}' v"))
        table.compact()
        found = spark.table("z.zero_parts").where("p = 0").select("k", "v").collect()
        assert found == [(1, value)]
    done = table.cluster(rewrite_all=True, verify=True)
    assert done.groups_done == 2
    assert spark.table("z.zero_parts").count() == 2


def test_the_ordering_column_stays_in_the_files(spark):
    settings = {"table_type": "merge_on_read", "unique_key": "k", "partition_by": ["Day"], "ordering": "day"}
    with pytest.raises(ConfigError, match="ordering: 'day' is a partition column too"):
        ZTable.write(spark, "z.ordered_by_folder", spark.sql("select 1 k, 2 day, 3 v"), **settings)
