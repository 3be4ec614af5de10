"""Cleaning and orphans: what goes, and above all what stays."""

from __future__ import annotations

import os

import pytest

from dbt.adapters.zlayout.index.slice_writing import slice_path
from dbt.adapters.zlayout.store.protocol import Store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.naming import (
    CHECKPOINT_FOLDER,
    CLEAN_FOLDER,
    STAGING_FOLDER,
    curve_path,
    data_file_path,
    log_path,
    scratch_name,
    staging_folder,
)
from dbt.adapters.zlayout.timeline.retention.cleaning import clean
from dbt.adapters.zlayout.timeline.retention.orphans import foreign_files, orphans, spark_has_written
from dbt.adapters.zlayout.timeline.retention.past import last_clean
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.pending import Pending, StateContent
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

HOUR_MS = 3_600_000


def _indexed_overwrite(table) -> None:
    with Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        slices = {"files": (slice_path("files", transaction.instant, b"slice"),)}
        table.store.put(slices["files"][0], b"x")
        table.store.put(curve_path(transaction.instant), b"x")
        files = table.write(transaction)
        transaction.commit(
            Change(files, schema_json='{"type":"struct","fields":[]}', curve=curve_path(transaction.instant)),
            index=slices,
        )


def _oldest_whole(table):
    """The oldest version whose files every clean left whole; 0 without a clean."""
    return last_clean(table.store).oldest_version


def test_files_of_the_newest_versions_stay(table) -> None:
    for _ in range(5):
        _indexed_overwrite(table)
    kept = {path for version in (3, 4) for path in table.timeline().snapshot(version).files["path"].to_pylist()}
    result = clean(table.timeline(), 2, 0, table.now_ms + HOUR_MS)
    assert table.on_disk() == kept
    assert result.files == 9  # three data files, slices and curve models
    assert result.bytes == 3 * 4 + 6
    assert result.oldest_version == 3
    assert len(table.store.list(".zlayout/index", recursive=True)) == 2
    assert len(table.store.list(".zlayout/curve")) == 2
    assert _oldest_whole(table) == 3


def test_files_of_versions_that_a_reader_may_still_read_stay(table) -> None:
    table.overwrite()
    table.now_ms += 2 * HOUR_MS
    table.overwrite()  # replaces the first two hours after it
    table.now_ms += 3 * HOUR_MS
    table.overwrite()
    # 2.5 hours back version 1 was the newest: it stays, and the one that it replaced goes.
    clean(table.timeline(), 1, 2.5, table.now_ms)
    assert len(table.on_disk()) == 2
    clean(table.timeline(), 1, 2.5, table.now_ms + 3 * HOUR_MS)
    assert table.on_disk() == table.live()


def test_a_clean_in_no_hurry_reads_few_entries_however_many_versions_are_retained(table, monkeypatch) -> None:
    read, dated, read_path, stat_path = [], [], table.store.read, table.store.stat
    monkeypatch.setattr(table.store, "read", lambda path: read.append(path) or read_path(path))
    monkeypatch.setattr(table.store, "stat", lambda path: dated.append(path) or stat_path(path))
    most_kept = full = 0
    for number in range(120):
        table.overwrite()
        table.now_ms += HOUR_MS // 2
        read.clear()
        dated.clear()
        clean(table.timeline(), 1, 25, table.now_ms, at_once=False)
        if number >= 70:
            most_kept = max(most_kept, len(table.on_disk()))
            if len(read) > 10:
                full += 1
            else:
                assert len(dated) <= 12
    assert 5 <= full <= 10
    # Those of the last 25 hours, and at most a tenth as many that have expired.
    assert 50 <= most_kept <= 56
    clean(table.timeline(), 1, 25, table.now_ms)
    assert len(table.on_disk()) == 50


def test_times_of_a_copied_folder_never_make_a_clean_take_more(table) -> None:
    for _ in range(40):
        table.overwrite()
        table.now_ms += HOUR_MS
    needed = {
        path for version in range(29, 40) for path in table.timeline().snapshot(version).files["path"].to_pylist()
    }
    os.utime(table.store.local_path(log_path(24)), ns=(table.now_ms * 1_000_000,) * 2)
    clean(table.timeline(), 1, 10.5, table.now_ms)
    assert needed <= table.on_disk()
    assert len(table.on_disk()) == 17


def test_a_dry_run_tells_and_deletes_nothing(table) -> None:
    for _ in range(3):
        table.overwrite()
    before = table.store.list("", recursive=True)
    told = clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS, dry_run=True)
    assert table.store.list("", recursive=True) == before
    done = clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS)
    assert done == told
    assert told.files == 2


def test_a_version_that_a_transaction_began_with_stays(table) -> None:
    table.overwrite()
    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND) as transaction:
        table.overwrite()
        table.overwrite()
        clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS)
        assert set(transaction.base.files["path"].to_pylist()) <= table.on_disk()
    clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS)
    assert table.on_disk() == table.live()


def test_slices_of_a_transaction_under_way_stay(table) -> None:
    table.overwrite()
    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND) as transaction:
        path = slice_path("files", transaction.instant, b"slice")
        table.store.put(path, b"x")
        clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS)
        assert table.store.exists(path)


