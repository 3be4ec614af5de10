"""What the run-operations on indexes print, and the macros that call them."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.operations import indexes, progress
from dbt.adapters.zlayout.adapter.operations.indexes import refresh_text, verified, verify_text
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, whole_table
from dbt.adapters.zlayout.index.verification import lost_files
from dbt.adapters.zlayout.spark.index.refresh import Refreshed
from dbt.adapters.zlayout.spark.schema.table_schema import string_literal

_TABLE = ZlayoutRelation.create(schema="s", identifier="t", type="table")
_CELL = {"path": "f'1.parquet", "column": "a", "cell": "min", "stored": "1", "found": None}


class Adapter:
    def __init__(self, **answers: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.calls.append((name, *args)) or self._answers.get(name)

    def string_literal(self, text: str) -> str:
        return string_literal(text)


def test_the_refresh_report_has_a_line_for_each_table() -> None:
    done = {
        "s.a": Refreshed(4),
        "s.b": Refreshed(7, files_added=1200, files_rebuilt=1, repaired=True, unreadable=("x.p",)),
    }
    assert refresh_text(done, as_json=False).splitlines() == [
        "s.a: index at version 4; nothing to do",
        "s.b: index at version 7; 1,200 files added, 1 file rebuilt, damaged slices replaced, 1 file (x.p) unreadable",
    ]
    assert [each["version"] for each in json.loads(refresh_text(done, as_json=True))] == [4, 7]
    assert "No table" in refresh_text({}, as_json=False)


def test_the_refresh_report_names_missing_files_and_what_to_do() -> None:
    (line,) = refresh_text({"s.a": Refreshed(4, missing=("p=1/x.p", "y.p"))}, as_json=False).splitlines()
    assert "2 files (p=1/x.p …) MISSING from the folder: queries fail" in line
    assert "drop_missing: true" in line
    assert "1 missing file dropped" in refresh_text({"s.a": Refreshed(4, files_dropped=1)}, as_json=False)


def test_a_verification_of_one_table_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    def verify(data: bool) -> pa.Table:
        until = time.monotonic() + 5
        while not lines and time.monotonic() < until:
            time.sleep(0.001)
        return pa.table({"path": []})

    monkeypatch.setattr(progress, "_SILENT_SECONDS", 0.02)
    monkeypatch.setattr(progress._LOG, "info", lines.append)
    monkeypatch.setattr(indexes, "opened_table", lambda session, name: SimpleNamespace(name=name, verify=verify))
    session: Any = None
    assert verified(session, "s.t", data=True) == {"s.t": []}
    assert lines[0].startswith("comparing the indexes with the files: 0 of 1 table, "), lines


def test_verify_names_missing_files() -> None:
    (row,) = lost_files(pa.array(["x.parquet"]), "not in the folder; do this").to_pylist()
    report = verify_text({"s.a": [row]}, as_json=False).splitlines()
    assert report == ["s.a: 1 wrong cell", "  x.parquet: listed by the table, but not in the folder; do this"]


def test_the_verify_report_lists_some_wrong_cells_and_counts_the_rest() -> None:
    text = verify_text({"s.a": [], "s.b": [{**_CELL, "column": None}] + [_CELL] * 60}, as_json=False).splitlines()
    assert text[:2] == ["s.a: no wrong cells", "s.b: 61 wrong cells"]
    assert text[2] == "  f'1.parquet  -.min: index: 1; file: None"
    assert text[3].startswith("  f'1.parquet  a.min: ")
    assert text[-1] == "  … and 11 more (JSON shows all)"
    assert json.loads(verify_text({"s.b": [_CELL]}, as_json=True)) == [{"table": "s.b", "wrong": [_CELL]}]


def test_a_hook_refreshes_its_relation_and_leaves_nothing_to_run(macro_stage: Any) -> None:
    adapter = Adapter()
    stage = macro_stage("operations/zlayout_refresh_index.sql", adapter=adapter, execute=True)
    assert stage.call("zlayout_refresh_index", _TABLE) == ""
    assert adapter.calls == [("refresh_index", _TABLE, False, False)]
    parsing = Adapter()
    stage = macro_stage("operations/zlayout_refresh_index.sql", adapter=parsing, execute=False)
    assert stage.call("zlayout_refresh_index", _TABLE) == ""
    assert parsing.calls == []


@pytest.mark.parametrize("model", [None, "m"])
def test_the_operation_prints_the_report(macro_stage: Any, model: str | None) -> None:
    printed: list[str] = []
    adapter = Adapter(refresh_report="the report")
    graph = SimpleNamespace(nodes={"n": 1}, sources={"s": 2})
    stage = macro_stage(
        "operations/zlayout_refresh_index.sql", adapter=adapter, graph=graph, print=printed.append, execute=True
    )
    stage.call("zlayout_refresh_index", model=model, take_orphans=True)
    assert adapter.calls == [("refresh_report", model, {"n": 1}, {"s": 2}, True, False, False)]
    assert printed == ["the report"]


def test_verify_prints_the_report(macro_stage: Any) -> None:
    printed: list[str] = []
    adapter = Adapter(verify_report="the report")
    graph = SimpleNamespace(nodes={}, sources={})
    stage = macro_stage("operations/zlayout_verify.sql", adapter=adapter, graph=graph, print=printed.append)
    stage.call("zlayout_verify", model="m", data=True)
    assert adapter.calls == [("verify_report", "m", {}, {}, True, False)]
    assert printed == ["the report"]


def test_the_test_selects_each_wrong_cell(macro_stage: Any) -> None:
    files = "utils/zlayout_rows.sql", "tests/zlayout_index_exact.sql"
    stage = macro_stage(*files, adapter=Adapter(verify_index=[_CELL, {**_CELL, "found": "2"}]))
    found = stage.call("test_zlayout_index_exact", model=_TABLE)
    same = "(cast('f\\'1.parquet' as string), cast('a' as string), cast('min' as string), cast('1' as string), "
    assert f"from values {same}cast(null as string)), {same}cast('2' as string)) as found" in found
    fine = macro_stage(*files, adapter=Adapter(verify_index=[]))
    assert fine.call("test_zlayout_index_exact", model=_TABLE, data=True).endswith("where false")


def test_the_test_rejects_a_where() -> None:
    with pytest.raises(CompilationError, match="whole table"):
        whole_table("(select * from s.t where a = 1)", "zlayout_index_exact")
