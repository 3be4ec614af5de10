"""Lint finds the line of a condition, and a better condition where one is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.operations import linting
from dbt.adapters.zlayout.adapter.operations.compiled_queries import CompiledQuery, compiled_queries, target_folder
from dbt.adapters.zlayout.adapter.operations.linting import (
    Finding,
    Linted,
    find_conditions,
    line_of,
    lint_text,
    rewritten_condition,
)
from dbt.adapters.zlayout.errors import ConfigError

FOUND = Finding(
    "words", "model", "models/words.sql", 4, "s.facts", "upper(word) = 'W7'", "`Upper` has no rule",
    "store a column in one case and filter on that", None, None, 30, 30, 4096, None,
)  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "better"),
    [
        ("(CAST(code AS INT) = 5)", "code = '5'"),
        ("CAST(code AS BIGINT) = -5L", "code = '-5'"),
        (
            "(CAST(seen AS DATE) = DATE '2024-01-31')",
            "(seen = '2024-01-31' OR seen LIKE '2024-01-31 %' OR seen LIKE '2024-01-31T%')",
        ),
        ("(CAST(code AS INT) > 5)", None),
        ("(CAST(code AS DOUBLE) = 5.0)", None),
        ("(upper(word) = 'W7')", None),
        ("CAST(id AS STRING) = '42'", "id = 42"),
        ("CAST(ID AS STRING) = '-42'", "ID = -42"),
        ("CAST(id AS STRING) = '042'", None),
        ("CAST(id AS STRING) = '-0'", None),
        ("CAST(id AS DATE) = DATE '2024-01-31'", None),
        ("CAST(code AS STRING) = '42'", None),
        ("CAST(at AS BIGINT) = 2024L", None),
        ("CAST(unknown AS INT) = 5", None),
    ],
)
def test_only_conditions_that_keep_the_rows_are_rewritten(condition: str, better: str | None) -> None:
    kinds = {"id": "long", "at": "timestamp", **dict.fromkeys(("code", "seen", "word"), "string")}
    found = rewritten_condition(condition, kinds)
    assert (None if found is None else found[0]) == better
    # A whole number has one spelling, a text may have others.
    assert found is None or (found[1] is None) == ("id" in condition.lower())


def test_the_line_with_most_words_of_the_condition_is_named() -> None:
    code = "select word\nfrom {{ ref('facts') }}\nwhere day > '2024-01-01'\n  and upper(word) = 'W7'"
    assert line_of(code, "(upper(word) = 'W7')") == 4
    assert line_of(code, "(nothing = 1)") == 1
    column_first = "select lower(city) as city\nfrom c\nwhere lower(city) = 'x'"
    assert line_of(column_first, "(lower(c.city) = 'x')") == 3
    assert line_of("", "(a = 1)") == 1
    assert line_of("select c.city from c\nwhere c.city like '%ln1'", "endswith(c.city, 'ln1')") == 2


@pytest.mark.parametrize(
    ("code", "condition", "spelled"),
    [
        ("where lower(city) = 'x y'", "(lower(city) = 'x y')", True),
        ("where city like '%ln1'", "endswith(city, 'ln1')", False),  # a function that the code does not name
        ("select city from {{ ref('small') }}", "(lower(city) = 'x')", False),
        ("", "(lower(city) = 'x')", False),
    ],
)
def test_code_that_has_all_words_of_a_condition_spells_it(code: str, condition: str, spelled: bool) -> None:
    assert linting._spells(code, condition) is spelled


def test_a_condition_of_an_ephemeral_model_is_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(_: Any, query: CompiledQuery, scan: Any, code: str) -> list[Finding]:
        return [replace(FOUND, node=query.name, condition="upper(word) = 'W7'", table=scan.table)]

    monkeypatch.setattr(linting, "_findings", found)
    small = CompiledQuery("small", "model", "", "", "where upper(word) = 'W7'", runs=False)
    reads = CompiledQuery("reads", "model", "", "", "select * from small", inlines=frozenset({"small"}))
    again = replace(reads, name="again", raw="select * from small where upper(word) = 'W7'")
    macro = CompiledQuery("macro", "model", "", "", "where {{ of_week(7) }}")
    scans: Any = [SimpleNamespace(table="s.facts")]
    session: Any = None
    listed = find_conditions(session, [(each, scans) for each in (reads, small, again, macro)], None)
    assert {each.node for each in listed} == {"small", "again", "macro"}


def test_a_page_ends_with_the_number_of_findings() -> None:
    lines = lint_text(Linted([FOUND], 3), "text").splitlines()
    assert lines[0] == "models/words.sql:4: model words, on s.facts: upper(word) = 'W7'"
    assert "reads 30 of 30 files, up to 4.0 KiB read needlessly" in lines[1]
    assert lines[-1] == "1 condition cannot skip files."
    assert lint_text(Linted([], 1), "text") == "Every condition of 1 compiled query can skip files."
    some = Linted([], 2, "Spark cannot analyse 1 of 3 compiled queries; q: no table t")
    assert lint_text(some, "text").splitlines() == [
        "Every condition of 2 compiled queries that Spark can analyse can skip files.",
        "Spark cannot analyse 1 of 3 compiled queries; q: no table t.",
    ]
    assert lint_text(Linted([], 1), "json") == "[]"
    with pytest.raises(ConfigError, match="format: 'xml' is not one of text, json, sarif"):
        lint_text(Linted([FOUND], 1), "xml")


def test_a_path_is_a_uri_in_sarif() -> None:
    (run,) = json.loads(lint_text(Linted([replace(FOUND, path="models\\über uns.sql")], 1), "sarif"))["runs"]
    (place,) = run["results"][0]["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "models/%C3%BCber%20uns.sql"


def test_compiled_sql_is_found_where_dbt_writes_it(tmp_path: Path) -> None:
    for path in ("models/a.sql", "models/schema.yml/unique_a_id.sql"):
        file = tmp_path / "compiled" / "shop" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"select '{path}'")
    common = {"package_name": "shop", "raw_code": "{{ x }}"}
    nodes = {
        "model.a": {
            **common,
            "resource_type": "model",
            "name": "a",
            "path": "a.sql",
            "original_file_path": "models/a.sql",
        },
        "test.u": {
            **common,
            "resource_type": "test",
            "name": "unique_a_id",
            "path": "unique_a_id.sql",
            "original_file_path": "models/schema.yml",
            "test_metadata": {"name": "unique", "kwargs": {"column_name": "id"}},
        },
        "model.b": {**common, "resource_type": "model", "name": "b", "compiled_code": "select 1"},
        "model.py": {**common, "resource_type": "model", "name": "p", "language": "python", "compiled_code": "def"},
        "model.c": {
            **common,
            "resource_type": "model",
            "name": "c",
            "path": "c.sql",
            "original_file_path": "models/c.sql",
        },
        "seed.s": {**common, "resource_type": "seed", "name": "s"},
    }
    found = {each.name: each.sql for each in compiled_queries(nodes, tmp_path)}
    assert found == {
        "a": "select 'models/a.sql'",
        "unique_a_id": "select 'models/schema.yml/unique_a_id.sql'",
        "b": "select 1",
    }
    assert [each.name for each in compiled_queries(nodes, None)] == ["b"]


def test_a_query_counts_once_more_for_each_exposure_that_depends_on_it() -> None:
    def model(name: str) -> dict[str, object]:
        return {"resource_type": "model", "name": name, "compiled_code": "select 1"}

    def exposure(*names: str) -> dict[str, object]:
        return {"resource_type": "exposure", "name": "e", "depends_on": {"nodes": list(names)}}

    nodes = {"model.a": model("a"), "model.b": model("b"), "exposure.x": exposure("model.a", "model.a", "source.s")}
    nodes |= {"exposure.y": exposure("model.a"), "exposure.z": {"resource_type": "exposure", "name": "z"}}
    assert {each.name: each.weight for each in compiled_queries(nodes, None)} == {"a": 3.0, "b": 1.0}


def test_the_target_folder_is_that_of_the_project() -> None:
    class Config:
        project_root, target_path = "/shop", "target"

    assert target_folder(Config()) == Path("/shop/target")
    assert target_folder(object()) is None
