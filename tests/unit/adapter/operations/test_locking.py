"""A lock is text for git, and a check says in a sentence what reads more and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.operations import locking
from dbt.adapters.zlayout.adapter.operations.locking import (
    Lock,
    LockedCondition,
    LockedTable,
    Regression,
    _within,
    check_text,
    read_lock,
)
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.table.explanation import ConditionReads

_NO_SESSION: Any = None
CONDITION = LockedCondition("customer_id = 7", 0.1, 4, 40)
LAYOUT = {"zorder": ("customer_id",), "partition_by": (), "bloom": (), "lookup": ("id",), "stats_expressions": ()}
TABLE = LockedTable(LAYOUT, (CONDITION,))


def reads(files: int, total: int) -> ConditionReads:
    return ConditionReads("customer_id = 7", files, total, files * 100, total * 100, files * 10, ())


def test_a_lock_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    lock = Lock({"s.orders": TABLE, "s.a": TABLE}, 0.5)
    path = tmp_path / "layout.lock.json"
    path.write_text(lock.to_text())
    assert read_lock(path) == lock
    assert lock.to_text() == Lock({"s.a": TABLE, "s.orders": TABLE}, 0.5).to_text()
    assert '"files": "4 of 40"' in lock.to_text()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format_version": 2}',
        '{"format_version": 1, "tolerance": 1, "tables": {"t": {}}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_lock_is_an_error_with_the_next_step(tmp_path: Path, text: str) -> None:
    path = tmp_path / "layout.lock.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"lock file|format_version is 2"):
        read_lock(path)
    with pytest.raises(ConfigError, match="write it with `dbt run-operation zlayout_lock`"):
        read_lock(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("files", "total", "passes"),
    [
        (4, 40, True),
        (5, 40, True),
        (6, 40, False),
        (38, 40, False),
        (1, 4, True),
        (2, 4, False),
        (1, 1, True),
        (400, 4000, True),
    ],
)
def test_shares_are_compared_and_one_file_more_is_no_failure(files: int, total: int, passes: bool) -> None:
    assert _within(CONDITION, reads(files, total), 0.25) is passes


def test_a_failure_says_what_was_and_why() -> None:
    worse = Regression("fct_orders", CONDITION, 38, 40, "the model no longer clusters by customer_id")
    assert worse.sentence() == (
        "fct_orders: `customer_id = 7` now reads 38 of 40 files, was 4; "
        "cause: the model no longer clusters by customer_id"
    )
    assert check_text([], 3, as_json=False) == "3 conditions read no more than the lock allows."
    assert '"sentence"' in check_text([worse], 3, as_json=True)


def test_a_lock_file_that_cannot_be_written_is_named_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "made_lock", lambda *_: Lock({"s.orders": TABLE}))
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ConfigError, match=r"file/lock\.json cannot be written \(.*\); give another file"):
        locking.lock_report(_NO_SESSION, None, {}, None, tmp_path / "file" / "lock.json")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


class _Table:
    """A table whose condition reads six of forty files, which a quarter more than four does not allow."""

    name = "`s`.`orders`"

    def reads(self, _: Sequence[str]) -> list[ConditionReads]:
        return [reads(6, 40)]

    def information(self) -> dict[str, tuple[str, ...]]:
        return {**LAYOUT, "lookup": ()}


def test_a_check_of_one_model_is_about_this_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "opened_table", lambda *_: _Table())
    monkeypatch.setattr(locking, "table_of", lambda model, _: model)
    path = tmp_path / "lock.json"

    def check(tables: dict[str, LockedTable], tolerance: object = None) -> tuple[str, bool]:
        path.write_text(Lock(tables).to_text())
        return locking.lock_report(_NO_SESSION, "orders", {}, None, path, check=True, tolerance=tolerance)

    text, passes = check({"s.orders": TABLE, "s.others": TABLE})
    assert "now reads 6 of 40 files, was 4; cause: the table no longer has lookup indexes of id: add them" in text
    assert not passes
    assert check({"s.orders": TABLE, "s.others": TABLE}, 0.6) == (
        "1 condition reads no more than the lock allows.",
        True,
    )
    # It is no success if nothing was compared.
    with pytest.raises(ConfigError, match=r"the lock has no table s\.orders"):
        check({"s.others": TABLE})
