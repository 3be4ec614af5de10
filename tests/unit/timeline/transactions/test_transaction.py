"""Transactions: what they leave behind, how they fail, how they race."""

from __future__ import annotations

import os
import threading

import pytest

from dbt.adapters.zlayout.errors import AlreadyExistsError, ConflictError, StoreError
from dbt.adapters.zlayout.index.slice_writing import slice_path
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.naming import LOG_FOLDER, TIMELINE_FOLDER, log_path
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.pending import list_pending
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

ONE, TWO = ".zlayout/index/one", ".zlayout/index/two"


def test_state_files_show_work_under_way_and_go_when_it_is_done(table) -> None:
    with Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        names = [file.path.rpartition("/")[2] for file in table.store.list(TIMELINE_FOLDER)]
        assert names == [f"{transaction.instant}.replacecommit.{state}" for state in ("inflight", "requested")]
        (pending,) = list_pending(table.store)
        plan = pending.plan(table.store)
        assert (plan.operation, plan.base_version, plan.writer.pid) == ("overwrite", None, os.getpid())
        transaction.commit(Change(table.write(transaction), schema_json='{"type":"struct","fields":[]}'))
    assert table.store.list(TIMELINE_FOLDER) == []


def test_an_error_leaves_nothing_behind(table) -> None:
    table.overwrite()
    before = table.on_disk()

    def fail() -> None:
        with Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
            table.write(transaction, 3)
            table.store.put(slice_path("files", transaction.instant, b"slice"), b"x")
            table.store.put(f".zlayout/staging/{transaction.instant}/part", b"x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert table.on_disk() == before
    assert [file.path for file in table.store.list(".zlayout", recursive=True)] == [log_path(0)]


def test_leaving_without_a_commit_rolls_back(table) -> None:
    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND) as transaction:
        table.write(transaction)
    assert table.on_disk() == set()
    assert list_pending(table.store) == []


def test_the_same_instant_is_never_taken_twice(table) -> None:
    timelines = [table.timeline(now_ms=lambda: 1_700_000_000_000) for _ in range(6)]
    start = threading.Barrier(len(timelines))
    instants: list[str] = []

    def begin(timeline) -> None:
        start.wait()
        actions = [Action.COMMIT, Action.REPLACECOMMIT]
        instants.append(Transaction.begin(timeline, actions[timelines.index(timeline) % 2], Operation.APPEND).instant)

    threads = [threading.Thread(target=begin, args=(timeline,)) for timeline in timelines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(instants)) == len(timelines)


def test_two_appends_both_land(table) -> None:
    table.overwrite()
    one = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    two = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    assert two.commit(Change(table.write(two))).version == 1
    assert one.commit(Change(table.write(one))).version == 2
    assert table.live() == table.on_disk()
    assert len(table.live()) == 3


@pytest.mark.parametrize(("writers", "appends"), [(4, 5), pytest.param(8, 25, marks=pytest.mark.exhaustive)])
def test_appends_from_many_threads_all_land(table, writers, appends) -> None:
    table.overwrite()
    failures: list[BaseException] = []

    def append() -> None:
        try:
            for _ in range(appends):
                table.append()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=append) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert table.timeline().latest_version() == writers * appends
    assert len(table.live()) == writers * appends + 1
    assert table.live() == table.on_disk()


def test_the_later_of_two_overwrites_fails_and_names_the_other(table) -> None:
    table.overwrite()
    one = Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE)
    two = Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE)
    two.commit(Change(table.write(two), schema_json='{"type":"struct","fields":[]}'))
    with pytest.raises(ConflictError, match=f"{two.instant}.*replacecommit.*version 1.*run the model again"), one:
        one.commit(Change(table.write(one), schema_json='{"type":"struct","fields":[]}'))
    assert table.live() == {path for path in table.on_disk() if two.instant in path}
    assert not [path for path in table.on_disk() if one.instant in path]


def test_of_two_first_commits_one_fails(table) -> None:
    one = Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE)
    two = Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE)
    two.commit(Change(table.write(two), schema_json='{"type":"struct","fields":[]}'))
    with pytest.raises(ConflictError, match="created the table first"), one:
        one.commit(Change(table.write(one), schema_json='{"type":"struct","fields":[]}'))
    assert table.live() == table.on_disk()


def test_an_overwrite_follows_a_clustering_and_replaces_its_files(table) -> None:
    (old,) = table.overwrite().adds["path"].to_pylist()
    overwrite = Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE)
    table.store.delete([path.path for path in table.store.list(TIMELINE_FOLDER)])  # as if it had begun in between
    with Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.CLUSTERING) as clustering:
        clustering.commit(Change(table.write(clustering), removes=(old,)))
    entry = overwrite.commit(Change(table.write(overwrite), schema_json='{"type":"struct","fields":[]}'))
    assert entry.version == 2
    assert table.live() == set(entry.adds["path"].to_pylist())


def test_clustering_gives_way_to_a_merge_under_way(table) -> None:
    (old,) = table.overwrite().adds["path"].to_pylist()
    merge = Transaction.begin(table.timeline(), Action.COMMIT, Operation.MERGE)
    with (
        pytest.raises(ConflictError, match=f"gives way to merge {merge.instant}"),
        Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.CLUSTERING) as clustering,
    ):
        clustering.commit(Change(table.write(clustering), removes=(old,)))
    merge.commit(Change(table.write(merge), removes=(old,)))
    assert table.live() == table.on_disk() - {old}


