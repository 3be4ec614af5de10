"""What holds for a published table in every format: how it is switched, what is refused, what happens after a failure."""

import delta_readers
import iceberg_readers
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from published_tables import folder_of

from dbt.adapters.zlayout.errors import CommittedError, ConfigError
from dbt.adapters.zlayout.publish import delta_log, iceberg_publisher
from dbt.adapters.zlayout.table.ztable import ZTable

READERS = {"delta": delta_readers, "iceberg": iceberg_readers}
FOLDERS = {"delta": "_delta_log", "iceberg": "metadata"}
# What every publisher of the format calls.
WRITES = {"delta": (delta_log, "_commit"), "iceberg": (iceberg_publisher, "new_files")}
pytestmark = [pytest.mark.newest_spark, pytest.mark.parametrize("kind", READERS)]


def test_publishing_is_switched_on_and_off(spark, kind):
    table = ZTable.write(spark, f"z.{kind}_switch", spark.range(10).selectExpr("id k"), zorder=["k"])
    place, seen = folder_of(table) / FOLDERS[kind], READERS[kind].assert_seen
    assert not place.exists()
    table.append(spark.range(10, 20).selectExpr("id k"))
    assert table.publish(kind) == {kind: table.snapshot().version}
    seen(spark, table)
    table.append(spark.range(20, 30).selectExpr("id k"))
    again = ZTable.write(spark, table.name, spark.range(5).selectExpr("id k"), zorder=["k"])
    seen(spark, again)
    assert again.publish() == {kind: again.snapshot().version}
    assert again.publish([]) == {}
    assert not place.exists()
    again.append(spark.range(5, 7).selectExpr("id k"))
    assert not place.exists()
    assert set(again.publish(["delta", "iceberg"])) == {"delta", "iceberg"}
    seen(spark, again)
    # A format that is not named any more is switched off.
    again.publish([kind])
    assert [name for name, each in FOLDERS.items() if (folder_of(table) / each).exists()] == [kind]
    with pytest.raises(ConfigError, match="publish: 'iceburg' is not one of delta, iceberg"):
        again.publish(["iceburg"])


def test_times_that_readers_take_for_others_are_not_published_from_files_of_spark(spark, kind):
    name = f"z.{kind}_int96"
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    rows = "select id k, timestamp'2024-01-01 12:00:00' a, timestamp'{}-12-31 23:59:59' until from range(9)"
    try:
        for number, year in enumerate(("2261", "9999")):
            spark.sql(rows.format(year)).coalesce(1).write.saveAsTable(f"{name}_{number}", format="parquet")
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    near, far = (ZTable.adopt(spark, f"{name}_{number}", zorder=["k"], managed=True) for number in range(2))
    near.publish(kind)
    READERS[kind].assert_seen(spark, near)
    with pytest.raises(CommittedError, match="before 1678 or after 2261 in 96 bits, which readers misread, in 'until'"):
        far.publish(kind)
    far.cluster(rewrite_all=True)
    READERS[kind].assert_seen(spark, far)


def test_a_merge_on_read_table_is_published_as_its_base_files_show_it(spark, kind):
    rows, readers = spark.sql("select id k, 0 v from range(1000)"), READERS[kind]
    settings = {"zorder": ["k"], "table_type": "merge_on_read", "unique_key": "k", "publish": [kind]}
    table = ZTable.write(spark, f"z.{kind}_mor", rows, **settings)
    table.upsert(spark.sql("select id k, 1 v from range(500, 510)"))
    folder = folder_of(table)
    for read in readers.READERS.values():
        assert read(folder, "v = 1").num_rows == 0
        assert read(folder).num_rows == spark.table(f"{table.name}__ro").count() == 1000
    assert table.information()["published"] == {kind: {"version": 1, "log_records_not_shown": 10}}
    assert readers.log_records_not_shown(folder) == 10
    table.compact()
    newest = table.snapshot().version
    assert table.information()["published"] == {kind: {"version": newest, "log_records_not_shown": 0}}
    assert readers.log_records_not_shown(folder) is None
    readers.assert_seen(spark, table)
    assert readers.READERS["duckdb"](folder, "v = 1").num_rows == 10


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("interval '1' day x", "column 'x' has type interval day"),
        ("named_struct('y', interval '1' month) x", "column 'x.y' has type interval month"),
        (
            "timestamp'2026-01-01 00:00:00' p",
            "partition column 'p' has type timestamp: its folder names are in the session's time zone",
        ),
    ],
)
def test_what_the_format_has_no_type_for_is_refused_before_anything_is_written(spark, kind, column, told):
    rows = spark.sql(f"select 1 k, {column}")
    folders = {"partition_by": ["p"]} if column.endswith(" p") else {}
    with pytest.raises(ConfigError, match=told):
        ZTable.write(spark, f"z.{kind}_refused", rows, publish=[kind], **folders)
    assert not spark.catalog.tableExists(f"z.{kind}_refused")


