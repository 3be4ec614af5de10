"""Older versions: reading, rollback, changes between versions, and cleaning."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import time
from pathlib import Path

import pytest
from comparing import bag, same_rows, schema_of
from pyspark.sql import functions

from dbt.adapters.zlayout.errors import ConfigError, UnsupportedError, VersionNotFoundError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.read.relations import uninstall
from dbt.adapters.zlayout.table.ztable import ZTable

FIRST = """
  select id, case when id % 5 = 0 then double('NaN') when id % 7 = 0 then null else id / 3.0D end d,
    case when id % 3 = 0 then null else concat('ключ ', id) end s, cast(id % 3 as int) p,
    array(id, null) a, named_struct('x', id, 'y', string(id)) st
  from range(3000)
"""


def add(table, frame, **options):
    table.append(frame, **options)
    return table


@pytest.fixture(scope="module")
def past(spark):
    """A table of several versions, and the rows of each version."""
    options = {"zorder": ["id"], "target_file_size": "16kb", "retain_versions": 100}
    rows, schemas = [], []

    def note():
        newest = spark.table("z.past")
        rows.append(bag(newest))
        schemas.append(schema_of(newest))

    table = ZTable.write(spark, "z.past", spark.sql(FIRST), partition_by=["p"], **options)
    note()
    table.append(spark.sql(FIRST.replace("range(3000)", "range(3000, 3500)")))
    note()
    more = spark.sql(FIRST.replace("range(3000)", "range(3500, 3600)")).withColumn("extra", functions.lit("new"))
    table.append(more, on_schema_change="append_new_columns")
    note()
    table.append(more.drop("d", "a"), on_schema_change="sync_all_columns")
    note()
    table.delete("id < 1000")
    note()
    ZTable.write(spark, "z.past", spark.sql("select id, string(id) q from range(50)"), partition_by=["q"], **options)
    note()
    return rows, schemas


@pytest.mark.slow
def test_each_version_has_the_rows_and_columns_that_it_had(spark, past):
    rows, schemas = past
    table = ZTable.for_name(spark, "z.past")
    assert table.version == len(rows) - 1
    for version, (wanted, schema) in enumerate(zip(rows, schemas, strict=True)):
        frame = table.read(version=version)
        assert bag(frame) == wanted, version
        assert schema_of(frame) == schema, version
    assert bag(spark.table("z.past")) == rows[-1]
    assert bag(table.read()) == rows[-1]


@pytest.mark.slow
def test_a_version_skips_files_and_partitions(spark, past):
    table = ZTable.for_name(spark, "z.past")
    frame = table.read(version=1)
    narrow = frame.where("id between 10 and 20 and p = 1")
    assert sorted(row.id for row in narrow.collect()) == [10, 13, 16, 19]
    node = next(
        each for each in leaves(narrow._jdf.queryExecution().executedPlan()) if "FileSourceScan" in type_of(each)
    )
    assert node.metrics().get("numFiles").get().value() < len(frame.inputFiles()) / 3


def leaves(plan):
    if plan.getClass().getSimpleName().startswith("AdaptiveSparkPlan"):
        plan = plan.executedPlan()
    found = plan.collectLeaves()
    return [found.apply(position) for position in range(found.size())]


def type_of(node):
    return str(node.getClass().getSimpleName())


@pytest.mark.slow
def test_the_table_by_its_name_stays_the_newest_version(spark, past):
    rows, _ = past
    table = ZTable.for_name(spark, "z.past")
    before = spark.table("z.past")
    assert table.read(version=0).join(before, "id").count() == 50
    assert bag(spark.table("z.past")) == rows[-1]
    table.read(version=0).createOrReplaceTempView("then")
    counts = "select (select count(*) from then) a, (select count(*) from z.past) b"
    assert spark.sql(counts).collect()[0] == (sum(rows[0].values()), 50)


@pytest.mark.slow
def test_a_version_is_found_by_instant_and_by_time(spark, past):
    rows, _ = past
    table = ZTable.for_name(spark, "z.past")
    for row in table.history().to_pylist():
        wanted = rows[row["version"]]
        assert bag(table.read(instant=row["instant"])) == wanted
        assert bag(table.read(timestamp=row["committed_at"])) == wanted
        naive = row["committed_at"].replace(tzinfo=None)
        assert bag(table.read(timestamp=naive)) == wanted
        assert bag(table.read(timestamp=str(naive))) == wanted
        a_moment_before = row["committed_at"] - dt.timedelta(milliseconds=1)
        if row["version"]:
            assert bag(table.read(timestamp=a_moment_before)) == rows[row["version"] - 1]
        else:
            with pytest.raises(VersionNotFoundError, match="the first, version 0, is of "):
                table.read(timestamp=a_moment_before)
    assert bag(table.read(timestamp="2999-01-01")) == rows[-1]


def test_text_is_a_time_in_the_sessions_zone(spark, past):
    rows, _ = past
    table = ZTable.for_name(spark, "z.past")
    committed = table.history().to_pylist()[2]["committed_at"]
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        there = (committed + dt.timedelta(hours=9)).replace(tzinfo=None)
        assert bag(table.read(timestamp=str(there))) == rows[3]
        assert bag(table.read(timestamp=f"{committed:%Y-%m-%d %H:%M:%S.%f}Z")) == rows[3]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        (
            {"version": 99},
            VersionNotFoundError,
            r"z\.past has no version 99; versions 0 to 5 can be read",
        ),
        ({"version": -1}, VersionNotFoundError, "no version -1"),
        ({"version": True}, ConfigError, "not a whole number"),
        ({"instant": "20200101000000000"}, VersionNotFoundError, "no version of instant 20200101000000000"),
        ({"instant": "yesterday"}, VersionNotFoundError, "17 digits"),
        ({"instant": 20200101000000000}, ConfigError, "write its 17 digits in quotes"),
        ({"timestamp": "next week"}, ConfigError, "2024-01-31 12:30:00"),
        ({"timestamp": 5}, ConfigError, "timestamp: 5 is not a time"),
        ({"version": 1, "timestamp": "2024-01-01"}, ConfigError, "give only one of"),
    ],
)
def test_the_error_for_a_missing_version_names_the_readable_ones(spark, past, asked, error, message):
    with pytest.raises(error, match=message):
        ZTable.for_name(spark, "z.past").read(**asked)


@pytest.mark.slow
def test_another_process_reads_an_older_version(spark, past, tmp_path):
    rows, _ = past
    location = ZTable.for_name(spark, "z.past").location
    program = tmp_path / "reader.py"
    program.write_text(f"""
