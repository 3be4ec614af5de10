"""Clustering: which files are rewritten, that rows stay the same, and that other writers win."""

import itertools
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from comparing import same_checksum, same_rows
from test_modify import EVERY_TYPE, files_of

from dbt.adapters.zlayout.config.table_config import parse_table_config
from dbt.adapters.zlayout.errors import CancelledError, ConfigError, UnsupportedError, WriteError
from dbt.adapters.zlayout.spark.cluster import group_writer as cluster_write
from dbt.adapters.zlayout.spark.cluster.group_writer import GroupWriter, check_same_rows
from dbt.adapters.zlayout.spark.jobs.jobs import cancel_this_thread_by
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.action import Action
from dbt.adapters.zlayout.timeline.retention.orphans import orphans
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.pending import list_scheduled

pytestmark = pytest.mark.newest_spark

ROWS = (
    "select id, cast(hash(id) % 1000 as int) a, cast(hash(id, 1) % 1000 as int) b, cast(id as string) t from range({})"
)
IN_PARTS = "select id, cast(id % 3 as int) part from range({}, {})"
SHIFTED = ROWS.replace("range({})", "range({}, {})")


def table_of(spark, name, query, **settings):
    settings.setdefault("target_file_size", "64kb")
    settings.setdefault("zorder", ["a", "b"])
    return ZTable.write(spark, name, spark.sql(query), **settings)


def appended(spark, table, count, rows=4_000, first=100_000):
    for number in range(count):
        table.append(spark.sql(SHIFTED.format(first + number * rows, first + (number + 1) * rows)))
    return table


def in_small_files(spark, name, query=IN_PARTS, **settings):
    """Eight writes of ten rows each, spread over three partitions."""
    table = table_of(spark, name, query.format(0, 10), partition_by=["part"], **{"zorder": ["id"], **settings})
    for number in range(1, 8):
        table.append(spark.sql(query.format(10 * number, 10 * number + 10)))
    return table


def test_a_table_that_was_just_written_is_not_rewritten(spark):
    table = table_of(spark, "z.cl_fresh", ROWS.format(60_000))
    version, files = table.version, files_of(table)
    done = table.cluster()
    assert (done.version, done.bytes_rewritten, done.files_removed, done.groups_done) == (version, 0, 0, 0)
    assert files_of(ZTable.for_name(spark, "z.cl_fresh")) == files


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"target_file_size": "8kb"},
        pytest.param({}, marks=pytest.mark.exhaustive),
        pytest.param({"zorder": []}, marks=pytest.mark.exhaustive),
        pytest.param({"target_file_size": "128mb"}, marks=pytest.mark.exhaustive),
    ],
)
def test_later_builds_along_the_same_cuts_are_not_rewritten(spark, settings):
    name = f"z.cl_fresh_{'_'.join(map(str, settings.values())).replace('[]', 'none')}"
    for rows in (60_000, 25_000, 150_000):
        table = table_of(spark, name, ROWS.format(rows), **settings)
        done = table.cluster()
        assert (done.groups, done.version, done.depth_after) == ((), table.version, done.depth_before), rows


@pytest.mark.slow
def test_appended_rows_are_clustered_and_a_second_run_does_nothing(spark):
    table = appended(spark, table_of(spark, "z.cl_appends", ROWS.format(60_000)), 8)
    before, files = spark.table("z.cl_appends").localCheckpoint(), len(table.snapshot().files)
    planned = table.cluster(dry_run=True)
    assert (planned.dry_run, planned.version) == (True, table.version)
    done = table.cluster(verify=True)
    assert same_checksum(spark.table("z.cl_appends"), before)
    assert done.version == table.version == planned.version + 1
    assert done.depth_after < done.depth_before
    assert done.files_read_after < 0.8 * done.files_read_before
    assert len(table.snapshot().files) == files + done.files_added - done.files_removed
    assert done["bytes_rewritten"] == done.bytes_rewritten > 0
    for word in ("depth_after", "files_read_after"):
        assert planned[word] == pytest.approx(done[word], rel=0.1)
    again = table.cluster()
    assert (again.bytes_rewritten, again.version) == (0, done.version)
    assert table.history().to_pylist()[0]["operation"] == "clustering"
    assert table.index_status().num_rows == 0
    assert table.verify(data=True).num_rows == 0


