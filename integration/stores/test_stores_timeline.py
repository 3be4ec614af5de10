"""Whole timelines on every store, by threads and by processes: no gap, nothing lost, and recovery behind the dead."""

import os
import subprocess
import sys
from pathlib import Path

from store_contract import together
from writer_process import append, written

from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.naming import TIMELINE_FOLDER
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.recovery import recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

PROGRAM = Path(__file__).with_name("writer_process.py")
ROUNDS = 40
COMMITS = 6


def _processes(work, location, names, count):
    """Lets one process a name do the work, all at once; returns the words that each printed."""
    started = [
        subprocess.Popen(
            [sys.executable, PROGRAM, work, location, name, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        for name in names
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    return [process.communicate(timeout=120)[0].split() for process in started]


def _begun(store):
    """A table with one version."""
    assert append(store, "first", 1) == [0]


def _check_whole(store, versions):
    timeline = Timeline(store)
    assert sorted(versions) == list(range(1, len(versions) + 1))
    assert timeline.latest_version() == len(versions)
    assert [header.version for header in reversed(timeline.history())] == list(range(len(versions) + 1))
    paths = timeline.snapshot().files["path"].to_pylist()
    assert len(set(paths)) == len(versions) + 1
    assert set(paths) == {file.path for file in store.list("")}
    assert store.list(TIMELINE_FOLDER) == []


def test_of_several_processes_one_creates_each_file(store, location):
    names = ["1", "2"]
    answers = _processes("create", location, names, ROUNDS)
    assert sorted(int(version) for won in answers for version in won) == list(range(ROUNDS))
    for name, won in zip(names, answers, strict=True):
        assert all(store.read(f"log/{version}") == name.encode() * 10_000 for version in won)


def test_two_threads_append_without_a_gap(store, location):
    _begun(store)
    versions = []
    # A store each, as two sessions have.
    stores = [open_store(location) for _ in range(2)]
    together([lambda each=each: versions.extend(append(each, "thread", COMMITS)) for each in stores])
    _check_whole(store, versions)


def test_two_processes_append_without_a_gap(store, location):
    _begun(store)
    answers = _processes("append", location, ["one", "two"], COMMITS)
    assert [len(answer) for answer in answers] == [COMMITS, COMMITS]
    _check_whole(store, [int(version) for answer in answers for version in answer])


def test_what_a_dead_process_left_is_rolled_back_by_the_next_writer(store, location):
    _begun(store)
    ((instant,),) = _processes("die", location, ["dead"], 1)
    left = [file.path for file in store.list("", recursive=True) if instant in file.path]
    assert len(left) == 3  # requested, inflight, one data file
    assert recover(Timeline(store)).rolled_back == (instant,)
    assert [path for path in left if store.exists(path)] == []
    (version,) = append(store, "next", 1)
    snapshot = Timeline(store).snapshot()
    assert snapshot.version == version
    assert sorted(store.read(path) for path in snapshot.files["path"].to_pylist()) == [b"first", b"next"]


def test_an_error_in_a_transaction_leaves_nothing(store):
    _begun(store)
    before = store.list("", recursive=True)
    transaction = Transaction.begin(Timeline(store), Action.COMMIT, Operation.APPEND)
    written(transaction, store, "x")
    transaction.rollback()
    assert store.list("", recursive=True) == before


def test_a_timeline_opens_from_its_checkpoint(store):
    _begun(store)
    append(store, "more", 21)
    timeline = Timeline(store)
    assert timeline.latest_version() == 21
    assert len(timeline.snapshot().files) == 22
    assert len(timeline.snapshot(3).files) == 4
