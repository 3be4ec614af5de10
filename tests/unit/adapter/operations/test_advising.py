"""Which conditions of a project matter most for a table, and advice as a page."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.operations import advising
from dbt.adapters.zlayout.adapter.operations.advising import ProjectWorkload, TableAdvice, advice_text
from dbt.adapters.zlayout.adapter.operations.compiled_queries import AnalysedQueries, CompiledQuery
from dbt.adapters.zlayout.advice.advice import Advice, PredicateAdvice
from dbt.adapters.zlayout.config.workload import WeightedCondition
from dbt.adapters.zlayout.predicate.expr import Constant

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


def advice(saved: int) -> Advice:
    return Advice(
        change="layout", zorder=("customer",), partition_by=(), lookup=(), bloom=("id",), zorder_now=("day",),
        partition_by_now=(), bloom_now=(), opened_now=0.9, opened_then=0.1,
        by_workload=True, gains=(0.88, 0.87, 0.9), min_gain=0.1,
        rows=100, files=40, files_then=30, size_bytes=1 << 20, rewrite_bytes=2 << 20, saved_bytes=saved,
        payback_queries=3, why="cluster by customer",
        predicates=(PredicateAdvice("customer = 7", 2, "given", 0.9, 0.1),),
        notes=("a note",),
    )  # fmt: skip


def test_the_page_has_changes_costs_and_conditions() -> None:
    text = advice_text([TableAdvice("s.t", 4, advice(5))], as_json=False)
    assert text.splitlines()[0] == "s.t: cluster by customer"
    parts = ("day -> customer", "none -> id", "40 -> 30", "2.0 MiB to read and write; pays off after 3 queries")
    for part in (*parts, "follow the workload"):
        assert part in text
    assert text.splitlines()[-1] == "  note: a note"


def test_tables_come_by_what_they_save() -> None:
    found = [TableAdvice("s.a", 1, None, "no rows"), TableAdvice("s.b", 1, advice(5)), TableAdvice("s.c", 1, advice(9))]
    assert [each["table"] for each in json.loads(advice_text(found, as_json=True))] == ["s.c", "s.b", "s.a"]
    assert "s.a: no advice: no rows" in advice_text(found, as_json=False)
    assert advice_text([], as_json=False).startswith("The project has no")


def test_a_view_that_reads_a_whole_table_is_no_query_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = SimpleNamespace(table="shop.orders", joins=(), pruning=Constant(True), predicate=Constant(True))
    table_query = CompiledQuery("a", "model", "select 1", "", "")
    queries: Any = [(each, [scan]) for each in (table_query, replace(table_query, name="v", runs=False))]
    monkeypatch.setattr(advising, "analysed_queries", lambda *_: AnalysedQueries(queries, {}))
    session, table = SimpleNamespace(), SimpleNamespace(name="shop.orders", names=("shop.orders",))
    found = ProjectWorkload(session, _NODES, None).of(table)
    assert [(each.sql, each.weight) for each in found] == [("true", 1.0)]
