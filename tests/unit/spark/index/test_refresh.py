"""A refresh killed or failing at every effect: the index says before or after, and the next refresh finishes it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.errors import ConflictError, StoreError
from dbt.adapters.zlayout.index.footers.footer import ColumnFooter
from dbt.adapters.zlayout.index.footers.parquet_values import Bounds
from dbt.adapters.zlayout.index.gaps import gaps_of
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.index.table_index import TableIndex
from dbt.adapters.zlayout.spark.files.existing_files import listed_files
from dbt.adapters.zlayout.spark.index.refresh import Goal, Refresh, Refreshed
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.table_file import ManagementLevel, TableFile, replace_table_file
from dbt.adapters.zlayout.timeline.log.runtime import Runtime
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.pending import list_pending
from dbt.adapters.zlayout.timeline.transactions.recovery import recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

A = TrackedColumn(("a",), pa.int64())
RUNTIME = Runtime(sleep=lambda _: None, heartbeat_seconds=None)

NO_COLUMNS = '{"type":"struct","fields":[]}'


class Killed(BaseException):
    """The process is no more."""


class FaultyStore:
    """A store that dies, or fails once, before or after one of its effects."""

    def __init__(self, store: LocalStore, at: int, *, after: bool, killed: bool) -> None:
        self._store, self._at, self._after, self._killed = store, at, after, killed
        self.effects = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _effect(self, act: Callable[[], None]) -> None:
        number, self.effects = self.effects, self.effects + 1
        if number < self._at or (number > self._at and not self._killed):
            return act()
        if number == self._at and self._after:
            act()
        raise Killed if self._killed else StoreError("the disk is full")

    def create(self, path: str, data: bytes) -> None:
        self._effect(lambda: self._store.create(path, data))

    def put(self, path: str, data: bytes) -> None:
        self._effect(lambda: self._store.put(path, data))

    def delete(self, paths: Iterable[str]) -> None:
        for path in list(paths):
            self._effect(partial(self._store.delete, [path]))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    folder = tmp_path / "t"
    folder.mkdir()
    for number in range(3):
        load(folder, number)
    with Transaction.begin(timeline_of(LocalStore(folder)), Action.INDEXING, Operation.OVERWRITE) as transaction:
        transaction.commit(Change(DataFiles.empty(), schema_json=NO_COLUMNS))
    assert refresh(LocalStore(folder)).files_added == 3
    return folder


def load(folder: Path, number: int, **options: Any) -> None:
    pq.write_table(pa.table({"a": [number * 10, number * 10 + 9]}), folder / f"f{number}.parquet", **options)


def timeline_of(store: Any) -> Timeline:
    return Timeline(store, RUNTIME)


def refresh(store: Any, examine: Any = None) -> Refreshed:
    goal = Goal(lambda _: (A,), partial(listed_files, store, ()), NO_COLUMNS)
    return Refresh(timeline_of(store), goal, examine or partial(read, store)).run()


def read(store: Any, files: DataFiles, wanted: Any) -> dict[str, Any]:
    """What the data of whole files says."""
    values = {path: pq.read_table(store.local_path(path))["a"].to_pylist() for path in wanted}
    return {path: {A.path: ColumnFooter(Bounds(min(a), max(a)), 0, 0, len(a))} for path, a in values.items()}


def bounds(folder: Path) -> dict[str, tuple[int | None, int | None]]:
    store = LocalStore(folder)
    snapshot = timeline_of(store).snapshot()
    found = TableIndex(store, snapshot.index).statistics(snapshot.files, {A.path}).column(A.path)
    assert found is not None
    pairs = zip(found.minimum.to_pylist(), found.maximum.to_pylist(), strict=True)
    return dict(zip(snapshot.files["path"].to_pylist(), pairs, strict=True))


def changed_by_others(folder: Path) -> None:
    load(folder, 3)
    pq.write_table(pa.table({"a": [500, 501, 502]}), folder / "f1.parquet")
    (folder / "f2.parquet").unlink()


def damaged(folder: Path) -> None:
    for path in folder.glob(".zlayout/index/*/*"):
        path.write_bytes(b"PAR1 nothing PAR1")


@pytest.mark.parametrize("state", [changed_by_others, damaged])
@pytest.mark.parametrize(
    ("killed", "after"), [(True, False), (True, True), (False, False)], ids=["killed_before", "killed_after", "error"]
)
def test_a_fault_at_any_effect_leaves_the_index_before_or_after(
    folder: Path, state: Callable[[Path], None], killed: bool, after: bool
) -> None:
    state(folder)
    prepared = shutil.copytree(folder, folder.with_name("prepared"))
    before = bounds(folder) if state is changed_by_others else None
    faultless = FaultyStore(LocalStore(folder), 10_000, after=False, killed=True)
    assert refresh(faultless).version == 2
    wanted = bounds(folder)
    assert wanted.get("f0.parquet") == (0, 9)
    assert faultless.effects > 5
    for at in range(faultless.effects):
        shutil.rmtree(folder)
        shutil.copytree(prepared, folder)
        with suppress(Killed, StoreError):
            refresh(FaultyStore(LocalStore(folder), at, after=after, killed=killed))
        store = LocalStore(folder)
        version = timeline_of(store).latest_version()
        assert version in (1, 2)
        if version == 2 or before is not None:
            assert bounds(folder) == (wanted if version == 2 else before), f"effect {at}"
        recover(timeline_of(store))
        assert list_pending(store) == []
        refresh(store)
        assert bounds(folder) == wanted
        assert gaps_of(store, timeline_of(store).snapshot(), [A]).is_none
        assert refresh(store).version == timeline_of(store).latest_version() == 2


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_refresh(folder: Path) -> None:
    load(folder, 3, write_statistics=False)

    def and_change(files: DataFiles, wanted: Any) -> dict[str, Any]:
        assert list(wanted) == ["f3.parquet"]
        pq.write_table(pa.table({"a": [1, 2, 3]}), folder / "f3.parquet")
        return {}

    assert refresh(LocalStore(folder), and_change).files_added == 0
    assert "f3.parquet" not in bounds(folder)
    assert refresh(LocalStore(folder)).files_added == 1
    assert bounds(folder)["f3.parquet"] == (1, 3)


def test_a_table_that_is_adopted_during_a_refresh_is_left_alone(folder: Path) -> None:
    load(folder, 3, write_statistics=False)

    def and_take_over(files: DataFiles, wanted: Any) -> dict[str, Any]:
        store = LocalStore(folder)
        replace_table_file(store, TableFile.new(ManagementLevel.MANAGED, "s.t", 0))
        with Transaction.begin(timeline_of(store), Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
            transaction.commit(Change(DataFiles.empty(), schema_json=NO_COLUMNS))
        return {}

    with pytest.raises(ConflictError, match=r"s\.t became a managed table"):
        refresh(LocalStore(folder), and_take_over)
    assert len(timeline_of(LocalStore(folder)).snapshot().files) == 0


def test_one_file_that_cannot_be_read_does_not_hide_the_others(folder: Path) -> None:
    for number in range(3, 10):
        load(folder, number, write_statistics=False)

    def but_one(files: DataFiles, wanted: Any) -> dict[str, Any]:
        if "f5.parquet" in wanted:
            raise OSError("damaged page")
        return read(LocalStore(folder), files, wanted)

    assert refresh(LocalStore(folder), but_one).files_added == 7
    found = bounds(folder)
    assert [path for path, (low, _) in sorted(found.items()) if low is None] == ["f5.parquet"]
    assert refresh(LocalStore(folder), but_one).version == 2
    assert refresh(LocalStore(folder)).files_rebuilt == 1
    assert bounds(folder)["f5.parquet"] == (50, 59)


def test_two_refreshes_at_once_both_end_and_agree(folder: Path) -> None:
    load(folder, 3, write_statistics=False)

    def and_refresh(files: DataFiles, wanted: Any) -> dict[str, Any]:
        refresh(LocalStore(folder))
        return read(LocalStore(folder), files, wanted)

    refresh(LocalStore(folder), and_refresh)
    assert sorted(bounds(folder)) == [f"f{number}.parquet" for number in range(4)]
    assert gaps_of(LocalStore(folder), timeline_of(LocalStore(folder)).snapshot(), [A]).is_none
    assert refresh(LocalStore(folder)).files_added == 0


def test_unreadable_data_is_read_again_by_the_next_refresh_and_makes_no_version(folder: Path) -> None:
    load(folder, 3, write_statistics=False)
    asked = []

    def fail(files: DataFiles, wanted: Any) -> dict[str, Any]:
        asked.append(list(wanted))
        raise RuntimeError("no way from Spark to Python")

    assert refresh(LocalStore(folder), fail).files_added == 1
    version = refresh(LocalStore(folder), fail).version
    assert version == 2
    assert asked == [["f3.parquet"]] * 2
    assert bounds(folder)["f3.parquet"] == (None, None)
