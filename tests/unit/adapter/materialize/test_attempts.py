"""First attempts to write a table run side by side, repeated ones alone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dbt.adapters.zlayout.adapter.materialize import attempts as module
from dbt.adapters.zlayout.adapter.materialize.attempts import Attempts, attempts_at
from dbt.adapters.zlayout.adapter.materialize.materialization import until_committed
from dbt.adapters.zlayout.errors import CancelledError, ConflictError
from dbt.adapters.zlayout.spark.jobs.jobs import cancel_this_thread_by


def test_first_attempts_run_at_the_same_time() -> None:
    attempts, together = Attempts(), threading.Barrier(3, timeout=10)

    def attempt() -> None:
        with attempts.first(print):
            together.wait()

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(attempt) for _ in range(3)]:
            done.result()


def test_twenty_writers_of_one_file_conflict_once_each_at_most() -> None:
    attempts, lock = Attempts(), threading.Lock()
    version, runs = 0, []

    def write(number: int) -> int:
        nonlocal version
        runs.append(number)
        base = version
        threading.Event().wait(0.002)
        with lock:
            if version != base:
                raise ConflictError("another writer replaced the file")
            version = base + 1
        return number

    def written(number: int) -> int:
        return until_committed(lambda: write(number), lambda _: None, lambda: None, attempts)

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(written, range(20))) == list(range(20))
    assert version == 20
    assert max(map(runs.count, range(20))) == 2


def test_a_repeated_attempt_waits_for_first_ones_and_they_for_it() -> None:
    attempts, seen = Attempts(), []
    begun, ends = threading.Event(), threading.Event()

    def first() -> None:
        with attempts.first(print):
            begun.set()
            ends.wait(10)
            seen.append("first")

    def repeated() -> None:
        with attempts.repeated(print):
            seen.append("repeated")

    def later() -> None:
        with attempts.first(print):
            seen.append("later")

    with ThreadPoolExecutor(3) as pool:
        pool.submit(first)
        begun.wait(10)
        waiting = pool.submit(repeated)
        while not attempts._waiting:
            pass
        last = pool.submit(later)
        assert seen == []
        ends.set()
        waiting.result(10)
        last.result(10)
    assert seen == ["first", "repeated", "later"]


def test_a_writer_that_waits_can_be_cancelled() -> None:
    attempts, cancelled = Attempts(), threading.Event()

    def waits() -> None:
        cancel_this_thread_by(cancelled)
        try:
            with attempts.repeated(print):
                pass
        finally:
            cancel_this_thread_by(None)

    with ThreadPoolExecutor(1) as pool, attempts.first(print):
        waiting = pool.submit(waits)
        cancelled.set()
        with pytest.raises(CancelledError):
            waiting.result(10)
    with attempts.first(print), attempts.first(print):
        pass


def test_a_long_wait_says_how_long_it_takes(monkeypatch) -> None:
    monkeypatch.setattr(module, "_LOOK_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(module, "_SILENT_SECONDS", 0.05)
    attempts, told = Attempts(), []
    with ThreadPoolExecutor(1) as pool:
        with attempts.first(print):

            def waits() -> None:
                with attempts.repeated(told.append):
                    pass

            waiting = pool.submit(waits)
            while len(told) < 2:
                pass
        waiting.result(10)
    assert set(told) == {"waits for other batches of this run, 0 s"}


def test_names_of_one_table_share_their_attempts() -> None:
    assert attempts_at("main.Orders") is attempts_at("main.orders")
    assert attempts_at("main.orders") is not attempts_at("main.customers")
