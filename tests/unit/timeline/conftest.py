"""A table without rows: a store, a clock that ticks by itself, and a way to commit files by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.store.protocol import Store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import LOG_FOLDER, data_file_path, new_group
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.runtime import Runtime
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction


class DatedStore(LocalStore):
    """A local store that dates the entries of the log by a test's clock."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.now_ms: Callable[[], int] = lambda: 0

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        if path.startswith(LOG_FOLDER):
            os.utime(self.local_path(path), ns=(self.now_ms() * 1_000_000,) * 2)


class Table:
    """A table whose data files are a few bytes."""

    def __init__(self, store: DatedStore) -> None:
        self.store: Store = store
        self.now_ms = 1_700_000_000_000
        store.now_ms = lambda: self.now_ms
        self.runtime = Runtime(now_ms=self._tick, sleep=lambda _: None, heartbeat_seconds=None)

    def _tick(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def timeline(self, store: Store | None = None, **runtime: object) -> Timeline:
        return Timeline(store or self.store, replace(self.runtime, **runtime))

    def write(self, transaction: Transaction, count: int = 1, store: Store | None = None) -> DataFiles:
        store = store or self.store
        rows = []
        for _ in range(count):
            path = data_file_path("", new_group(), transaction.instant)
            store.put(path, b"rows")
            rows.append(DataFile(path, (), 1, 4, 5, new_group()))
        return DataFiles.of(rows)

    def overwrite(self, count: int = 1) -> Commit:
        with Transaction.begin(self.timeline(), Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
            return transaction.commit(
                Change(self.write(transaction, count), schema_json='{"type":"struct","fields":[]}')
            )

    def append(self, count: int = 1) -> Commit:
        with Transaction.begin(self.timeline(), Action.COMMIT, Operation.APPEND) as transaction:
            return transaction.commit(Change(self.write(transaction, count)))

    def merge(self, removes: Sequence[str], count: int = 1) -> Commit:
        with Transaction.begin(self.timeline(), Action.COMMIT, Operation.MERGE) as transaction:
            return transaction.commit(Change(self.write(transaction, count), removes=tuple(removes)))

    def on_disk(self) -> set[str]:
        return {file.path for file in self.store.list("") if file.path.endswith(".parquet")}

    def live(self) -> set[str]:
        return set(self.timeline().snapshot().files["path"].to_pylist())


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    # No test cuts the power; waiting for the disk would be most of the time.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return Table(DatedStore(tmp_path / "t"))