@pytest.mark.exhaustive
def test_max_bytes_limits_a_clustering(spark):
    table = appended(spark, table_of(spark, "z.cl_budget", ROWS.format(60_000)), 8)
    everything = table.cluster(dry_run=True).bytes_rewritten
    budget = everything // 3
    done = table.cluster(max_bytes=budget)
    assert 0 < done.bytes_rewritten <= budget
    assert done.files_read_after < done.files_read_before


@pytest.mark.slow
def test_clustering_preserves_values_of_every_type_comments_and_columns(spark):
    name = "z.cl_types"
    settings = {"comment": "all kinds", "column_comments": {"k": "the key"}}
    table = table_of(spark, name, EVERY_TYPE.format(rows=700), zorder=["k", "day"], target_file_size="16kb", **settings)
    for number in range(4):
        spark.sql(EVERY_TYPE.format(rows=700)).createOrReplaceTempView("more")
        table.append(spark.sql(f"select * from more where k % 4 = {number}"))
    before, columns = spark.table(name).localCheckpoint(), spark.sql(f"describe extended {name}").collect()
    done = table.cluster(rewrite_all=True, verify=True)
    assert done.files_removed >= 5
    assert same_rows(spark.table(name), before)
    kept = {row.col_name: (row.data_type, row.comment) for row in columns}
    now = {row.col_name: (row.data_type, row.comment) for row in spark.sql(f"describe extended {name}").collect()}
    assert {key: now[key] for key in before.columns} == {key: kept[key] for key in before.columns}
    assert now["Comment"] == kept["Comment"]


@pytest.mark.slow
@pytest.mark.parametrize("writer", [pytest.param("arrow", marks=pytest.mark.exhaustive), "spark"])
def test_small_files_are_combined_within_their_partition(spark, writer):
    name = f"z.cl_small_{writer}"
    query = "select id, cast(id % 3 as string) part, concat('x', id) t from range({}, {})"
    table = in_small_files(spark, name, query, zorder=[], writer=writer)
    before = spark.table(name).localCheckpoint()
    done = table.cluster()
    assert (done.files_removed, done.files_added) == (24, 3)
    assert {group.reason for group in done.groups} == {"small"}
    assert sorted(group.partition for group in done.groups) == ["part=0", "part=1", "part=2"]
    assert same_rows(spark.table(name), before)
    assert table.cluster().bytes_rewritten == 0


@pytest.mark.slow
@pytest.mark.parametrize("partition_by", [pytest.param([], marks=pytest.mark.exhaustive), ["part"]])
def test_files_of_a_table_without_keys_get_the_target_size(spark, partition_by):
    name = f"z.cl_without_keys_{len(partition_by)}"
    query = (
        "select id, cast(id * 3 div 100000 as string) part, sha2(cast(id as string), 256) t from range(0, 100000, 1, 9)"
    )
    table = ZTable.write(spark, name, spark.sql(query), zorder=[], partition_by=partition_by, target_file_size="1mb")
    sizes = table.snapshot().files["size_bytes"].to_numpy()
    assert sizes.max() < 1.5 * 2**20
    assert sizes.min() > 0.6 * 2**20
    # In the order of the query: no two files share a range of it.
    ends = sorted(
        (row.first, row.last)
        for row in spark.sql(f"select min(id) first, max(id) last from {name} group by input_file_name()").collect()
    )
    assert all(last < first for (_, last), (first, _) in itertools.pairwise(ends))
    assert same_rows(spark.table(name), spark.sql(query))


@pytest.mark.slow
def test_where_chooses_the_partitions(spark):
    name = "z.cl_where"
    table = in_small_files(spark, name)
    done = table.cluster(where="part = 1")
    assert [group.partition for group in done.groups] == ["part=1"]
    assert table.cluster(where="part = 99").bytes_rewritten == 0
    assert table.cluster(where="id < 0").bytes_rewritten == 0


