"""The pool for the groups of all batches: concurrency, order of commits, failures, early end."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest

from dbt.adapters.zlayout.spark.cluster.group_writer import Batch, ended_batches


class Transaction:
    """Stands for the timeline's; counts what is rolled back."""

    def __init__(self) -> None:
        self.rolled_back = 0

    def rollback(self) -> None:
        self.rolled_back += 1


def batch(*groups: str) -> Any:
    given: Any = groups
    transaction: Any = Transaction()
    return Batch(given, transaction)


def test_at_once_limits_running_groups_across_batches() -> None:
    at_work = threading.Barrier(4, timeout=10)

    def write(cut: Any, transaction: Any) -> Any:
        at_work.wait()
        return ()

    assert len(list(ended_batches(write, [batch(str(number)) for number in range(8)], 4))) == 8


def test_a_batch_is_yielded_when_it_ends_while_others_are_written() -> None:
    goes_on = threading.Event()

    def write(cut: Any, transaction: Any) -> Any:
        assert cut != "slow" or goes_on.wait(10)
        return ()

    with closing(ended_batches(write, [batch("slow"), batch("a", "b"), batch("c")], 2)) as ended:
        assert {next(ended).groups, next(ended).groups} == {("a", "b"), ("c",)}
        goes_on.set()
        assert [each.groups for each in ended] == [("slow",)]


def test_a_failing_group_is_reported_and_does_not_stop_the_others() -> None:
    def write(cut: Any, transaction: Any) -> Any:
        if cut == "bad":
            raise ValueError(cut)
        return (cut,)

    # Groups that end between two looks are seen in any order.
    found = {each.groups: each for each in ended_batches(write, [batch("a", "bad"), batch("bad"), batch("b")], 1)}
    assert {groups: [cut for cut, _ in each.written] for groups, each in found.items()} == {
        ("a", "bad"): ["a"],
        ("bad",): [],
        ("b",): ["b"],
    }
    assert {groups: [(cut, str(error)) for cut, error in each.failed] for groups, each in found.items()} == {
        ("a", "bad"): [("bad", "bad")],
        ("bad",): [("bad", "bad")],
        ("b",): [],
    }


def test_a_batch_is_requested_when_the_pool_runs_low() -> None:
    begun: list[int] = []
    goes_on = threading.Event()

    def write(cut: Any, transaction: Any) -> Any:
        assert goes_on.wait(10)
        return ()

    def batches() -> Any:
        for number in range(100):
            begun.append(number)
            if number == 3:
                goes_on.set()
            yield batch(str(number))

    with closing(ended_batches(write, batches(), 2)) as ended:
        next(ended)
        assert len(begun) <= 6


def test_batches_that_were_not_yielded_are_rolled_back_on_close() -> None:
    batches = [batch("a"), batch("b"), batch("c")]
    with closing(ended_batches(lambda cut, transaction: (), batches, 1)) as ended:
        first = next(ended)
    # The third had not begun.
    assert [each.transaction.rolled_back for each in batches] == [*(int(each is not first) for each in batches[:2]), 0]


def test_an_interruption_stops_the_pool() -> None:
    batches = [batch("a"), batch("b")]

    def write(cut: Any, transaction: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(ended_batches(write, batches, 1))
    assert all(each.transaction.rolled_back for each in batches)
