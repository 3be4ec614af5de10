"""The contract on the stores that need no server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import obstore.store
import pytest
from store_contract import StoreContract, StoreRaces

from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.store.cloud import CloudStore
from dbt.adapters.zlayout.store.local import LocalStore


def _local(folder: Path) -> Store:
    return LocalStore(folder / "table é")


def _memory(folder: Path) -> Store:
    return CloudStore("s3://bucket/table", obstore.store.MemoryStore())


def _obstore_local(folder: Path) -> Store:
    (folder / "bucket").mkdir()
    return CloudStore("s3://bucket/table", obstore.store.LocalStore(prefix=folder / "bucket"))


@pytest.fixture(params=[_local, _memory, _obstore_local], ids=["local", "memory", "obstore_local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    make: Callable[[Path], Store] = request.param
    return make(tmp_path)


class TestContract(StoreContract):
    def test_a_name_may_hold_a_colon(self, store: Store) -> None:
        store.create("k=a:b/x:y", b"x")
        assert [file.path for file in store.list("k=a:b")] == ["k=a:b/x:y"]


class TestRaces(StoreRaces):
    pass
