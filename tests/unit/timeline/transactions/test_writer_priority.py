"""Writer priority: a user write waits for every maintenance that is about to commit, and for no dead one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.zlayout.timeline.files.action import Action, State
from dbt.adapters.zlayout.timeline.log.runtime import Writer
from dbt.adapters.zlayout.timeline.transactions.pending import Plan, list_state_files, state_path
from dbt.adapters.zlayout.timeline.transactions.writer_priority import wait_for_maintenance

LIVE = Writer("other", "another machine", 1, "now")
DEAD = replace(Writer.current(), started="before the last boot")


@pytest.mark.parametrize(
    ("writers", "waits"), [((), False), ((DEAD,), False), ((LIVE,), True), ((DEAD, LIVE), True), ((LIVE, DEAD), True)]
)
def test_a_user_write_waits_while_a_live_maintenance_is_about_to_commit(table, writers, waits) -> None:
    for number, writer in enumerate(writers):
        path = state_path(f"2024010100000000{number}", Action.REPLACECOMMIT, State.INFLIGHT)
        table.store.create(path, Plan("clustering", 0, writer, 0, committing=True).to_json())
    pauses: list[float] = []
    timeline = table.timeline(sleep=pauses.append)
    wait_for_maintenance(timeline, "20240101000000009", list_state_files(table.store))
    assert bool(pauses) is waits
