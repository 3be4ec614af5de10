"""Which conditions of a project matter most for a table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.operations.advising import ProjectWorkload
from dbt.adapters.zlayout.config.workload import WeightedCondition

_NODES: dict[str, Any] = {
    "model.p.orders": {"resource_type": "model", "schema": "shop", "alias": "orders", "name": "orders"},
    "test.p.pruned": {
        "resource_type": "test",
        "name": "pruned",
        "attached_node": "model.p.orders",
        "test_metadata": {"name": "zlayout_prunes_at_least", "kwargs": {"predicate": "day = '2026-01-05'"}},
    },
}
_QUERIED = (
    WeightedCondition("a = 1", 2.0),
    WeightedCondition("TRUE", 9.0),
    WeightedCondition("day = '2026-01-05'", 7.0),
    WeightedCondition("b = 1", 5.0),
    WeightedCondition("b = 1", 3.0, joined=("c",)),
)


@pytest.mark.parametrize(
    ("most", "expected"), [(9, ["day = '2026-01-05'", "b = 1", "a = 1"]), (0, ["day = '2026-01-05'"])]
)
def test_conditions_of_tests_come_first_then_the_heaviest_each_once(
    monkeypatch: pytest.MonkeyPatch, most: int, expected: list[str]
) -> None:
    session, table = SimpleNamespace(), SimpleNamespace(name="shop.orders")
    monkeypatch.setattr(ProjectWorkload, "of", lambda *_: _QUERIED)
    found = ProjectWorkload(session, _NODES, None).foremost(table, most)
    assert [each.sql for each in found] == expected
    assert (found[0].source, found[0].weight) == ("pruned", 8.0)
