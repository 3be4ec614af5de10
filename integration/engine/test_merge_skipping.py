"""Merges, upserts and deletes by key read only the files that may hold a key; what they read is what Spark measured."""

from dataclasses import replace

import pytest
from comparing import same_rows
from scanned import Calls, Scans

from dbt.adapters.zlayout.config.table_type import TableTypeConfig
from dbt.adapters.zlayout.spark.read.values_condition import values_predicate
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.table.ztable import ZTable

# A hundred files of a thousand neighbouring keys each.
ROWS = "select id k, id div 1000 p, id % 1000 j, 0 v from range(100000)"


def changed(spark, *stretches):
    """New values for stretches of keys, each given by its first key and its length."""
    parts = [f"select id k, id div 1000 p, id % 1000 j, 1 v from range({low}, {low + rows})" for low, rows in stretches]
    return spark.sql(" union all ".join(parts))


def in_partitions(spark, name, rows):
    """A table of a hundred partitions with a file each, as Spark writes it, taken over."""
    rows.coalesce(1).write.partitionBy("p").saveAsTable(name)
    table = ZTable.adopt(spark, name, managed=True)
    assert len(table.snapshot().files) == 100
    return table


@pytest.fixture(scope="module")
def keyed(spark):
    """Copy-on-write: merged by a key of its own, and by one with the partition column."""
    return in_partitions(spark, "z.keyed", spark.sql(ROWS))


@pytest.fixture(scope="module")
def recorded(spark):
    """Merge-on-read: clustered by its key, without partitions."""
    settings = {"table_type": "merge_on_read", "unique_key": ["k"], "zorder": ["k"], "compaction": "off"}
    table = ZTable.write(spark, "z.recorded", spark.sql(ROWS), target_file_size=3_300, **settings)
    assert len(table.snapshot().files) >= 95
    return table


@pytest.fixture(scope="module")
def recorded_in_partitions(spark):
    """Merge-on-read: the key holds the partition column."""
    table = in_partitions(spark, "z.recorded_in_partitions", spark.sql(ROWS).where("j < 10"))
    records = TableTypeConfig("merge_on_read", ("p", "j"), compaction="off")
    settings = replace(config_of(table._opened.snapshot), table_type=records)
    table.merge(changed(spark, (0, 1)), ["p", "j"], settings=settings)
    return table


def test_a_thousand_neighbouring_keys_read_three_files_at_most(spark, keyed, recorded):
    near = changed(spark, (5_500, 1_000))
    with Scans(spark) as scans:
        assert keyed.merge(near, ["k"]).rows_updated == 1_000
        assert keyed.delete_insert(near, ["k"]).rows_deleted == 1_000
        assert recorded.upsert(near).rows_updated == 1_000
        assert recorded.delete("k between 7500 and 8499").rows_deleted == 1_000
    assert len(scans.files) >= 7
    assert max(scans.files) <= 3


@pytest.mark.slow
def test_ten_thousand_keys_in_two_stretches_read_twenty_files_at_most(spark, keyed, recorded):
    far = changed(spark, (20_000, 5_000), (70_000, 5_000))
    with Scans(spark) as scans:
        assert keyed.merge(far, ["k"]).rows_updated == 10_000
        assert keyed.delete_insert(far, ["k"]).rows_deleted == 10_000
        assert recorded.upsert(far).rows_updated == 10_000
        deleted = recorded.delete("k between 30000 and 34999 or k between 60000 and 64999")
        assert deleted.rows_deleted == 10_000
    for name, rows in (("z.keyed", 100_000), ("z.recorded", 90_000)):
        where = "k between 20000 and 24999 or k between 70000 and 74999"
        assert spark.table(name).where(where).where("v = 1").count() == 10_000
        assert spark.table(name).where("k >= 20000").count() == rows - 20_000
    # Alone, the test finds a merge-on-read table without logs, which takes a scan less.
    assert len(scans.files) >= 7
    assert max(scans.files) <= 20


@pytest.mark.slow
def test_a_key_with_the_partition_column_reads_its_partition(spark, keyed, recorded_in_partitions):
    partition = changed(spark, (42_000, 10))
    with Scans(spark) as scans:
        assert keyed.merge(partition, ["p", "j"]).rows_updated == 10
        assert keyed.delete_insert(partition, ["J", "P"]).rows_deleted == 10
        assert recorded_in_partitions.upsert(partition).rows_updated == 10
        assert recorded_in_partitions.delete("p = 41 and j < 5").rows_deleted == 5
    assert len(scans.partitions) >= 8
    assert max(scans.partitions) == 1