def test_clustering_whose_input_was_merged_gives_way_and_loses_no_row(table) -> None:
    old, other = table.overwrite(2).adds["path"].to_pylist()
    clustering = Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.CLUSTERING)
    merged = table.merge([old])
    with pytest.raises(ConflictError, match=r"replaced .* too"), clustering:
        clustering.commit(Change(table.write(clustering), removes=(old, other)))
    assert table.live() == {other, *merged.adds["path"].to_pylist()}


def test_a_request_reported_lost_that_had_landed_is_a_commit(table, monkeypatch) -> None:
    # A client that repeats a request after a time-out is told that the file exists: it is its own.
    table.overwrite()
    create = table.store.create

    def twice(path, data) -> None:
        create(path, data)
        if path.startswith(LOG_FOLDER):
            raise AlreadyExistsError(path)

    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND) as transaction:
        files = table.write(transaction)
        monkeypatch.setattr(table.store, "create", twice)
        assert transaction.commit(Change(files)).version == 1
    assert table.timeline().latest_version() == 1
    assert table.live() == table.on_disk()


def test_an_error_after_the_entry_landed_is_no_failure(table, monkeypatch) -> None:
    table.overwrite()
    create = table.store.create

    def broken(path, data) -> None:
        create(path, data)
        if path.startswith(LOG_FOLDER):
            raise StoreError("connection reset")

    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND) as transaction:
        files = table.write(transaction)
        monkeypatch.setattr(table.store, "create", broken)
        assert transaction.commit(Change(files)).version == 1
    assert table.live() == table.on_disk()


def test_an_error_before_the_entry_landed_rolls_back(table, monkeypatch) -> None:
    table.overwrite()
    create = table.store.create

    def broken(path, data) -> None:
        if path.startswith(LOG_FOLDER):
            raise StoreError("disk full")
        create(path, data)

    transaction = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    files = table.write(transaction)
    monkeypatch.setattr(table.store, "create", broken)
    with pytest.raises(StoreError, match="disk full"), transaction:
        transaction.commit(Change(files))
    assert table.timeline().latest_version() == 0
    assert table.live() == table.on_disk()
    assert list_pending(table.store) == []


def test_index_slices_of_two_appends_are_both_live_and_partition_slices_go(table) -> None:
    table.overwrite()
    one = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    two = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    two.commit(Change(table.write(two)), index={"files": (TWO,), "partition_stats": (TWO,)})
    entry = one.commit(Change(table.write(one)), index={"files": (ONE,), "partition_stats": (ONE,)})
    assert entry.index == {"files": (TWO, ONE)}


def test_an_index_function_sees_the_version_that_is_followed(table) -> None:
    table.overwrite()
    one = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    table.append()
    seen: list[int] = []

    def index(head):
        seen.append(head.version)
        return {"files": (f".zlayout/index/{head.version}",)}

    assert one.commit(Change(table.write(one)), index=index).index == {"files": (".zlayout/index/1",)}
    assert seen == [0, 1]


def test_a_layout_function_sees_the_version_that_is_followed(table) -> None:
    table.overwrite()
    change = Transaction.begin(table.timeline(), Action.INDEXING, Operation.INDEXING)
    with Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE) as other:
        other.commit(Change(table.write(other), schema_json='{"type":"struct","fields":[]}', layout={"zorder": ["a"]}))
    entry = change.commit(Change(DataFiles.empty(), layout=lambda head: {**head.layout, "more": 1}))
    assert entry.layout == {"zorder": ["a"], "more": 1}


def test_a_change_without_files_follows_another_partitioning(table) -> None:
    table.overwrite()
    change = Transaction.begin(table.timeline(), Action.INDEXING, Operation.INDEXING)
    with Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE) as other:
        other.commit(
            Change(DataFiles.empty(["day"]), schema_json='{"type":"struct","fields":[]}', partition_by=("day",))
        )
    assert change.commit(Change(DataFiles.empty(), layout={})).partition_by == ("day",)
    assert table.timeline().snapshot().files.partition_by == ("day",)


def test_an_append_without_slices_drops_what_was_said_of_whole_partitions(table) -> None:
    with Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        slices = {"files": (ONE,), "partition_stats": (TWO,)}
        transaction.commit(Change(table.write(transaction), schema_json='{"type":"struct","fields":[]}'), index=slices)
    assert table.append().index == {"files": (ONE,)}


def test_a_heartbeat_rewrites_the_inflight_file(table) -> None:
    timeline = table.timeline(heartbeat_seconds=0.01)
    with Transaction.begin(timeline, Action.COMMIT, Operation.APPEND) as transaction:
        (pending,) = list_pending(table.store)
        first = pending.plan(table.store).heartbeat_ms
        beaten = threading.Event()
        for _ in range(500):
            if pending.plan(table.store).heartbeat_ms > first:
                break
            beaten.wait(0.01)
        else:
            pytest.fail("the heartbeat did not change the inflight file")
        transaction.rollback()
    assert list_pending(table.store) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "zlayout-heartbeat"]
