"""Dead writers: who is taken for dead, and what is left of their work."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import obstore.store
import pytest

from dbt.adapters.zlayout.errors import AlreadyExistsError, ConflictError, StoreError
from dbt.adapters.zlayout.index.slice_writing import slice_path
from dbt.adapters.zlayout.store.cloud import CloudStore
from dbt.adapters.zlayout.store.protocol import Store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation, State
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.instant import instant_ms
from dbt.adapters.zlayout.timeline.files.naming import (
    LOG_FOLDER,
    TIMELINE_FOLDER,
    curve_path,
    data_file_path,
    log_path,
)
from dbt.adapters.zlayout.timeline.log.runtime import Runtime, Writer, process_start
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.pending import Pending, StateContent, list_pending, state_path
from dbt.adapters.zlayout.timeline.transactions.recovery import Recovered, delete_written, recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

ELSEWHERE = Writer("elsewhere", "elsewhere 1", 7, "1")


@pytest.fixture
def dead_writer() -> Writer:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    writer = replace(Writer.current(), pid=process.pid, started=process_start(process.pid))
    assert writer.lives(Writer.current())
    process.communicate(b"\n")
    return writer


def test_a_live_process_is_not_gone_and_one_with_a_reused_id_is() -> None:
    here = Writer.current()
    assert here.lives(here) is True
    assert replace(here, started="1").lives(here) is False
    assert ELSEWHERE.lives(here) is None


def test_what_a_dead_process_wrote_is_deleted_by_the_next_writer(table, dead_writer) -> None:
    table.overwrite()
    before = table.on_disk()
    lost = Transaction.begin(table.timeline(writer=dead_writer), Action.COMMIT, Operation.APPEND)
    table.write(lost, 2)
    table.store.put(slice_path("column_stats", lost.instant, b"slice"), b"x")
    table.store.put(curve_path(lost.instant), b"x")
    table.store.put(f".zlayout/staging/{lost.instant}/0", b"x")
    assert table.append().version == 1
    assert table.on_disk() == table.live()
    assert before < table.on_disk()
    assert not [file.path for file in table.store.list("", recursive=True) if lost.instant in file.path]


def test_a_reader_touches_nothing(table, dead_writer) -> None:
    table.overwrite()
    lost = Transaction.begin(table.timeline(writer=dead_writer), Action.COMMIT, Operation.APPEND)
    table.write(lost)
    before = table.store.list("", recursive=True)
    table.timeline().snapshot()
    table.timeline().history()
    assert table.store.list("", recursive=True) == before


def test_a_live_transaction_is_left_alone(table) -> None:
    table.overwrite()
    one = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    files = table.write(one)
    assert recover(table.timeline()) == Recovered()
    assert one.commit(Change(files)).version == 1


def test_a_transaction_that_this_process_lost_is_rolled_back(table) -> None:
    # A thread that died, or a rollback that failed: the process lives, the transaction is closed.
    table.overwrite()
    lost = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    table.write(lost)
    lost._close()
    assert recover(table.timeline()).rolled_back == (lost.instant,)
    assert table.on_disk() == table.live()


def test_a_committed_transaction_only_loses_its_state_files(table, dead_writer) -> None:
    table.overwrite()
    timeline = table.timeline(writer=dead_writer)
    done = Transaction.begin(timeline, Action.COMMIT, Operation.APPEND)
    left = {path: table.store.read(path) for found in list_pending(table.store) for path in found.paths}
    done.commit(Change(table.write(done)))
    for path, content in left.items():
        table.store.put(path, content)
    assert recover(table.timeline()) == Recovered(finished=(done.instant,))
    assert table.store.list(TIMELINE_FOLDER) == []
    assert table.timeline().latest_version() == 1
    assert table.on_disk() == table.live()


def test_a_silent_writer_elsewhere_counts_as_dead_only_after_the_time(table) -> None:
    table.overwrite()
    lost = Transaction.begin(table.timeline(writer=ELSEWHERE), Action.COMMIT, Operation.APPEND)
    table.write(lost)
    (pending,) = list_pending(table.store)
    now_ms = pending.modified_ms
    assert recover(table.timeline(now_ms=lambda: now_ms + 599_000)) == Recovered()
    assert recover(table.timeline(now_ms=lambda: now_ms + 599_000, dead_after_seconds=1)).rolled_back == (lost.instant,)
    assert table.on_disk() == table.live()


def test_a_writer_that_was_rolled_back_while_it_slept_cannot_commit(table) -> None:
    table.overwrite()
    sleeper = Transaction.begin(table.timeline(writer=ELSEWHERE), Action.COMMIT, Operation.APPEND)
    files = table.write(sleeper)
    (pending,) = list_pending(table.store)
    late = table.timeline(now_ms=lambda: pending.modified_ms + 601_000)
    assert recover(late).rolled_back == (sleeper.instant,)
    with pytest.raises(ConflictError, match="considered it dead"), sleeper:
        sleeper.commit(Change(files))
    assert table.on_disk() == table.live()
    assert [header.operation for header in table.timeline().history()] == ["recovery", "overwrite"]
    assert table.append().version == 2


def test_a_damaged_state_file_is_judged_by_its_age(table) -> None:
    table.overwrite()
    path = state_path("20200101000000000", Action.COMMIT, State.INFLIGHT)
    table.store.put(path, b"garbage")
    written_ms = table.store.stat(path).modified_ms
    assert recover(table.timeline(now_ms=lambda: written_ms)) == Recovered()
    assert recover(table.timeline(now_ms=lambda: written_ms + 601_000)).rolled_back == ("20200101000000000",)
    assert list_pending(table.store) == []


def test_recovery_twice_is_recovery_once(table, dead_writer) -> None:
    table.overwrite()
    lost = Transaction.begin(table.timeline(writer=dead_writer), Action.COMMIT, Operation.APPEND)
    table.write(lost)
    assert recover(table.timeline()).rolled_back == (lost.instant,)
    state = table.store.list("", recursive=True)
    assert recover(table.timeline()) == Recovered()
    assert table.store.list("", recursive=True) == state


def test_in_a_cloud_a_request_of_a_dead_writer_that_arrives_late_finds_its_version_taken(dead_writer) -> None:
    store = CloudStore("s3://bucket/t", obstore.store.MemoryStore())
    runtime = Runtime(heartbeat_seconds=None)
    timeline = Timeline(store, runtime)
    with Transaction.begin(timeline, Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        transaction.commit(Change(DataFiles.empty(), schema_json='{"type":"struct","fields":[]}'))
    lost = Transaction.begin(Timeline(store, replace(runtime, writer=dead_writer)), Action.COMMIT, Operation.APPEND)
    store.put(data_file_path("", "0" * 16, lost.instant), b"x")
    assert recover(timeline).rolled_back == (lost.instant,)
    assert timeline.latest_version() == 1
    assert timeline.read(1).aborts == lost.instant
    with pytest.raises(AlreadyExistsError):
        store.create(log_path(1), b"the late request")
    assert [file.path for file in store.list("")] == []


def test_a_cloud_error_of_unknown_outcome_is_settled_in_the_log(monkeypatch) -> None:
    store = CloudStore("s3://bucket/t", obstore.store.MemoryStore())
    timeline = Timeline(store, Runtime(heartbeat_seconds=None))
    with Transaction.begin(timeline, Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        transaction.commit(Change(DataFiles.empty(), schema_json='{"type":"struct","fields":[]}'))
    create = store.create
    lost: list[bytes] = []

    def time_out_once(path, data) -> None:
        if path.startswith(LOG_FOLDER) and not lost:
            lost.append(data)
            raise StoreError("timed out")
        create(path, data)

    monkeypatch.setattr(store, "create", time_out_once)
    with (
        pytest.raises(StoreError, match="timed out"),
        Transaction.begin(timeline, Action.COMMIT, Operation.APPEND) as transaction,
    ):
        transaction.commit(Change(DataFiles.empty()))
    with pytest.raises(AlreadyExistsError):
        create(log_path(1), lost[0])
    assert timeline.read(1).aborts == transaction.instant
    assert list_pending(store) == []


def test_the_instant_of_a_dead_writer_is_not_taken_again_by_a_clock_behind(table, dead_writer) -> None:
    # A second writer may still be deleting what the dead one wrote: files under the same instant would go with it.
    table.overwrite()
    table.now_ms += 60_000
    lost = Transaction.begin(table.timeline(writer=dead_writer), Action.COMMIT, Operation.APPEND)
    table.write(lost)
    recover(table.timeline())
    abandoned = state_path(lost.instant, Action.COMMIT, State.ABANDONED)
    assert [file.path for file in table.store.list(TIMELINE_FOLDER)] == [abandoned]
    then = table.timeline(now_ms=lambda: instant_ms(lost.instant))
    with Transaction.begin(then, Action.COMMIT, Operation.APPEND) as next_one:
        assert next_one.instant > lost.instant
        delete_written(table.timeline(), [lost.instant])
        next_one.commit(Change(table.write(next_one)))
    assert table.live() == table.on_disk()
    assert table.store.list(TIMELINE_FOLDER) == []


def test_a_thread_that_looks_at_a_transaction_of_another_while_it_ends_leaves_it_alone(table, monkeypatch) -> None:
    # It has read the state file when the other rolls back, and judges it afterwards: the instant is free again by then.
    table.overwrite()
    ending = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    table.write(ending)
    plan = Pending.plan

    def ends_after(pending: Pending, store: Store) -> StateContent | None:
        found = plan(pending, store)
        ending.rollback()
        return found

    monkeypatch.setattr(Pending, "plan", ends_after)
    assert recover(table.timeline()) == Recovered()
    assert table.store.list(TIMELINE_FOLDER) == []


def test_a_dead_rival_for_an_instant_does_not_take_its_holder_along(table, dead_writer) -> None:
    # It died between its requested file and seeing that the instant was taken.
    table.overwrite()
    holder = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    files = table.write(holder)
    plan = StateContent("overwrite", 0, dead_writer, table.now_ms)
    table.store.create(state_path(holder.instant, Action.REPLACECOMMIT, State.REQUESTED), plan.to_json())
    assert recover(table.timeline()) == Recovered()
    holder.commit(Change(files))
    assert recover(table.timeline()).finished == (holder.instant,)
    assert table.live() == table.on_disk()
    assert list_pending(table.store) == []