@pytest.mark.slow
@pytest.mark.parametrize("predicate", ["DBT_INTERNAL_DEST.p = 50", "k between 50000 and 50999"])
def test_incremental_predicates_skip_files(spark, keyed, predicate):
    rows = changed(spark, (50_000, 3))
    by_name = predicate if "DBT" in predicate else f"DBT_INTERNAL_DEST.{predicate}"
    with Scans(spark) as scans:
        assert keyed.merge(rows, ["j"], predicates=[by_name]).rows_updated == 3
        assert keyed.delete_insert(rows, ["j"], predicates=[predicate]).rows_deleted == 3
    assert max(scans.files) == 1


PLACES = "array('a%20b', 'x {y}+1', 'ü~ß', 'a/b', 'a\\'\\\"\\\\c[1]', null)[id % 6]"


@pytest.mark.slow
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_files_are_told_apart_whatever_their_folders_and_columns_are_called(spark, tmp_path, table_type):
    rows, key = f"select id k, id _metadata, 0 file_path, {PLACES} place from range(24)", ["_metadata"]
    name, folder = f"z.odd_{table_type}", f"{tmp_path}/100% it+é"
    spark.sql(rows).coalesce(1).write.partitionBy("place").option("path", folder).saveAsTable(name)
    # Files of another writer do not tell their file group.
    table = ZTable.adopt(spark, name, managed=True)
    unique_key = ("_metadata",) if table_type == "merge_on_read" else ()
    settings = replace(config_of(table._opened.snapshot), table_type=TableTypeConfig(table_type, unique_key))
    new = spark.sql(rows).where("k % 4 = 0").selectExpr("k", "_metadata", "1 file_path", "place")
    assert table.merge(new, key, settings=settings).rows_updated == 6
    done = table.delete_insert(new.where("k < 12"), key)
    assert (done.rows_deleted, done.rows_updated) in [(3, 0), (0, 3)]
    assert table.delete("k in (1, 5, 9)").rows_deleted == 3
    expected = f"select k, _metadata, if(k % 4 = 0, 1, 0) file_path, place from ({rows}) where k not in (1, 5, 9)"
    assert same_rows(spark.table(name), spark.sql(expected))


@pytest.mark.slow
@pytest.mark.parametrize("most_values", [20_000, 2], ids=["values", "ranges"])
def test_keys_that_readers_of_parquet_take_for_others_are_found(spark, monkeypatch, most_values):
    monkeypatch.setattr("dbt.adapters.zlayout.spark.write.incoming_rows._MOST_VALUES", most_values)
    odd = """
      select * from values (1, -0.0D, date'1582-10-10'), (2, double('NaN'), date'0001-01-01'),
        (3, double('infinity'), date_from_unix_date(3000000)), (4, -1.5D, date'1970-01-01'), (5, null, null) as t (n, x, d)
    """
    name = f"z.odd_keys_{most_values}"
    table = ZTable.write(spark, name, spark.sql(f"select *, 'old' v from ({odd})"))
    new = spark.sql(f"select n, if(x = 0, 0.0D, x) x, d, 'new' v from ({odd})")
    assert table.merge(new.where("n < 5"), ["x"]).rows_updated == 4
    assert table.merge(new.where("n < 5"), ["d"]).rows_updated == 4
    assert table.delete_insert(new, ["x", "d"]).rows_deleted == 4
    assert spark.table(name).where("v = 'new'").count() == 5


@pytest.mark.newest_spark
def test_changes_of_ten_rows_run_few_jobs_and_few_calls(spark, monkeypatch):
    table = ZTable.write(spark, "z.small", spark.sql("select id k, 0 v from range(1000)"), zorder=["k"])
    settings = {"table_type": "merge_on_read", "unique_key": ["k"]}
    records = ZTable.write(spark, "z.small_records", spark.table("z.small"), zorder=["k"], **settings)
    ten = spark.sql("select id + 995 k, 1 v from range(10)")
    for change, most_jobs in (
        (lambda: table.merge(ten, ["k"]), 4),
        (lambda: table.delete_insert(ten, ["k"]), 4),
        (lambda: records.upsert(ten), 5),
    ):
        with Scans(spark) as scans:
            assert change().rows_inserted >= 5
        assert scans.jobs <= most_jobs
        with monkeypatch.context() as patched:
            calls = Calls(spark, patched)
            change()
        assert calls.count <= 200
    assert same_rows(spark.table("z.small"), spark.table("z.small_records"))


