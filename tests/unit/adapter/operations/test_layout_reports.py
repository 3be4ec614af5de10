"""Which conditions a layout report shows, and what it asks for."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.operations.layout_reports import conditions_of, layout_report
from dbt.adapters.zlayout.errors import ConfigError

_NO_SESSION: Any = None


def _test(name: str, kind: str, attached: object, **arguments: object) -> dict[str, Any]:
    return {
        "resource_type": "test",
        "name": name,
        "unique_id": f"test.p.{name}",
        "attached_node": attached,
        "test_metadata": {"name": kind, "kwargs": arguments},
    }


def _model(name: str) -> dict[str, Any]:
    return {"resource_type": "model", "name": name, "unique_id": f"model.p.{name}", "schema": "s", "alias": name}


def test_conditions_are_those_of_the_pruning_tests_of_a_table() -> None:
    nodes = {
        each["unique_id"]: each
        for each in (
            _model("a"),
            _model("b"),
            _test("of_a", "zlayout_prunes_at_least", "model.p.a", predicate="x = 1", percent=50),
            _test("of_b", "zlayout_prunes_at_least", "model.p.b", predicate="y = 1"),
            _test("another", "not_null", "model.p.a", column_name="x"),
            _test("of_a_source", "zlayout_prunes_at_least", None, predicate="z = 1"),
            _test("odd", "zlayout_prunes_at_least", "model.p.a", predicate=7),
        )
    }
    (found,) = conditions_of("`s`.`a`", nodes)
    assert (found.sql, found.source, found.weight) == ("x = 1", "of_a", 1.0)


def test_a_report_needs_a_file_or_json() -> None:
    with pytest.raises(ConfigError, match=r"path: report\.html"):
        layout_report(_NO_SESSION, "p", None, {}, None, False)


def test_a_project_without_tables_has_a_report(tmp_path: Any) -> None:
    told = layout_report(_NO_SESSION, "p", None, {}, str(tmp_path / "r.html"), False)
    assert "the report of 0 tables" in told
    assert "no dbt-zlayout table yet" in (tmp_path / "r.html").read_text("utf-8")
