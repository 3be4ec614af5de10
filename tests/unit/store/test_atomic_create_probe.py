"""Places that do not keep create-if-absent are found out before a table is made there."""

from __future__ import annotations

import uuid
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.store import check_create_if_absent
from dbt.adapters.zlayout.store.cloud import CloudStore
from dbt.adapters.zlayout.store.local import LocalStore


class _Counting(CloudStore):
    def __init__(self) -> None:
        super().__init__(f"s3://bucket/{uuid.uuid4().hex}", MemoryStore())
        self.creates = 0

    def create(self, path: str, data: bytes) -> None:
        self.creates += 1
        super().create(path, data)


class _Overwriting(_Counting):
    """As a service does that ignores the condition of a put."""

    def create(self, path: str, data: bytes) -> None:
        self.creates += 1
        obstore.put(self._objects, path, data)


def test_a_place_that_keeps_the_promise_is_tried_once_and_left_clean() -> None:
    store = _Counting()
    check_create_if_absent(store)
    check_create_if_absent(store)
    assert store.creates == 2
    assert store.list("", recursive=True) == []


def test_a_place_that_overwrites_is_refused_each_time_and_left_clean() -> None:
    store = _Overwriting()
    for _ in range(2):
        with pytest.raises(UnsupportedError, match=rf"{store.root_uri}.*overwrites.*If-None-Match.*location_root"):
            check_create_if_absent(store)
    assert store.creates == 4
    assert store.list("", recursive=True) == []


def test_a_local_place_costs_nothing(tmp_path: Path) -> None:
    check_create_if_absent(LocalStore(tmp_path))
    assert list(tmp_path.iterdir()) == []
