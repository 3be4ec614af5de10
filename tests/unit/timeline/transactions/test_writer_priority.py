"""Writer priority: a user write waits for every maintenance that is about to commit, and for no dead one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.zlayout.errors import CancelledError
from dbt.adapters.zlayout.timeline.files.action import Action, State
from dbt.adapters.zlayout.timeline.log.runtime import Writer
from dbt.adapters.zlayout.timeline.transactions.pending import StateContent, list_state_files, state_path
from dbt.adapters.zlayout.timeline.transactions.writer_priority import wait_for_maintenance, wait_for_writers

LIVE = Writer("other", "another machine", 1, "now")
DEAD = replace(Writer.current(), started="before the last boot")


@pytest.mark.parametrize(
    ("writers", "waits"), [((), False), ((DEAD,), False), ((LIVE,), True), ((DEAD, LIVE), True), ((LIVE, DEAD), True)]
)
def test_a_user_write_waits_while_a_live_maintenance_is_about_to_commit(table, writers, waits) -> None:
    for number, writer in enumerate(writers):
        path = state_path(f"2024010100000000{number}", Action.REPLACECOMMIT, State.INFLIGHT)
        table.store.create(path, StateContent("clustering", 0, writer, 0, committing=True).to_json())
    pauses: list[float] = []
    timeline = table.timeline(sleep=pauses.append)
    wait_for_maintenance(timeline, "20240101000000009", list_state_files(table.store))
    assert bool(pauses) is waits


@pytest.mark.parametrize(
    ("mine", "theirs", "writer", "waits"),
    [
        ("merge", "merge", LIVE, True),
        ("merge", "overwrite", LIVE, True),
        ("merge", "append", LIVE, False),
        ("append", "overwrite", LIVE, False),
        ("overwrite", "append", LIVE, True),
        ("overwrite", "clustering", LIVE, False),
        ("overwrite", "merge", DEAD, False),
    ],
)
def test_a_write_waits_for_live_writes_that_it_would_conflict_with(table, mine, theirs, writer, waits) -> None:
    path = state_path("20240101000000000", Action.COMMIT, State.INFLIGHT)
    table.store.create(path, StateContent(theirs, 0, writer, 0).to_json())
    told: list[str] = []
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            table.store.delete([path])

    wait_for_writers(table.timeline(sleep=sleep), mine, told.append)
    assert len(pauses) == (3 if waits else 0)
    line = f"waits for the {theirs} 20240101000000000 of process 1 on other, which is writing this table"
    assert told == ([line] if waits else [])


def test_a_long_wait_says_how_long_it_takes(table) -> None:
    path = state_path("20240101000000000", Action.COMMIT, State.INFLIGHT)
    table.store.create(path, StateContent("merge", 0, LIVE, 0).to_json())
    told: list[str] = []
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        table.now_ms += int(seconds * 1000)
        if sum(pauses) > 25:
            table.store.delete([path])

    wait_for_writers(table.timeline(sleep=sleep), "merge", told.append)
    what = "waits for the merge 20240101000000000 of process 1 on other"
    assert told == [f"{what}, which is writing this table", f"still {what}, 10 s", f"still {what}, 20 s"]


def test_a_wait_ends_when_the_run_is_cancelled(table) -> None:
    path = state_path("20240101000000000", Action.COMMIT, State.INFLIGHT)
    table.store.create(path, StateContent("merge", 0, LIVE, 0).to_json())
    pauses: list[float] = []

    def check() -> None:
        if len(pauses) == 3:
            raise CancelledError

    with pytest.raises(CancelledError):
        wait_for_writers(table.timeline(sleep=pauses.append), "merge", lambda _: None, check)
    assert len(pauses) == 3