@pytest.mark.exhaustive
def test_a_large_file_is_split(spark):
    name = "z.cl_large"
    query = f"select *, id < 0 as old from ({ROWS.format(60_000)})"
    table = table_of(spark, name, query, target_file_size="4mb", partition_by=["old"])
    assert len(table.snapshot().files) == 1
    spark.sql("select -1L id, 1 a, 1 b, 'x' t, true old").createOrReplaceTempView("few")
    config = parse_table_config({"zorder": ["a", "b"], "target_file_size": "64kb", "partition_by": ["old"]})
    table.append(spark.table("few"), settings=config)
    before = spark.table(name).localCheckpoint()
    done = table.cluster()
    assert [group.reason for group in done.groups] == ["large"]
    assert done.files_added >= 5
    assert same_checksum(spark.table(name), before)
    assert table.cluster().bytes_rewritten == 0


def test_a_table_is_clustered_by_its_new_keys(spark):
    name = "z.cl_rekeyed"
    table = table_of(spark, name, ROWS.format(60_000), zorder=["a"])
    spark.sql(ROWS.format(10)).createOrReplaceTempView("few")
    table.append(spark.table("few"), settings=parse_table_config({"zorder": ["b"], "target_file_size": "64kb"}))
    before = spark.table(name).localCheckpoint()
    done = table.cluster()
    assert done.files_read_after < 0.5 * done.files_read_before
    assert same_checksum(spark.table(name), before)
    assert table.explain("b = 7").stages[-1].files_after <= 3
    assert table.cluster().bytes_rewritten == 0


@pytest.mark.exhaustive
def test_rows_beyond_the_stored_boundaries_get_new_boundaries(spark):
    name = "z.cl_drift"
    query = "select id, id * 10 as a, cast(hash(id) % 1000 as int) b from range({}, {})"
    table = table_of(spark, name, query.format(0, 30_000))
    for number in range(3, 9):
        table.append(spark.sql(query.format(number * 10_000, (number + 1) * 10_000)))
    planned = table.cluster(dry_run=True)
    assert "a" in planned.resampled
    before = spark.table(name).localCheckpoint()
    done = table.cluster()
    assert "a" in done.resampled
    assert same_checksum(spark.table(name), before)
    again = table.cluster()
    assert (again.bytes_rewritten, again.resampled) == (0, ())


@pytest.mark.slow
def test_a_concurrent_merge_wins_and_the_other_groups_are_committed(spark, monkeypatch):
    name = "z.cl_race"
    table = in_small_files(spark, name)
    other = ZTable.for_name(spark, name)
    original, first = GroupWriter.write, threading.Lock()

    def written(self, cut, transaction):
        found = original(self, cut, transaction)
        if first.acquire(blocking=False):
            other.delete("id = 1")
            other.append(spark.sql(IN_PARTS.format(1000, 1010)))
        return found

    monkeypatch.setattr(GroupWriter, "write", written)
    done = table.cluster()
    assert (done.groups_done, [each.partition for each in done.groups_dropped]) == (2, ["part=1"])
    expected = spark.sql(
        f"select * from ({IN_PARTS.format(0, 80)}) where id <> 1 union all {IN_PARTS.format(1000, 1010)}"
    )
    assert same_rows(spark.table(name), expected)
    assert table.index_status().num_rows == 0


def in_six_parts(spark, name, **settings):
    """A table of six partitions with two small files each."""
    query = "select id, concat('x', id) t, cast(id % 6 as int) part from range({}, {})"
    table = table_of(spark, name, query.format(0, 60), partition_by=["part"], **{"zorder": ["id"], **settings})
    table.append(spark.sql(query.format(60, 120)))
    return table


def file_of(table, folder):
    root = Path(table.location.removeprefix("file://"))
    return next(root / path for path in table.snapshot().files["path"].to_pylist() if path.startswith(f"{folder}/"))


def damaged(file):
    """Overwrites the pages of a file, but not its footer."""
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)


def orphans_of(table):
    return [file.path for file in orphans(Timeline(table._opened.store))]