MANY_KINDS = """
    select id k, if(id % 7 = 0, null, concat('a\\'b', id % 30)) text, id % 2 = 0 yes, id v,
      case id % 6 when 0 then double('NaN') when 1 then -0.0D when 2 then 0.0D else id / 4D end number,
      cast(id / 100 as decimal(12, 3)) exact, date_add(date'2024-02-20', int(id % 40)) day,
      timestamp_micros(id * 1000003) moment, if(id = 43, null, cast(concat('b', id) as binary)) bytes
    from range({low}, {high})
"""


@pytest.mark.slow
@pytest.mark.parametrize("key", ["text", "k", "number", "exact", "day", "moment", "bytes", "yes"])
def test_few_keys_match_as_in_a_join(spark, key):
    """Keys of every kind, null, NaN and both zeros among them; in the second table several rows share a key."""
    every = spark.sql(MANY_KINDS.format(low=0, high=60))
    new = spark.sql(MANY_KINDS.format(low=40, high=75)).dropDuplicates([key]).localCheckpoint()
    new.createOrReplaceTempView("new")
    for rows in (every.dropDuplicates([key]), every):
        rows.localCheckpoint().createOrReplaceTempView("old")
        name = f"z.of_{key}"
        left = spark.sql(f"select old.* from old left anti join new on old.{key} = new.{key}")
        matched = spark.sql(f"select new.* from old join new on old.{key} = new.{key}")
        unmatched = spark.sql(f"select new.* from new left anti join old on old.{key} = new.{key}")
        table = ZTable.write(spark, name, spark.table("old"), zorder=["k"], target_file_size="2kb")
        done = table.merge(new, [key])
        assert (done.rows_updated, done.rows_inserted) == (matched.count(), unmatched.count())
        assert same_rows(spark.table(name), left.unionByName(matched).unionByName(unmatched))
        table = ZTable.write(spark, name, spark.table("old"), zorder=["k"], target_file_size="2kb")
        done = table.delete_insert(new.unionByName(new), [key])
        assert (done.rows_deleted, done.rows_inserted) == (matched.count(), 2 * new.count())
        assert same_rows(spark.table(name), left.unionByName(new).unionByName(new))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"lookup": ["k"]}, marks=pytest.mark.slow),
        pytest.param(
            {"lookup": ["k"], "table_type": "merge_on_read", "unique_key": "k", "compaction": "off"},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_text_key_of_other_bytes_than_utf_8_is_found(spark, settings):
    key = "case when id = 7 then cast(X'FF41' as string) else concat('k', id) end k"
    rows = spark.sql(f"select id, {key}, 0 v from range(1000)")
    table = ZTable.write(spark, "z.other_bytes", rows, zorder=["id"], target_file_size="6kb", **settings)
    few = spark.sql(f"select id, {key}, 1 v from range(7, 9)")
    table.merge(few, "k")
    table.merge(few, "k", exclude_columns=["id"])
    assert spark.sql("select id from z.other_bytes where v = 1 order by id").collect() == [(7,), (8,)]
    assert spark.table("z.other_bytes").count() == 1000
    if not settings.get("table_type"):
        table.merge(few, ["id", "k"])
        table.delete_insert(few, "k")
        # So many keys are written as ranges.
        table.merge(spark.sql(f"select id, {key}, 2 v from range(21000)"), "k")
        assert spark.sql("select count(*), sum(v) from z.other_bytes").first() == (21000, 42000)
    spark.sql("drop view if exists z.other_bytes" if settings.get("table_type") else "drop table z.other_bytes")


@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.slow)])
def test_values_of_another_type_keep_the_rows_of_the_join(spark, ansi):
    rows = "select lpad(string(id), 6, '0') k, date_add(date'2020-01-01', int(id)) d, int(id) i from range(2000)"
    ZTable.write(spark, "z.pruned_by", spark.sql(rows), zorder=["k"], target_file_size="6kb")
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for column, query, few in (
            ("k", "select 17 union all select 40", False),
            ("k", "select 17D", False),
            ("k", "select '000017'", True),
            ("d", "select '2020-1-5' union all select '2021-2-3'", False),
            ("d", "select timestamp'2020-01-05'", True),
            ("i", "select '017'", False),
            ("i", "select 17L", True),
        ):
            condition = values_predicate(spark, f"t.{column}", query, 100, 10)
            joined = f"select t.k from z.pruned_by t join ({query}) as q(x) on t.{column} = q.x"
            assert same_rows(spark.sql(f"{joined} where {condition}"), spark.sql(joined)), condition
            if few:
                assert ZTable.for_name(spark, "z.pruned_by").explain(condition.replace("t.", "")).kept_files == 1
        lossy = values_predicate(spark, "t.k", "select cast(X'FF41' as string) union all select 'k8'", 100, 10)
        assert "in (" not in lossy
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
