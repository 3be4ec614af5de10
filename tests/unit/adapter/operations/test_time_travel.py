"""The output of the run-operations on versions, and their arguments."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.operations.time_travel import clean_text, history_text, relation_at
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation
from dbt.adapters.zlayout.timeline.retention.cleaning import CleanResult

_ROWS = [
    {
        "version": version,
        "instant": f"2024010112000000{version}",
        "action": "commit",
        "operation": operation,
        "rows": rows,
        "rows_inserted": rows,
        "rows_updated": 7,
        "rows_deleted": 8,
        "files_added": 1,
        "files_removed": 0,
        "bytes_added": 123_456,
        "committed_at": dt.datetime(2024, 1, 1, 12, 0, 0, 1000 * version, dt.timezone.utc),
    }
    for version, operation, rows in ((10, "overwrite", None), (9, "append", 1200))
]
_NO_SESSION: Any = None
_TABLE = ZlayoutRelation.create(schema="s", identifier="t")


def test_history_is_a_table() -> None:
    assert history_text("s.t", _ROWS, as_json=False).splitlines() == [
        "s.t",
        "version  committed at                 operation   rows  +rows  ~rows  -rows  +files  -files  bytes added",
        "     10  2024-01-01 12:00:00.010 UTC  overwrite      -      -      7      8       1       0      123,456",
        "      9  2024-01-01 12:00:00.009 UTC  append     1,200  1,200      7      8       1       0      123,456",
    ]


def test_history_as_json_keeps_everything() -> None:
    told = json.loads(history_text("s.t", _ROWS, as_json=True))
    assert told == [{**row, "committed_at": f"2024-01-01 12:00:00.0{row['version']:02} UTC"} for row in _ROWS]


def test_the_clean_report_lists_tables_and_in_a_dry_run_files() -> None:
    cleaned = {"s.t": CleanResult(2, 3000, 4, ("a", "b"))}
    assert clean_text(cleaned, dry_run=False, as_json=False) == (
        "s.t: deleted 2 files (2.9 KiB); the oldest readable version is 4"
    )
    assert clean_text(cleaned, dry_run=True, as_json=False).splitlines() == [
        "s.t: would delete 2 files (2.9 KiB); the oldest readable version is 4",
        "  a",
        "  b",
    ]
    assert json.loads(clean_text(cleaned, dry_run=True, as_json=True)) == [
        {
            "table": "s.t",
            "dry_run": True,
            "files": 2,
            "bytes": 3000,
            "oldest_version": 4,
            "paths": ["a", "b"],
            "failed": [],
        }
    ]


def test_the_clean_report_names_what_could_not_be_deleted() -> None:
    cleaned = {"s.t": CleanResult(1, 3000, 4, ("b",), ("a: Permission denied",))}
    assert clean_text(cleaned, dry_run=False, as_json=False).splitlines() == [
        "s.t: deleted 1 file (2.9 KiB); the oldest readable version is 4",
        "  not deleted: a: Permission denied",
    ]
    assert clean_text({}, dry_run=True, as_json=False) == "No dbt-zlayout table to clean."


@pytest.mark.parametrize(
    "model",
    [
        {"unique_id": "model.p.v", "resource_type": "model", "config": {"materialized": "view"}},
        {"unique_id": "test.p.v", "resource_type": "test", "config": {"store_failures_as": "view"}},
    ],
)
def test_a_node_that_becomes_a_view_cannot_read_a_version(model: dict[str, Any]) -> None:
    with pytest.raises(CompilationError, match=f"{model['unique_id']}.*temporary view"):
        relation_at(_NO_SESSION, _TABLE, model, 1, None, None)


@pytest.mark.parametrize(
    ("asked", "message"),
    [((None, None, None), "needs version"), (("x", None, None), "version: 'x'"), ((True, None, None), "version: True")],
)
def test_a_version_must_be_a_number(asked: tuple[Any, ...], message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        relation_at(_NO_SESSION, _TABLE, {}, *asked)


@pytest.mark.parametrize("execute", [True, False])
def test_while_dbt_parses_a_version_is_the_table_itself(macro_stage: Any, execute: bool) -> None:
    class Adapter:
        def relation_at(self, *asked: Any) -> tuple[Any, ...]:
            return asked

    model = {"config": {}}
    stage = macro_stage("layout/zlayout_at.sql", adapter=Adapter(), execute=execute, model=model)
    found = stage.call("zlayout_at", _TABLE, version=3)
    assert found == ((_TABLE, model, 3, None, None) if execute else _TABLE)