def test_partial_progress_runs_groups_at_the_same_time_and_commits_them_as_they_end(spark, monkeypatch):
    table = in_six_parts(spark, "z.cl_partial")
    version, lines, at_work, most, four = table.version, [], [], [], threading.Event()
    original = GroupWriter.write

    def write(self, cut, transaction):
        at_work.append(cut)
        most.append(len(at_work))
        if len(at_work) == 4:
            four.set()
        four.wait(30)
        try:
            return original(self, cut, transaction)
        finally:
            at_work.remove(cut)

    monkeypatch.setattr(GroupWriter, "write", write)
    done = table.cluster(partial_progress=True, max_commits=3, min_input_files=1, progress=lines.append)
    assert max(most) == 4
    assert (done.version, done.groups_done, done.groups_failed) == (version + 3, 6, ())
    assert sorted(line[:12] for line in lines if " → " in line) == [f"group {number} of 6" for number in range(1, 7)]
    assert spark.table("z.cl_partial").count() == 120
    assert orphans_of(table) == []


@pytest.mark.newest_spark
def test_a_cancelled_run_ends_the_groups_of_its_clustering(spark, monkeypatch):
    table = in_six_parts(spark, "z.cl_cancelled")
    cancelled, original, begun, written = threading.Event(), GroupWriter.write, [], []

    def write(self, cut, transaction):
        begun.append(spark.sparkContext.getLocalProperty("spark.job.tags"))
        cancelled.set()
        written.append(original(self, cut, transaction))

    monkeypatch.setattr(GroupWriter, "write", write)
    spark.sparkContext.addJobTag("this-run")
    cancel_this_thread_by(cancelled)
    try:
        with pytest.raises(CancelledError):
            table.cluster(partial_progress=True, max_commits=3, min_input_files=1)
    finally:
        cancel_this_thread_by(None)
        spark.sparkContext.removeJobTag("this-run")
    assert set(begun) == {"this-run"}
    assert not written
    assert ZTable.for_name(spark, "z.cl_cancelled").version == table.version
    assert orphans_of(table) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "settings", "max_commits"),
    [
        (Path.unlink, {}, 2),
        (damaged, {"zorder": [], "writer": "spark"}, 6),
        pytest.param(damaged, {}, 6, marks=pytest.mark.exhaustive),
        pytest.param(Path.unlink, {"zorder": []}, 2, marks=pytest.mark.exhaustive),
    ],
)
def test_a_failing_group_does_not_stop_the_others(spark, harm, settings, max_commits):
    name = f"z.cl_fails_{harm.__name__}_{len(settings)}_{max_commits}"
    table = in_six_parts(spark, name, **settings)
    version = table.version
    harm(file_of(table, "part=3"))
    done = table.cluster(partial_progress=True, max_commits=max_commits, min_input_files=1)
    assert (done.groups_done, [each.partition for each in done.groups_failed]) == (5, ["part=3"])
    assert done.groups_failed[0].reason
    assert done.version <= version + max_commits
    assert [done.to_dict()["groups_failed"][0][word] for word in ("partition", "files")] == ["part=3", 2]
    assert orphans_of(table) == []
    assert spark.table(name).where("part <> 3").count() == 100
    with pytest.raises(WriteError, match="no group could be clustered.*part=3.*the table is unchanged"):
        table.cluster(partial_progress=True, min_input_files=1)
    assert (ZTable.for_name(spark, name).version, orphans_of(table)) == (done.version, [])


@pytest.mark.slow
def test_files_of_a_group_that_fails_late_are_deleted(spark, monkeypatch):
    table = in_six_parts(spark, "z.cl_leftover")

    def check(before, after, subject):
        if before.where("part = 2").head(1):
            raise WriteError(f"{subject}: the rewritten files differ")
        check_same_rows(before, after, subject)

    monkeypatch.setattr(cluster_write, "check_same_rows", check)
    done = table.cluster(min_input_files=1, verify=True)
    assert (done.groups_done, [each.partition for each in done.groups_failed]) == (5, ["part=2"])
    assert orphans_of(table) == []
    assert spark.table("z.cl_leftover").count() == 120