@pytest.mark.slow
def test_a_failure_to_publish_is_told_and_mended_by_the_next_writer(spark, monkeypatch, kind):
    settings = {"publish": [kind], "retain_hours": 0, "retain_versions": 1}
    table = ZTable.write(spark, f"z.{kind}_fails", spark.range(10).selectExpr("id k"), **settings)
    told = []
    with monkeypatch.context() as broken:
        broken.setattr(*WRITES[kind], lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        for number in range(3):
            table.merge(spark.sql(f"select {number} k"), "k", progress=told.append)
            problem = f"readers of {kind} do not see it yet: disk full"
            assert any(problem in each for each in table.last_commit.unfinished)
        assert table.information()["unfinished"] == [
            f"readers of {kind} see version 0 instead of version {table.snapshot().version}"
        ]
        with pytest.raises(CommittedError, match=f"readers of {kind} do not see it: disk full"):
            table.publish()
    assert any(f"readers of {kind} do not see it yet" in each for each in told)
    # No clean has taken the files that readers of the format still see.
    assert READERS[kind].READERS["duckdb"](folder_of(table)).num_rows == 10
    table.append(spark.range(20, 21).selectExpr("id k"))
    assert not table.last_commit.unfinished
    assert not table.information()["unfinished"]
    assert table.publish() == {kind: 4}
    READERS[kind].assert_seen(spark, table)


@pytest.mark.newest_spark
def test_a_format_that_fails_does_not_keep_the_other_from_its_readers(spark, monkeypatch, kind):
    other = next(each for each in WRITES if each != kind)
    table = ZTable.write(spark, f"z.{kind}_fails_alone", spark.range(10).selectExpr("id k"), publish=list(WRITES))
    with monkeypatch.context() as broken:
        for each in WRITES.values():
            broken.setattr(*each, lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        table.append(spark.range(20, 21).selectExpr("id k"))
    with monkeypatch.context() as broken:
        broken.setattr(*WRITES[kind], lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(CommittedError, match=f"readers of {kind} do not see it: disk full"):
            table.publish()
    READERS[other].assert_seen(spark, table)
    assert table.publish() == {kind: 1, other: 1}


def test_a_version_that_readers_would_misread_is_passed_over_once_its_file_is_rewritten(spark, tmp_path, kind):
    pq.write_table(pa.table({"k": [1, 2], "NAME": ["a", "b"]}), tmp_path / "a.parquet")
    spark.sql(f"create table z.{kind}_passed (k bigint, name string) using parquet location '{tmp_path}'")
    table = ZTable.adopt(spark, f"z.{kind}_passed", zorder=["k"], managed=True)
    table.cluster(rewrite_all=True)
    table.publish(kind)
    table.rollback(0)
    with pytest.raises(CommittedError, match="spells column 'NAME' in another case"):
        table.publish()
    table.cluster(rewrite_all=True)
    assert table.publish() == {kind: table.snapshot().version}
    READERS[kind].assert_seen(spark, table)
    table.append(spark.sql("select 9L k, 'z' name"))
    assert not table.last_commit.unfinished
    READERS[kind].assert_seen(spark, table)