import sys
from pyspark.sql import SparkSession
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TABLE_ID_PROPERTY
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.history.time_travel import TimeTravelSpec, opened_at
from dbt.adapters.zlayout.spark.read.record_tables import rows_of
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
catalog, opened = Catalog(spark), TableSnapshot.newest({location!r}, "UTC")
for version in range({len(rows)}):
    past = opened_at(catalog, opened, "there", TimeTravelSpec(version=version))
    print("rows", version, rows_of(catalog, past).count())
""")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    counted = [line.split() for line in done.stdout.splitlines() if line.startswith("rows")]
    assert [int(count) for _, _, count in counted] == [sum(each.values()) for each in rows]


@pytest.mark.slow
def test_a_rollback_is_a_new_version_equal_to_the_old_one(spark):
    options = {"retain_versions": 100, "target_file_size": "16kb"}
    first = spark.sql(FIRST).cache()
    ZTable.write(spark, "z.back", first, zorder=["id"], partition_by=["p"], **options)
    table = ZTable.for_name(spark, "z.back")
    then = table.snapshot()
    second = spark.sql("select string(id) id, id % 7 v from range(500)").cache()
    ZTable.write(spark, "z.back", second, zorder=["v"], curve="hilbert", comment="what it is", **options)
    table = ZTable.for_name(spark, "z.back")
    done = table.rollback(0)
    assert (done.version, done.operation, done.files_removed) == (2, "rollback", 1)
    assert table.version == 2
    now = ZTable.for_name(spark, "z.back").snapshot()
    for part in ("schema_json", "partition_by", "layout", "curve", "index", "properties"):
        assert getattr(now, part) == getattr(then, part), part
    assert same_rows(spark.table("z.back"), first)
    assert spark.catalog.getTable("z.back").description == "what it is"
    assert ZTable.for_name(spark, "z.back").index_status().num_rows == 0
    uninstall(Catalog(spark), Catalog(spark).name("z.back"))
    spark.catalog.refreshTable("z.back")
    assert same_rows(spark.table("z.back"), first)
    table.append(spark.sql(FIRST.replace("range(3000)", "range(3000, 3010)")))
    assert spark.table("z.back").count() == 3010
    assert table.rollback(instant=table.history().to_pylist()[2]["instant"]).version == 4  # version 1
    assert same_rows(spark.table("z.back"), second)
    assert table.rollback(2).version == 5  # to a rollback
    assert same_rows(spark.table("z.back"), first)
    assert table.rollback(5).files_added == 0
    assert same_rows(spark.table("z.back"), first)
    assert [row["operation"] for row in table.history(limit=3).to_pylist()] == ["rollback"] * 3
    clean = table.clean(retain_versions=1, retain_hours=0)
    assert clean.files > 0
    assert same_rows(spark.table("z.back"), first)
    assert table.explain("id = 7").kept_files == 3  # one in each partition
    assert table.explain("id > 3000").kept_files == 0


def test_a_rollback_needs_a_version(spark, past):
    with pytest.raises(ConfigError, match="no version is given"):
        ZTable.for_name(spark, "z.past").rollback()


@pytest.mark.exhaustive
def test_a_table_with_any_name_can_be_rolled_back(spark):
    name = "z.`1_Select`"
    for turn in (1, 2):
        ZTable.write(spark, name, spark.sql(f"select {turn} turn"))
    assert ZTable.for_name(spark, name).rollback(0).version == 2
    assert spark.table(name).collect()[0].turn == 1


def files_of(table):
    root = Path(table.location.removeprefix("file://"))
    return {
        str(each.relative_to(root)) for each in root.rglob("*") if each.is_file() and not each.name.endswith(".crc")
    }


def rebuilt(spark, name, times, **options):
    for turn in range(times):
        ZTable.write(spark, name, spark.sql(f"select id, {turn} turn from range(100)"), zorder=["id"], **options)
    return ZTable.for_name(spark, name)


def test_clean_deletes_only_what_its_dry_run_listed(spark):
    table = rebuilt(spark, "z.cleaned", 5, retain_versions=50)
    everything = files_of(table)
    told = table.clean(dry_run=True, retain_versions=2, retain_hours=0)
    assert files_of(table) == everything
    done = table.clean(retain_versions=2, retain_hours=0)
    assert done == told
    assert everything - files_of(table) == set(done.paths)
    assert done.files == len(done.paths) > 3
    assert done.bytes > 0
    assert done.oldest_version == 3
    assert table.read(version=3).where("turn = 3").count() == 100
    with pytest.raises(VersionNotFoundError, match="version 2 were cleaned; versions 3 to 4 can be read"):
        table.read(version=2)
    with pytest.raises(VersionNotFoundError, match="versions 3 to 4 can be read"):
        table.rollback(1)
    assert table.clean(retain_versions=2, retain_hours=0).files == 0
    assert table.index_status().num_rows == 0


def test_clean_keeps_versions_that_were_the_newest_within_retain_hours(spark):
    table = rebuilt(spark, "z.kept_hours", 4, retain_versions=50)
    assert table.clean(retain_versions=1, retain_hours=1).files == 0
    assert table.read(version=0).count() == 100
    assert table.clean(retain_versions=1).files == 0  # 24 hours, as the table was written


def test_clean_without_limits_uses_the_retention_of_the_table(spark):
    table = rebuilt(spark, "z.own", 4, retain_versions=50, retain_hours=0)
    assert table.clean().files == 0
    table = rebuilt(spark, "z.own", 1, retain_versions=2, retain_hours=0)
    assert table.clean().files == 0  # the write has cleaned
    with pytest.raises(ConfigError, match="retain_versions"):
        table.clean(retain_versions=0)


def test_clean_deletes_its_own_orphans_and_keeps_files_of_other_tools(spark):
    table = rebuilt(spark, "z.lost", 1)
    root = Path(table.location.removeprefix("file://"))
    content = next(root.glob("*.parquet")).read_bytes()
    (root / "0123456789abcdef_20200101000000000.parquet").write_bytes(content)
    (root / "part-00000.parquet").write_bytes(content)
    assert table.clean().files == 0  # not old enough
    time.sleep(0.05)  # longer than a tick of the file system's clock
    assert table.clean(retain_hours=0).paths == ("0123456789abcdef_20200101000000000.parquet",)
    assert table.index_status().column("path").to_pylist() == ["part-00000.parquet"]


def test_versions_of_appends_stay_readable_after_a_clean(spark):
    table = rebuilt(spark, "z.grown", 1, retain_versions=50)
    for turn in range(1, 4):
        table.append(spark.sql(f"select id, {turn} turn from range(10)"))
    table.clean(retain_versions=1, retain_hours=0)
    assert [table.read(version=version).count() for version in range(4)] == [100, 110, 120, 130]
    assert table.rollback(1).version == 4
    assert spark.table("z.grown").count() == 110
    assert table.index_status().num_rows == 0  # the index of that version was cleaned, and is there again
    assert table.explain("id = 3").problems == ()


def changes_of(table, *versions):
    rows = table.changes(*versions).collect()
    return sorted((row._commit_version, row._change_type, *list(row)[:-2]) for row in rows)


@pytest.mark.slow
def test_changes_are_the_rows_that_differ(spark):
    spark.sql("select id, string(id) v from range(2000)").createOrReplaceTempView("two_thousand")
    table = ZTable.write(
        spark, "z.changed", spark.table("two_thousand"), zorder=["id"], target_file_size="8kb", retain_versions=50
    )
    table.append(spark.sql("select id, 'a' v from values 3000L, 3001L t(id)"))
    news = spark.sql("select * from values (5L, 'five'), (4000L, 'new') t(id, v)")
    table.merge(news, unique_key=["id"])
    table.delete("id = 7 or id = 3001")
    assert table.changes(0).columns == ["id", "v", "_change_type", "_commit_version"]
    expected = [
        (1, "insert", 3000, "a"),
        (1, "insert", 3001, "a"),
        (2, "delete", 5, "5"),
        (2, "insert", 5, "five"),
        (2, "insert", 4000, "new"),
        (3, "delete", 7, "7"),
        (3, "delete", 3001, "a"),
    ]
    assert changes_of(table, 0) == expected
    assert changes_of(table, 1, 2) == expected[2:5]
    assert changes_of(table, 2, 2) == []
    assert len(table.changes(1, 2).inputFiles()) < len(table.snapshot().files)
    table.rollback(0)
    undone = {"insert": "delete", "delete": "insert"}
    net = [(4, undone[change], *row) for version, change, *row in expected if row != [3001, "a"]]
    assert changes_of(table, 3, 4) == sorted(net)


def net_changes_of(table, *versions, files, **options):
    changed = table.net_changes(*versions, **options)
    assert len(changed.inputFiles()) == files
    found = [(row._zl_change, *list(row)[:-1]) for row in changed.collect()]
    return sorted(found, key=lambda row: (row[0], row[1] is None, row[1] or 0))


def added_since(table, version):
    """How many files the newest version has that an earlier one had not."""
    before = {path.rpartition("/")[2] for path in table.files(version=version)["path"].to_pylist()}
    return sum(path.rpartition("/")[2] not in before for path in table.files()["path"].to_pylist())


def test_net_changes_read_only_files_that_differ(spark):
    rows = spark.sql("select id, string(id) v from range(2000)")
    table = ZTable.write(spark, "z.net", rows, zorder=["id"], target_file_size="8kb", retain_versions=50)
    assert len(table.snapshot().files) >= 4
    key = {"unique_key": "ID"}
    table.append(spark.sql("select id, 'a' v from values 3000L, 3001L t(id)"))
    table.append(spark.sql("select id, 'b' v from values 5L, cast(null as long) t(id)"))
    assert added_since(table, 0) == 2
    assert table.changes(0).count() == 4
    assert len(table.changes(0).inputFiles()) == 2
    assert [row[0] for row in net_changes_of(table, 0, files=2, **key)] == ["insert"] * 4
    table.delete("id = 3001 or id is null or id = 7")
    # Both appended files went again, and the rows of one of them in another file are as new.
    found = net_changes_of(table, 0, files=added_since(table, 0) + 1, **key)
    assert found == [("delete", 7, "7"), ("insert", 5, "b"), ("insert", 3000, "a")]
    table.merge(spark.sql("select * from values (8L, 'eight'), (4000L, 'new') t(id, v)"), unique_key=["id"])
    table.cluster(rewrite_all=True)
    version, before = table.version, ZTable.for_name(spark, "z.net")
    table.delete("id = 4000")
    assert before.net_changes(version, **key).count() == before.changes(version).count() == 1
    assert before.net_changes(None).count() == table.net_changes(None).count()
    changed = table.net_changes(version - 1, **key).collect()
    assert [tuple(row) for row in changed] == [(4000, "new", "delete")]
    assert table.net_changes(version - 2, **key).select("_zl_change", "id", "v").collect() == [("update", 8, "eight")]
    assert net_changes_of(table, version - 1, version, files=0) == []
    assert {row._zl_change for row in table.net_changes(version - 2).collect()} == {"insert", "delete"}
    assert table.net_changes(None).count() == spark.table("z.net").count()
    with pytest.raises(ConfigError, match="no column nope"):
        table.net_changes(None, unique_key="nope")
    for wrong, told in (({"unique_key": "nope"}, "no column nope"), ({"to_version": 0}, "swap them")):
        with pytest.raises(ConfigError, match=told):
            table.net_changes(1, **wrong)


@pytest.mark.slow
def test_a_rewrite_of_the_same_rows_changes_nothing(spark):
    folded = "s c" if spark.version.startswith("3.") else "s collate UTF8_LCASE c"
    rows = spark.sql(FIRST + " union all " + FIRST).selectExpr(
        "*", "map('k', d, 'j', null) m", "named_struct('a', array(map(id, s))) deep", folded
    )
    ZTable.write(spark, "z.same", rows, zorder=["id"], target_file_size="16kb", retain_versions=9)
    table = ZTable.write(spark, "z.same", rows, zorder=["d"], target_file_size="64kb", retain_versions=9)
    assert table.changes(0).count() == 0
    one_less = (
        rows.where("id <> 8")
        .union(rows.where("id = 8").limit(1))
        .withColumn("c", functions.expr("if(id = 4, upper(c), c)"))
    )
    table = ZTable.write(spark, "z.same", one_less, zorder=["d"], retain_versions=9)
    changed = table.changes(1)
    found = sorted((row._change_type, row.id, row.c, row.m["k"] if row.id == 8 else None) for row in changed.collect())
    assert found == [
        ("delete", 4, "ключ 4", None),
        ("delete", 4, "ключ 4", None),
        ("delete", 8, "ключ 8", 8 / 3.0),
        ("insert", 4, "КЛЮЧ 4", None),
        ("insert", 4, "КЛЮЧ 4", None),
    ]
    assert schema_of(changed.drop("_change_type", "_commit_version")) == schema_of(spark.table("z.same"))


def test_changes_follow_added_dropped_and_widened_columns(spark):
    table = ZTable.write(
        spark, "z.moved", spark.sql("select cast(id as int) k, 'x' old from range(3)"), retain_versions=9
    )
    table.append(spark.sql("select 9 k, 'y' old, 1.5D new"), on_schema_change="append_new_columns")
    table.append(spark.sql("select 10L k, 2.5D new"), on_schema_change="sync_all_columns")
    found = changes_of(table, 0)
    assert [row[1:] for row in found] == [("insert", 9, 1.5), ("insert", 10, 2.5)]
    table = ZTable.write(spark, "z.moved", spark.sql("select string(id) k from range(3)"), retain_versions=9)
    with pytest.raises(UnsupportedError, match="column `new`|column `k`"):
        ZTable.write(spark, "z.moved", spark.sql("select date'2024-01-01' k"), retain_versions=9).changes(table.version)


@pytest.mark.parametrize(
    ("versions", "error", "message"),
    [((3, 1), ConfigError, "swap them"), ((0, 77), VersionNotFoundError, "no version 77")],
)
def test_changes_between_wrong_versions_are_an_error(spark, past, versions, error, message):
    with pytest.raises(error, match=message):
        ZTable.for_name(spark, "z.past").changes(*versions)


def test_changes_whose_files_were_cleaned_are_an_error(spark):
    table = rebuilt(spark, "z.gone", 4, retain_versions=50)
    table.clean(retain_versions=2, retain_hours=0)
    assert table.changes(2, 3).count() == 200
    with pytest.raises(
        VersionNotFoundError, match="between versions 1 and 3 were cleaned; versions 2 to 3 can be read"
    ):
        table.changes(1, 3)


@pytest.mark.exhaustive
def test_changes_of_values_that_cannot_be_compared_are_an_error(spark):
    if spark.version.startswith("3."):
        pytest.skip("Spark 3 has no type whose values never compare")
    query = "select id, parse_json('1') v from range(10)"
    ZTable.write(spark, "z.variant", spark.sql(query), retain_versions=9)
    table = ZTable.for_name(spark, "z.variant")
    assert table.append(spark.sql("select 10L id, parse_json('2') v")).version == 1
    assert table.changes(0, 1).count() == 1  # nothing to compare in an append
    table.delete("id = 3")
    with pytest.raises(UnsupportedError, match="variant"):
        table.changes(1, 2)


def test_an_indexed_table_has_no_versions(spark):
    spark.sql("create or replace temp view few as select id from range(10)")
    spark.sql("drop table if exists z.foreign")
    spark.sql("create table z.foreign using parquet as select * from few")
    table = ZTable.adopt(spark, "z.foreign")
    for act in (lambda: table.read(version=0), lambda: table.rollback(0), table.clean, lambda: table.changes(0)):
        with pytest.raises(UnsupportedError, match="only indexed"):
            act()