@pytest.mark.slow
def test_a_pending_plan_is_executed_later(spark):
    table = appended(spark, table_of(spark, "z.cl_deferred", ROWS.format(60_000)), 8)
    version = table.version
    planned = table.cluster(schedule=True)
    assert planned.groups
    assert planned.version == version
    assert len(list_scheduled(table._opened.store, Action.REPLACECOMMIT)) == 1
    before = spark.table("z.cl_deferred").localCheckpoint()
    # Writers do not mind it, and neither does a recovery.
    table.append(spark.sql(SHIFTED.format(900_000, 900_010)))
    done = ZTable.for_name(spark, "z.cl_deferred").cluster(execute=True)
    assert done.bytes_rewritten == planned.bytes_rewritten
    assert list_scheduled(table._opened.store, Action.REPLACECOMMIT) == []
    assert spark.table("z.cl_deferred").count() == before.count() + 10
    with pytest.warns(DeprecationWarning, match="pending is now called execute"):
        assert ZTable.for_name(spark, "z.cl_deferred").cluster(pending=True).bytes_rewritten == 0
    with pytest.raises(ConfigError, match="is not the instant of a pending clustering plan; pending plans: none"):
        table.cluster(plan="2")


@pytest.mark.exhaustive
def test_a_plan_whose_files_were_replaced_is_dropped(spark):
    table = appended(spark, table_of(spark, "z.cl_stale", ROWS.format(60_000)), 8)
    assert table.cluster(schedule=True).groups
    table.overwrite(spark.sql(ROWS.format(100)))
    done = table.cluster(execute=True)
    assert done.bytes_rewritten == 0
    assert {each.reason for each in done.groups_dropped} == {"its files have changed since the plan was made"}
    assert list_scheduled(table._opened.store, Action.REPLACECOMMIT) == []


def test_a_plan_that_cannot_be_read_is_deleted_and_named(spark):
    table = table_of(spark, "z.cl_damaged_plan", ROWS.format(10))
    store, made = table._opened.store, ("20240101000000000", "20240101000000001")
    for instant, content in zip(made, (b"{", b'{"format_version":1,"groups":[{"paths":1}]}'), strict=True):
        store.put(f".zlayout/timeline/{instant}.replacecommit.scheduled", content)
    done = table.cluster(execute=True)
    assert (done.version, done.groups_done, done.files_removed) == (table.version, 0, 0)
    assert done.to_dict()["problems"] == [
        f"plan {instant} was deleted without being executed, because its file cannot be read; make a new plan"
        for instant in made
    ]
    assert table.information()["pending"]["clustering"] == []
    assert table.cluster(execute=True).problems == ()


@pytest.mark.parametrize("query", [ROWS.format(0), ROWS.format(1), "select cast(null as int) a, 1 b from range(100)"])
def test_empty_and_tiny_tables_are_not_rewritten(spark, query):
    name = f"z.cl_edge_{abs(hash(query)) % 10**6}"
    table = table_of(spark, name, query)
    before = spark.table(name).localCheckpoint()
    assert table.cluster().files_removed == 0
    table.cluster(rewrite_all=True, verify=True)
    assert same_rows(spark.table(name), before)


def test_an_indexed_table_cannot_be_clustered(spark):
    spark.sql("create table z.cl_indexed using parquet as select id from range(10)")
    table = ZTable.adopt(spark, "z.cl_indexed")
    with pytest.raises(UnsupportedError, match=r"only indexed.*managed=True"):
        table.cluster()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_bytes": "much"}, "max_bytes: 'much' is not a size"),
        ({"cluster_min_gain": 2}, "cluster_min_gain: 2 is not a share"),
        ({"min_gains": 1}, "`min_gains`"),
        ({"pending": True, "dry_run": True}, "pending"),
        ({"min_file_size": "2mb", "max_file_size": "1mb"}, "not below max_file_size"),
        ({"where": "nothing = 1"}, "nothing"),
    ],
)
def test_the_error_names_a_wrong_setting(spark, settings, message):
    table = table_of(spark, "z.cl_settings", ROWS.format(10))
    with pytest.raises(ConfigError, match=message):
        table.cluster(**settings)


