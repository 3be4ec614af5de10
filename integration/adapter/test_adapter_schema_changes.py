"""Models whose columns change: the four values of on_schema_change."""

from __future__ import annotations

import pytest

POLICIES = ("ignore", "fail", "append_new_columns", "sync_all_columns")


@pytest.fixture(autouse=True)
def first(dbt):
    assert dbt("run", "--full-refresh", "--select", "tag:columns").success


def columns_of(spark, policy):
    return {field.name: field.dataType.simpleString() for field in spark.table(f"main.on_{policy}").schema}


def test_a_new_column_is_left_out_refused_or_added(dbt, spark, rows):
    outcome = dbt("run", "--select", "tag:columns", columns="more")
    assert {name.removeprefix("on_"): result.status for name, result in outcome.results.items()} == {
        "ignore": "success",
        "fail": "error",
        "append_new_columns": "success",
        "sync_all_columns": "success",
    }
    assert "`came`" in outcome.message("on_fail")
    assert "append_new_columns" in outcome.message("on_fail")
    first = {"id": "bigint", "n": "int", "gone": "string", "made_by": "string"}
    assert columns_of(spark, "ignore") == columns_of(spark, "fail") == first
    assert rows("select count(*), max(made_by) from main.on_fail") == [(10, "same")]
    assert rows("select id, gone, made_by from main.on_ignore where id in (4, 5, 14)") == [
        (4, "then 4", "same"),
        (5, "then 5", "more"),
        (14, "then 14", "more"),
    ]
    for policy in ("append_new_columns", "sync_all_columns"):
        assert columns_of(spark, policy) == {**first, "came": "string"}
        assert rows(f"select id, gone, came, made_by from main.on_{policy} where id in (4, 5, 14)") == [
            (4, "then 4", None, "same"),
            (5, "then 5", "now 5", "more"),
            (14, "then 14", "now 14", "more"),
        ]


@pytest.mark.slow
def test_a_dropped_or_wider_column_follows_on_schema_change(dbt, spark, rows):
    outcome = dbt("run", "--select", "tag:columns", columns="other")
    for policy in ("ignore", "fail"):
        assert outcome.results[f"on_{policy}"].status == "error"
        assert "`gone`" in outcome.message(f"on_{policy}")
        assert rows(f"select count(*), max(made_by) from main.on_{policy}") == [(10, "same")]
    assert columns_of(spark, "append_new_columns")["n"] == "int"
    assert rows("select id, n, gone, came from main.on_append_new_columns where id in (4, 14)") == [
        (4, 4, "then 4", None),
        (14, 14, None, "now 14"),
    ]
    assert columns_of(spark, "sync_all_columns") == {
        "id": "bigint",
        "n": "bigint",
        "made_by": "string",
        "came": "string",
    }
    assert rows("select id, n, came, made_by from main.on_sync_all_columns where id in (4, 5, 14)") == [
        (4, 4, None, "same"),
        (5, 5, "now 5", "other"),
        (14, 14, "now 14", "other"),
    ]
