"""A cached property is computed once for each object, and objects do not wait for each other."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from dbt.adapters.zlayout.lazy import cached_property


@dataclass(frozen=True)
class _Table:
    both: threading.Barrier

    @cached_property
    def number(self) -> int:
        """Which of two threads came first to the place where both are."""
        return self.both.wait(timeout=10)

    @cached_property
    def failing(self) -> int:
        """A property that fails each time."""
        raise ValueError("no value")


def test_two_objects_compute_the_value_at_the_same_time() -> None:
    both = threading.Barrier(2)
    tables = [_Table(both), _Table(both)]
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lambda table: table.number, tables)) == [0, 1]


def test_the_value_is_computed_once() -> None:
    table = _Table(threading.Barrier(1))
    assert table.number == 0
    table.both.abort()
    assert table.number == 0


def test_an_error_is_not_kept_as_the_value() -> None:
    table = _Table(threading.Barrier(1))
    for _ in range(2):
        with pytest.raises(ValueError, match="no value"):
            _ = table.failing


def test_the_property_of_the_class_is_itself() -> None:
    assert isinstance(_Table.number, cached_property)
    assert "came first" in (_Table.number.__doc__ or "")