LARGE = (
    "select id, cast(pmod(hash(id), 100000) as int) a, cast(pmod(hash(id, 1), 5000) as bigint) b, "
    "cast(pmod(hash(id, 2), 10000000) / 100 as decimal(12, 2)) price, date_add(date'1500-01-01', int(id % 300000)) day, "
    "timestamp_micros(hash(id, 3) * 1000000L) at, if(id % 7 = 0, null, concat('text ', hash(id, 4))) t, "
    "element_at(array('x', 'ä', null), 1 + cast(id % 3 as int)) word, double(hash(id, 5)) / 3 share, "
    "cast(hash(id, 6) % 30000 as smallint) small, cast(concat('b', hash(id, 7)) as binary) bytes, "
    "named_struct('x', hash(id, 8), 'l', array(id)) st, if(id % 11 = 0, float('nan'), float(id)) f from range({}, {})"
)


def encodings_of(table):
    root = Path(table.location.removeprefix("file://"))
    groups = [pq.read_metadata(root / path).row_group(0) for path in table.snapshot().files["path"].to_pylist()]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    return {(each.path_in_schema, encoding) for each in columns for encoding in each.encodings}


@pytest.mark.exhaustive
@pytest.mark.parametrize("partition_by", [[], ["word"]])
def test_large_groups_are_read_by_arrow_and_hold_the_same_rows(spark, partition_by):
    name = f"z.cl_large_{len(partition_by)}"
    table = table_of(
        spark, name, LARGE.format(0, 90_000), zorder=["b", "day"], target_file_size="4mb", partition_by=partition_by
    )
    table.append(spark.sql(LARGE.format(90_000, 150_000)))
    plain = spark.sql(LARGE.format(0, 150_000)).localCheckpoint()
    assert same_checksum(spark.table(name).select(*plain.columns), plain)
    done = table.cluster(rewrite_all=True, verify=True)
    assert done.rows == 150_000
    assert ("id", "DELTA_BINARY_PACKED") in encodings_of(table)
    assert same_checksum(spark.table(name).select(*plain.columns), plain)
    for condition in (
        "b = 77",
        "day < '1500-03-01' and b > 4000",
        "t = 'text 5'",
        "at is null or word = 'ä'",
        "f > 1e9",
    ):
        found = spark.table(name).select(*plain.columns).where(condition)
        assert same_checksum(found, plain.where(condition)), condition
    assert table.cluster().bytes_rewritten == 0
    assert table.verify(data=True).num_rows == 0


@pytest.mark.slow
def test_files_that_lack_a_column_are_rewritten_too(spark):
    table = table_of(spark, "z.cl_lacks", ROWS.format(20_000))
    wider = spark.sql(SHIFTED.format(20_000, 40_000)).selectExpr("*", "id * 2 as twice")
    table.append(wider, on_schema_change="append_new_columns")
    before = spark.table("z.cl_lacks").localCheckpoint()
    done = table.cluster(rewrite_all=True, verify=True)
    assert done.rows == 40_000
    assert same_rows(spark.table("z.cl_lacks"), before)
    assert spark.table("z.cl_lacks").where("twice is null").count() == 20_000


def test_files_without_rows_stay_or_are_rewritten_with_others(spark):
    spark.sql("create table z.cl_empty using parquet as select id, cast(id as string) t from range(0)")
    table = ZTable.adopt(spark, "z.cl_empty", zorder=["id"], managed=True)
    assert (len(table.snapshot().files), table.cluster(rewrite_all=True).bytes_rewritten) == (1, 0)
    spark.sql("create table z.cl_partly using parquet as select id, cast(id as string) t from range(0)")
    spark.range(10).selectExpr("id", "cast(id as string) t").write.insertInto("z.cl_partly")
    table = ZTable.adopt(spark, "z.cl_partly", zorder=["id"], managed=True)
    done = table.cluster(rewrite_all=True, verify=True)
    assert (done.rows, done.files_added) == (10, 1)
    assert spark.table("z.cl_partly").count() == 10