def test_a_file_that_a_rollback_took_in_again_stays(table) -> None:
    table.overwrite()
    table.overwrite()
    with Transaction.begin(table.timeline(), Action.ROLLBACK, Operation.ROLLBACK) as transaction:
        transaction.commit(Change(table.timeline().snapshot(0).files, schema_json='{"type":"struct","fields":[]}'))
    clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS)
    assert table.on_disk() == table.live()
    assert len(table.live()) == 1


def test_checkpoints_go_when_a_newer_one_serves_the_oldest_version(table) -> None:
    table.overwrite()
    for _ in range(35):
        table.append()
    clean(table.timeline(), 3, 0, table.now_ms + HOUR_MS)
    names = [file.path.rpartition("/")[2] for file in table.store.list(CHECKPOINT_FOLDER)]
    assert names == ["00000000000000000030.parquet", "_last"]
    assert len(table.timeline().snapshot(34).files) == 35


def test_foreign_files_are_orphans_and_stay(table) -> None:
    table.overwrite()
    for path in ("part-0.parquet", "k=1/part-1.parquet", "_temporary/x.parquet", ".hidden.parquet", "notes.txt"):
        table.store.put(path, b"x")
    clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS)
    assert [file.path for file in orphans(table.timeline())] == ["k=1/part-1.parquet", "part-0.parquet"]


def test_files_under_way_and_files_of_older_versions_are_no_orphans(table) -> None:
    table.overwrite()
    table.overwrite()
    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND) as transaction:
        table.write(transaction)
        assert orphans(table.timeline()) == []


def test_what_a_worker_left_after_its_writers_end_goes_when_asked(table) -> None:
    table.overwrite()
    dead = "20200101000000000"
    unfinished = f"{STAGING_FOLDER}/{scratch_name(dead, 'parquet')}"
    left = {data_file_path("", "0123456789abcdef", dead), f"{staging_folder(dead)}/rows/0.arrow", unfinished}
    for path in left:
        table.store.put(path, b"x")
    later_ms = max(file.modified_ms for file in table.store.list("", recursive=True)) + HOUR_MS
    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND) as transaction:
        under_way = f"{staging_folder(transaction.instant)}/0.arrow"
        table.store.put(under_way, b"x")
        assert clean(table.timeline(), 1, 0, later_ms).files == 0
        assert set(clean(table.timeline(), 1, 0, later_ms, orphans=True).paths) == left
        assert table.store.exists(under_way)
    assert not any(table.store.exists(path) for path in left)


def test_a_table_without_versions_has_nothing_to_clean(table) -> None:
    result = clean(table.timeline(), 1, 0, table.now_ms)
    assert (result.files, result.oldest_version) == (0, None)


def test_retaining_nothing_is_refused(table) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        clean(table.timeline(), 0, 0, table.now_ms)


def test_records_of_cleans_do_not_pile_up(table) -> None:
    for _ in range(15):
        table.overwrite()
        clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS)
    assert 1 <= len(table.store.list(CLEAN_FOLDER)) <= 10
    assert _oldest_whole(table) == 14


def test_files_that_a_rollback_takes_in_while_a_clean_looks_at_it_stay(table, monkeypatch) -> None:
    # The rollback begins before the clean writes down what goes, and commits between being seen and being read.
    table.overwrite(2)
    table.overwrite(1)
    begun: list[Transaction] = []
    create, plan = table.store.create, Pending.plan

    def begin_first(path: str, data: bytes) -> None:
        if path.startswith(CLEAN_FOLDER) and not begun:
            begun.append(Transaction.begin(table.timeline(), Action.ROLLBACK, Operation.ROLLBACK, reads_version=0))
        create(path, data)

    def commit_first(pending: Pending, store: Store) -> StateContent | None:
        if begun and begun[0].committed is None:
            begun[0].commit(Change(table.timeline().snapshot(0).files, schema_json='{"type":"struct","fields":[]}'))
        return plan(pending, store)

    monkeypatch.setattr(table.store, "create", begin_first)
    monkeypatch.setattr(Pending, "plan", commit_first)
    clean(table.timeline(), 1, 0, table.now_ms + 1)
    assert begun[0].committed is not None
    assert table.timeline().latest_version() == 2
    assert len(table.live()) == 2
    assert table.live() <= table.on_disk()


def test_an_insert_of_spark_since_the_version_before_is_noticed_once(table) -> None:
    table.overwrite()
    table.store.put("_SUCCESS", b"")  # of whoever wrote an adopted folder
    assert not spark_has_written(table.timeline(), 0)
    table.now_ms += 10 * 365 * 24 * HOUR_MS  # after the mark
    table.overwrite()
    assert spark_has_written(table.timeline(), 1)
    table.overwrite()
    assert not spark_has_written(table.timeline(), 2)
    table.store.delete(["_SUCCESS"])
    assert not spark_has_written(table.timeline(), 1)


def test_only_files_of_other_tools_are_foreign(table) -> None:
    table.overwrite()
    table.store.put("part-00000-c000.snappy.parquet", b"x")
    table.store.put(data_file_path("", "0123456789abcdef", "20240101000000000"), b"x")
    table.store.put("_SUCCESS", b"")
    table.store.put("README.zlayout.txt", b"x")
    assert [each.path for each in foreign_files(table.timeline())] == ["part-00000-c000.snappy.parquet"]
    assert len(orphans(table.timeline())) == 2
