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
    check_table,
    check_text,
    read_lock,
)
from dbt.adapters.zlayout.errors import ConfigError, UnsupportedError
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
        '{"format_version": 0}',
        '{"format_version": 1, "tolerance": NaN, "tables": {}}',
        Lock({"s.orders": TABLE}).to_text().replace('[\n        "customer_id"\n      ]', '"customer_id"'),
        '{"format_version": 1, "tolerance": 1, "tables": {"t": {}}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_lock_is_an_error_with_the_next_step(tmp_path: Path, text: str) -> None:
    path = tmp_path / "layout.lock.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"is not a lock file \(.*\); write it again"):
        read_lock(path)
    with pytest.raises(ConfigError, match="write it with `dbt run-operation zlayout_lock`"):
        read_lock(tmp_path / "none.json")


@pytest.mark.parametrize("opened", ["-4", "NaN", "1.5", '"x"', "9" * 400])
def test_a_share_that_is_none_is_named(tmp_path: Path, opened: str) -> None:
    path = tmp_path / "layout.lock.json"
    path.write_text(Lock({"s.orders": TABLE}).to_text().replace('"opened": 0.1', f'"opened": {opened}'))
    with pytest.raises(ConfigError, match=r"is not a lock file \(.*\); write it again"):
        read_lock(path)
    for files in ("-1 of 40", "50 of 40", f"1 of {'9' * 400}", "many"):
        path.write_text(Lock({"s.orders": TABLE}).to_text().replace("4 of 40", files))
        with pytest.raises(ConfigError, match=r"is not a lock file \(.*\); write it again"):
            read_lock(path)


def test_a_lock_of_a_later_release_is_neither_read_nor_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "made_lock", lambda *_: Lock({"s.orders": TABLE}))
    path = tmp_path / "layout.lock.json"
    text = '{"format_version": 2}'
    path.write_text(text)
    for check in (True, False):
        with pytest.raises(UnsupportedError, match="format_version 2, and this release reads 1: update dbt-zlayout"):
            locking.lock_report(_NO_SESSION, None, {}, None, path, check=check)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("locked", "keys", "files", "total", "passes"),
    [
        # A lookup by one of two keys reads 8 of 100 files, and so about 5 of 34, 3 of 11 and 2 of 4.
        ((0.08, 8, 100), 2, 5, 34, True),
        ((0.08, 8, 100), 2, 3, 11, True),
        ((0.08, 8, 100), 2, 2, 4, True),
        ((0.08, 8, 100), 2, 20, 34, False),
        ((0.08, 8, 100), 2, 11, 11, False),
        ((0.08, 8, 100), 2, 4, 4, False),
        ((0.01, 1, 100), 1, 1, 5, True),
        ((0.01, 1, 100), 1, 5, 5, False),
        # A range reads the rows that it wants, and more at its edges if files are larger.
        ((0.5, 50, 100), 2, 7, 10, True),
        ((0.2, 20, 100), 2, 5, 10, True),
        ((0.2, 20, 100), 2, 7, 10, False),
        ((0.5, 50, 100), 1, 70, 100, False),
        ((0.2, 20, 100), 4, 12, 12, False),
        # Without keys, as with one.
        ((1.0, 100, 100), 0, 10, 10, True),
    ],
)
def test_a_lookup_reads_a_larger_share_of_fewer_files(
    locked: tuple[float, int, int], keys: int, files: int, total: int, passes: bool
) -> None:
    assert _within(LockedCondition("k = 7", *locked), reads(files, total), 0.25, keys) is passes


def test_a_model_without_conditions_is_locked_and_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = LockedTable(LAYOUT, ())
    monkeypatch.setattr(locking, "made_lock", lambda *_: Lock({"s.orders": TABLE, "s.plain": plain}))
    monkeypatch.setattr(locking, "tables_of", lambda _: [])
    path = tmp_path / "layout.lock.json"
    assert locking.lock_report(_NO_SESSION, None, {}, None, path)[0].endswith(": 1 condition on 1 table")
    table: Any = _Table()
    table.name, table.reads = "`s`.`plain`", lambda _: []
    assert check_table(table, read_lock(path)) == []
    # That the table is gone makes nothing slower.
    text, passes = locking.lock_report(_NO_SESSION, None, {}, None, path, check=True)
    assert not passes
    assert text.startswith("s.orders: the table does not exist, or is no table of this project; build it, or write")
    assert "plain" not in text


@pytest.mark.parametrize(
    ("files", "total", "passes"),
    [
        (4, 40, True),
        (5, 40, True),
        (6, 40, False),
        (38, 40, False),
        (2, 4, True),
        (3, 4, False),
        (1, 1, True),
        (400, 4000, True),
    ],
)
def test_shares_are_compared_and_one_file_more_is_no_failure(files: int, total: int, passes: bool) -> None:
    assert _within(CONDITION, reads(files, total), 0.25, 1) is passes


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
