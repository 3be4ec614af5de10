"""Clocks that are wrong, and writers that only their heartbeat shows to live."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.log.runtime import Runtime, Writer
from dbt.adapters.zlayout.timeline.retention.cleaning import clean, store_time_ms
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.pending import list_pending
from dbt.adapters.zlayout.timeline.transactions.recovery import Recovered, recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

HOUR_MS = 3_600_000
ELSEWHERE = Writer("elsewhere", "elsewhere 1", 7, "1")


def _append(table, timeline) -> str:
    with Transaction.begin(timeline, Action.COMMIT, Operation.APPEND) as transaction:
        transaction.commit(Change(table.write(transaction)))
    return transaction.instant


def _instants(table) -> list[str]:
    return [header.instant for header in reversed(table.timeline().history())]


@pytest.mark.parametrize("back_ms", [1, HOUR_MS, 24 * 365 * HOUR_MS])
def test_instants_rise_while_the_clock_is_set_back_again_and_again(table, back_ms) -> None:
    table.overwrite()
    for _ in range(5):
        table.now_ms -= back_ms
        table.append()
    instants = _instants(table)
    assert instants == sorted(set(instants))
    assert len(instants) == 6


def test_instants_rise_when_a_clock_stands_still(table) -> None:
    table.overwrite()
    still = table.now_ms + 10
    for _ in range(5):
        _append(table, table.timeline(now_ms=lambda: still))
    instants = _instants(table)
    assert instants == sorted(set(instants))


def test_a_version_is_dated_no_earlier_than_the_one_it_follows(table) -> None:
    first = table.overwrite()
    behind = table.timeline(now_ms=lambda: table._tick() - 72 * HOUR_MS)
    _append(table, behind)
    recovering = table.timeline(writer=ELSEWHERE)
    Transaction.begin(recovering, Action.COMMIT, Operation.APPEND)
    recover(table.timeline(now_ms=lambda: table._tick() - 72 * HOUR_MS, dead_after_seconds=-1e9))
    times = [header.committed_ms for header in reversed(table.timeline().history())]
    assert len(times) == 3
    assert times == sorted(times)
    assert times[0] == first.committed_ms


def _off(table, by_ms):
    return table.timeline(now_ms=lambda: table._tick() + by_ms)


@pytest.mark.parametrize("off_ms", [-72 * HOUR_MS, 0, 72 * HOUR_MS])
def test_what_was_current_a_moment_ago_is_kept_whatever_the_writers_clock_says(table, off_ms) -> None:
    table.overwrite()
    table.now_ms += 240 * HOUR_MS
    with Transaction.begin(_off(table, off_ms), Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        transaction.commit(Change(table.write(transaction), schema_json='{"type":"struct","fields":[]}'))
    table.now_ms += 1000
    assert clean(table.timeline(), 1, 24, table.now_ms).files == 0
    assert len(table.on_disk()) == 2
    assert clean(table.timeline(), 1, 24, table.now_ms + 25 * HOUR_MS).files == 1
    assert table.on_disk() == table.live()


def test_the_store_tells_its_own_time_and_keeps_nothing_of_the_question(table) -> None:
    before = time.time_ns() // 1_000_000
    told = store_time_ms(table.store)
    assert before - 1000 <= told <= time.time_ns() // 1_000_000 + 1000
    assert table.store.list("", recursive=True) == []


def test_two_writers_whose_clocks_differ_by_hours_take_rising_instants_in_turn(table) -> None:
    table.overwrite()
    behind = table.timeline(now_ms=lambda: table._tick() - 3 * HOUR_MS)
    ahead = table.timeline(now_ms=lambda: table._tick() + 3 * HOUR_MS)
    for _ in range(4):
        _append(table, behind)
        _append(table, ahead)
    instants = _instants(table)
    assert instants == sorted(set(instants))
    assert len(instants) == 9


def test_two_writers_whose_clocks_differ_take_different_instants_at_the_same_time(table) -> None:
    table.overwrite()
    ahead = Transaction.begin(table.timeline(now_ms=lambda: table._tick() + HOUR_MS), Action.COMMIT, Operation.APPEND)
    behind = Transaction.begin(table.timeline(), Action.REPLACECOMMIT, Operation.MERGE)
    assert behind.instant > ahead.instant
    behind.commit(Change(table.write(behind)))
    ahead.commit(Change(table.write(ahead)))
    # The log's order is that of the commits; what is highest so far never falls.
    highest = [header.last_instant for header in reversed(table.timeline().history())]
    assert highest == sorted(highest)
    assert _append(table, table.timeline()) > behind.instant


def test_a_threads_race_with_clocks_that_jump_gives_every_instant_once(table) -> None:
    table.overwrite()
    failures: list[BaseException] = []

    def run(jump_ms: int) -> None:
        try:
            for turn in range(4):
                offset_ms = jump_ms * (-1) ** turn
                _append(table, table.timeline(now_ms=lambda by=offset_ms: table._tick() + by))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(jump_ms,)) for jump_ms in (0, 7, HOUR_MS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    instants = _instants(table)
    assert len(set(instants)) == len(instants) == 13
    assert table.live() == table.on_disk()


def test_heartbeat_and_time_to_be_taken_for_dead_are_the_callers_choice(table) -> None:
    assert (Runtime().heartbeat_seconds, Runtime().dead_after_seconds) == (60, 600)
    table.overwrite()
    lost = Transaction.begin(table.timeline(writer=ELSEWHERE), Action.COMMIT, Operation.APPEND)
    (pending,) = list_pending(table.store)
    later = {"now_ms": lambda: pending.modified_ms + 30_000}
    assert recover(table.timeline(**later)) == Recovered()
    assert recover(table.timeline(**later, dead_after_seconds=31.0)) == Recovered()
    assert recover(table.timeline(**later, dead_after_seconds=29.0)).rolled_back == (lost.instant,)


def test_a_writer_elsewhere_lives_for_hours_by_its_heartbeat_alone(table) -> None:
    table.overwrite()
    table.now_ms = time.time_ns() // 1_000_000
    slow = table.timeline(writer=ELSEWHERE, heartbeat_seconds=0.005)
    with Transaction.begin(slow, Action.COMMIT, Operation.APPEND) as transaction:
        files = table.write(transaction)
        for _ in range(6):
            table.now_ms += HOUR_MS
            _wait_for_a_beat(table, table.now_ms)
            assert recover(table.timeline()) == Recovered()
        assert transaction.commit(Change(files)).version == 1
    assert table.live() == table.on_disk()


def _wait_for_a_beat(table, since_ms: int) -> None:
    for _ in range(1000):
        (pending,) = list_pending(table.store)
        plan = pending.plan(table.store)
        if plan is not None and plan.heartbeat_ms >= since_ms:
            return
        time.sleep(0.005)
    pytest.fail("no heartbeat")


def test_a_writer_elsewhere_whose_own_clock_is_far_behind_is_not_taken_for_dead(table) -> None:
    table.overwrite()
    now_ms = time.time_ns() // 1_000_000
    slow = Transaction.begin(
        table.timeline(writer=ELSEWHERE, now_ms=lambda: now_ms - 5 * HOUR_MS), Action.COMMIT, Operation.APPEND
    )
    assert recover(table.timeline(now_ms=lambda: now_ms)) == Recovered()
    slow.rollback()


def test_on_the_same_machine_silence_proves_nothing_where_the_process_lives(table) -> None:
    table.overwrite()
    table.now_ms = time.time_ns() // 1_000_000
    here = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    files = table.write(here)
    table.now_ms += 24 * HOUR_MS
    assert recover(table.timeline()) == Recovered()
    assert here.commit(Change(files)).version == 1


def test_a_process_of_another_container_is_judged_by_its_silence_not_by_its_id(table) -> None:
    # The same process id means another process there: neither its life nor its death can be seen from here.
    table.overwrite()
    there = replace(Writer.current(), machine="another namespace", started="1")
    lost = Transaction.begin(table.timeline(writer=there), Action.COMMIT, Operation.APPEND)
    assert recover(table.timeline()) == Recovered()
    (pending,) = list_pending(table.store)
    assert recover(table.timeline(now_ms=lambda: pending.modified_ms + 601_000)).rolled_back == (lost.instant,)
