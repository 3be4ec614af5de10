"""What fails after a commit: the rows are in, nobody writes them twice, and the next writer repeats what is missing."""

import shutil
import time
from pathlib import Path

import pytest

from dbt.adapters.zlayout.adapter.materialize.attempts import Attempts
from dbt.adapters.zlayout.adapter.materialize.materialization import until_committed
from dbt.adapters.zlayout.errors import CommittedError, ConflictError
from dbt.adapters.zlayout.publish.spark_manifest import published_version
from dbt.adapters.zlayout.spark.commit import publish as show
from dbt.adapters.zlayout.spark.index import refresh
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.timeline import Timeline

NOTHING_KEPT = {"retain_versions": 1, "retain_hours": 0}


def ten_rows(spark, start=0):
    return spark.range(start, start + 10).selectExpr("id k", "id v")


def folder_of(table):
    return Path(table.location.removeprefix("file://"))


def test_appends_beside_a_damaged_record_of_a_clean_are_made_once_and_say_so(spark):
    table = ZTable.write(spark, "z.damaged_record", ten_rows(spark))
    record = folder_of(table) / ".zlayout/timeline/clean/20240101000000000.json"
    record.parent.mkdir(exist_ok=True)
    record.write_text("{")
    lines = []
    for number in range(1, 4):
        done = table.append(ten_rows(spark, 10 * number), progress=lines.append)
        assert any(record.name in each for each in done.to_dict()["unfinished"])
    assert spark.table("z.damaged_record").count() == 40
    assert sum(record.name in line for line in lines) == 3
    assert any(record.name in each for each in table.information()["unfinished"])
    record.unlink()
    assert table.append(ten_rows(spark, 40)).unfinished == ()
    assert table.information()["unfinished"] == []


def test_a_file_that_cannot_be_deleted_costs_no_write_and_goes_with_a_later_clean(spark):
    table = ZTable.write(spark, "z.stubborn", ten_rows(spark), **NOTHING_KEPT)
    stubborn = folder_of(table) / table.snapshot().files["path"][0].as_py()
    stubborn.unlink()
    (stubborn / "in the way").mkdir(parents=True)
    for _ in range(2):
        table = ZTable.write(spark, "z.stubborn", ten_rows(spark), **NOTHING_KEPT)
        assert any(stubborn.name in each for each in table.last_commit.unfinished)
        assert table.information()["unfinished"] == ["1 file of old versions could not be deleted"]
    live = [table.snapshot().files["path"][0].as_py()]
    assert [each.name for each in folder_of(table).glob("*.parquet") if each.is_file()] == live
    shutil.rmtree(stubborn)
    stubborn.write_bytes(b"")
    table = ZTable.write(spark, "z.stubborn", ten_rows(spark), **NOTHING_KEPT)
    assert (table.last_commit.unfinished, table.information()["unfinished"]) == ((), [])
    assert not stubborn.exists()
    assert spark.table("z.stubborn").count() == 10


def _writers(spark):
    """Every way to make a version: its table, and what makes it."""
    plain = ZTable.write(spark, "z.after_plain", ten_rows(spark), zorder=["k"])
    yield plain, lambda: ZTable.write(spark, "z.after_plain", ten_rows(spark), zorder=["k"])
    yield plain, lambda: plain.append(ten_rows(spark))
    yield plain, lambda: plain.delete("k = 3")
    yield plain, lambda: plain.cluster(rewrite_all=True)
    yield plain, lambda: plain.rollback(0)
    records = ZTable.write(
        spark, "z.after_records", ten_rows(spark), table_type="merge_on_read", unique_key="k", compaction="off"
    )
    yield records, lambda: records.merge(ten_rows(spark, 5), ["k"])
    yield records, records.compact


@pytest.mark.slow
def test_every_writer_whose_version_cannot_be_published_says_that_it_is_committed(spark, monkeypatch):
    refused = OSError(13, "Permission denied")

    def refuse(*_):
        raise refused

    for table, write in _writers(spark):
        store = open_store(table.location)
        before = Timeline(store).latest_version()
        with monkeypatch.context() as patched:
            patched.setattr(show, "catch_up", refuse)
            with pytest.raises(CommittedError, match=rf"^version {before + 1} is committed, but .*Permission denied"):
                write()
        assert (Timeline(store).latest_version(), published_version(store)) == (before + 1, before)
        assert str(before + 1) in str(ZTable.for_name(spark, table.name).information()["unfinished"])
        ZTable.for_name(spark, table.name).refresh_index()
        assert published_version(store) == before + 1
    assert sorted(row.k for row in spark.table("z.after_records").collect()) == list(range(15))


def test_an_adoption_whose_version_cannot_be_published_is_done_again(spark, monkeypatch):
    ten_rows(spark).write.saveAsTable("z.after_foreign", format="parquet")
    with monkeypatch.context() as patched:
        patched.setattr(show, "catch_up", lambda *_: 1 / 0)
        with pytest.raises(CommittedError, match="^version 0 is committed, but .*division by zero; run this again"):
            ZTable.adopt(spark, "z.after_foreign", managed=True)
    table = ZTable.adopt(spark, "z.after_foreign", managed=True)
    with monkeypatch.context() as patched:
        patched.setattr(refresh, "catch_up", lambda *_: 1 / 0)
        with pytest.raises(CommittedError, match="^version 1 is committed, but .*division by zero"):
            table.refresh_index()
    assert published_version(open_store(table.location)) == 1
    assert spark.table("z.after_foreign").count() == 10


def test_a_conflict_after_the_commit_does_not_run_the_query_again(spark, monkeypatch):
    table = ZTable.write(spark, "z.after_conflict", ten_rows(spark))

    def in_the_way(*_):
        raise ConflictError("somebody was first")

    with monkeypatch.context() as patched:
        patched.setattr(show, "catch_up", in_the_way)
        with pytest.raises(CommittedError, match="^version 1 is committed, but .*somebody was first"):
            until_committed(lambda: table.append(ten_rows(spark, 10)), print, lambda: None, Attempts())
    table.append(ten_rows(spark, 20))
    assert spark.table("z.after_conflict").count() == 30


def test_a_clock_that_is_days_ahead_takes_no_file_that_was_current_a_moment_ago(spark, monkeypatch):
    table = ZTable.write(spark, "z.after_ahead", ten_rows(spark), retain_versions=1)
    ahead_seconds = 3 * 24 * 3600
    real = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: real[0]() + ahead_seconds)
    monkeypatch.setattr(time, "time_ns", lambda: real[1]() + ahead_seconds * 10**9)
    table = ZTable.write(spark, "z.after_ahead", ten_rows(spark), retain_versions=1)
    assert table.clean(retain_versions=1).files == 0
    assert table.read(version=0).count() == 10


def test_what_only_makes_queries_faster_may_fail(spark, monkeypatch):
    table = ZTable.write(spark, "z.after_useful", ten_rows(spark))
    with monkeypatch.context() as patched:
        for name in ("install", "retire", "column_facts"):
            patched.setattr(show, name, lambda *_, **__: 1 / 0)
        done = table.append(ten_rows(spark, 10))
    assert len(done.unfinished) == 2
    assert spark.table("z.after_useful").count() == 20
