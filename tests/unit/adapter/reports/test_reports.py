"""The output of zlayout_explain and zlayout_info."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa

from dbt.adapters.zlayout.adapter.reports.diagnostics import explanation_report, information_report
from dbt.adapters.zlayout.table.explanation import Explanation, PruningStage

_EXPLANATION = Explanation(
    table="s.t",
    version=1,
    predicate="a = 1",
    stages=(PruningStage("column_stats", 2, 1, 0.001),),
    files=pa.table(
        {"path": ["x", "y"], "verdict": ["SKIP", "READ"], "stage": ["column_stats", None], "reason": ["a > 1", ""]}
    ),
    conjuncts=pa.table({"sql": ["a = 1"], "usable": [True], "skips": [1], "why_not": [None], "advice": [None]}),
)
_INFORMATION: dict[str, Any] = {
    "name": "s.t",
    "rows": 1200000,
    "overlap_depth": 1.25,
    "zorder": ["a", "b"],
    "committed_at": dt.date(2024, 1, 1),
    "partition_by": [],
    "adopted": False,
    "curve": None,
}


def test_an_explanation_is_a_page_for_people() -> None:
    assert "reads 1 of 2 files" in explanation_report([_EXPLANATION], as_json=False)


def test_a_query_without_dbt_zlayout_tables_has_nothing_to_explain() -> None:
    assert "nothing to explain" in explanation_report([], as_json=False)


def test_json_has_the_whole_explanation() -> None:
    assert json.loads(explanation_report([_EXPLANATION], as_json=True)) == [_EXPLANATION.to_dict()]


def test_information_is_a_readable_column() -> None:
    lines = dict(line.split("  ", 1) for line in information_report(_INFORMATION, as_json=False).splitlines())
    assert {key.strip(): value.strip() for key, value in lines.items()} == {
        "name": "s.t",
        "rows": "1,200,000",
        "overlap depth": "1.25",
        "zorder": "a, b",
        "committed at": "2024-01-01",
        "partition by": "-",
        "adopted": "no",
        "curve": "-",
    }


def test_information_as_json_keeps_numbers() -> None:
    assert json.loads(information_report(_INFORMATION, as_json=True))["rows"] == 1200000
