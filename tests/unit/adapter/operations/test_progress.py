"""A run-operation says how far it is."""

from __future__ import annotations

import time

import pytest

from dbt.adapters.zlayout.adapter.operations import progress
from dbt.adapters.zlayout.adapter.operations.progress import with_progress


def test_lines_come_while_an_item_takes_long_and_end_with_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(progress, "_SILENT_SECONDS", 0.02)
    monkeypatch.setattr(progress._LOG, "info", lines.append)
    found = []
    for each in with_progress(["a", "b"], "advice", "table"):
        found.append(each)
        while not any(line.startswith(f"advice: {len(found) - 1} of 2 tables, ") for line in lines):
            time.sleep(0.001)
    told = len(lines)
    time.sleep(0.1)
    assert found == ["a", "b"]
    assert len(lines) <= told + 1


def test_quick_work_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(progress._LOG, "info", lines.append)
    assert list(with_progress(range(1000), "advice", "table")) == list(range(1000))
    assert lines == []
