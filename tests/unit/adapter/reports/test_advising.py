"""Advice as a page: the tables that would save most come first."""

from __future__ import annotations

import json

from dbt.adapters.zlayout.adapter.reports.advising import TableAdvice, advice_report
from dbt.adapters.zlayout.advice.advice import Advice, PredicateAdvice


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
    text = advice_report([TableAdvice("s.t", 4, advice(5))], as_json=False)
    assert text.splitlines()[0] == "s.t: cluster by customer"
    parts = ("day -> customer", "none -> id", "40 -> 30", "2.0 MiB to read and write, paid back after 3 queries")
    for part in (*parts, "follow the workload"):
        assert part in text
    assert text.splitlines()[-1] == "  note: a note"


def test_tables_come_by_what_they_save() -> None:
    found = [TableAdvice("s.a", 1, None, "no rows"), TableAdvice("s.b", 1, advice(5)), TableAdvice("s.c", 1, advice(9))]
    assert [each["table"] for each in json.loads(advice_report(found, as_json=True))] == ["s.c", "s.b", "s.a"]
    assert "s.a: no advice: no rows" in advice_report(found, as_json=False)
    assert advice_report([], as_json=False).startswith("The project has no")
