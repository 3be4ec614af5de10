"""Which queries a project has, and which conditions its tests ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.operations.compiled_queries import compiled_queries, pruning_conditions


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
            _test("nested", "zlayout_prunes_at_least", "model.p.a", arguments={"predicate": "w = 1"}),
            _test("another", "not_null", "model.p.a", column_name="x"),
            _test("of_a_source", "zlayout_prunes_at_least", None, predicate="z = 1"),
            _test("odd", "zlayout_prunes_at_least", "model.p.a", predicate=7),
        )
    }
    assert pruning_conditions("`s`.`a`", nodes) == {"x = 1": "of_a", "w = 1": "nested"}
    assert pruning_conditions("S.A", nodes) == pruning_conditions("`s`.`a`", nodes)


@pytest.mark.parametrize(
    ("kind", "materialized", "runs"),
    [("model", "view", False), ("model", "ephemeral", False), ("model", "table", True), ("analysis", "view", True)],
)
def test_a_view_is_a_part_of_the_queries_that_read_it(kind: str, materialized: str, runs: bool) -> None:
    node = {**_model("a"), "resource_type": kind, "compiled_code": "select 1"}
    node["config"] = {"materialized": materialized}
    assert [each.runs for each in compiled_queries({"model.p.a": node}, None)] == [runs]


def test_views_and_ephemeral_models_are_inlined_through_each_other() -> None:
    nodes = {
        f"model.p.{name}": {
            **_model(name),
            "compiled_code": "select 1",
            "config": {"materialized": {"b": "view", "c": "ephemeral"}.get(name, "table")},
            "depends_on": {"nodes": [f"model.p.{each}" for each in upstream]},
        }
        for name, upstream in {"a": "", "b": "a", "c": "bc", "d": "ca"}.items()
    }
    found = {each.name: set(each.inlines) for each in compiled_queries(nodes, None)}
    assert found == {"a": set(), "b": set(), "c": {"b", "c"}, "d": {"b", "c"}}


def test_the_compiled_text_of_a_snapshot_is_in_a_folder_of_its_name(tmp_path: Path) -> None:
    place = tmp_path / "compiled/p/snapshots/kept.sql/kept.sql"
    place.parent.mkdir(parents=True)
    place.write_text("select 2")
    node = {"resource_type": "snapshot", "name": "kept", "package_name": "p"}
    node |= {"original_file_path": "snapshots/kept.sql", "path": "kept.sql"}
    assert [each.sql for each in compiled_queries({"snapshot.p.kept": node}, tmp_path)] == ["select 2"]
