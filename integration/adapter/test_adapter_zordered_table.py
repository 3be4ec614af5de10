"""The materialization: what a run creates, and what a failed run leaves unchanged."""

from __future__ import annotations

import json

import pytest


def test_the_line_of_a_run_has_rows_and_files(dbt, rows):
    outcome = dbt("run", "--select", "clustered")
    assert outcome.success, outcome.log
    response = outcome.response("clustered")
    assert rows("select count(*), sum(id) from main.clustered") == [(20000, 199990000)]
    assert response["rows"] == response["rows_affected"] == 20000
    assert response["files_added"] > 1
    assert outcome.message("clustered") == f"20,000 rows in {response['files_added']} files"
    assert f"{outcome.message('clustered')}\x1b[0m in " in outcome.log
    written = dbt.artifact("run_results.json")["results"][0]["adapter_response"]
    assert {
        "version",
        "instant",
        "rows",
        "files_added",
        "files_removed",
        "bytes_added",
        "bytes_removed",
        "data_passes",
        "overlap_depth",
        "seconds",
    } <= set(written)
    assert len(written["instant"]) == 17
    assert sum(written["seconds"].values()) > 0


@pytest.mark.exhaustive
def test_a_rebuild_with_another_schema_replaces_the_table(dbt, rows, spark):
    first = dbt("run", "--select", "clustered")
    second = dbt("run", "--select", "clustered", variant="changed")
    assert second.success, second.log
    assert second.response("clustered")["version"] == first.response("clustered")["version"] + 1
    assert second.response("clustered")["files_removed"] == first.response("clustered")["files_added"]
    assert [(f.name, f.dataType.simpleString()) for f in spark.table("main.clustered").schema] == [
        ("id", "string"),
        ("code", "bigint"),
        ("added", "string"),
    ]
    assert rows("select count(*), max(added) from main.clustered where code = 5") == [(207, "new")]


def test_a_failing_query_leaves_the_table_unchanged(dbt, rows, folders):
    assert dbt("run", "--select", "clustered").success
    before, places = rows("select count(*), sum(id), max(dropped) from main.clustered"), folders()
    failed = dbt("run", "--select", "clustered", variant="failing")
    assert not failed.success
    assert "no luck today" in failed.message("clustered")
    assert "at org.apache.spark" not in failed.message("clustered")
    assert rows("select count(*), sum(id), max(dropped) from main.clustered") == before
    assert folders() == places


def test_wrong_settings_are_one_error_before_any_hook(dbt, spark):
    outcome = dbt("run", "--select", "wrong", wrong=True)
    assert not outcome.success
    for word in ("`zordr`: did you mean `zorder`?", "zorder", "'peano'", "'much'", "buckets"):
        assert word in outcome.message("wrong")
    assert not spark.catalog.tableExists("main.the_hook_ran")


def test_a_key_that_the_query_does_not_have_is_a_compilation_error(dbt, spark):
    outcome = dbt("run", "--select", "wrong_column", wrong=True)
    assert not outcome.success
    assert "Compilation Error" in outcome.message("wrong_column")
    assert "did you mean 'id'?" in outcome.message("wrong_column")
    assert not spark.catalog.tableExists("main.wrong_column")


def test_comments_and_properties_reach_the_catalog(dbt, spark, rows):
    outcome = dbt("run", "--select", "documented")
    assert outcome.success, outcome.log
    assert "gone" in outcome.log
    described = {row.col_name: row.comment for row in spark.sql("describe main.documented").collect()}
    assert described == {"id": 'the "first" one', "größe.x": "with a dot"}
    assert ("Comment", "It's all of it") in {row[:2] for row in rows("describe extended main.documented")}
    assert ("team", "lake") in rows("show tblproperties main.documented")


def test_dbt_docs_have_columns_comments_and_sizes(dbt):
    assert dbt("run", "--select", "documented").success
    outcome = dbt("docs", "generate", "--select", "documented")
    assert outcome.success, outcome.log
    (node,) = [
        node for node in dbt.artifact("catalog.json")["nodes"].values() if node["metadata"]["name"] == "documented"
    ]
    assert {name: column["type"] for name, column in node["columns"].items()} == {"id": "long", "größe.x": "long"} or {
        name: column["type"] for name, column in node["columns"].items()
    } == {"id": "bigint", "größe.x": "bigint"}
    assert node["stats"]["rows"]["value"] == 10


@pytest.mark.slow
def test_a_contract_orders_columns_and_enforces_not_null_and_types(dbt, spark, rows):
    outcome = dbt("run", "--select", "contracted")
    assert outcome.success, outcome.log
    assert spark.table("main.contracted").columns == ["id", "word"]
    assert "unique" in outcome.log
    nulls = dbt("run", "--select", "contracted", variant="null")
    assert not nulls.success
    assert "id" in nulls.message("contracted")
    assert "null" in nulls.message("contracted").lower()
    retyped = dbt("run", "--select", "contracted", variant="type")
    assert not retyped.success
    assert "contract" in retyped.message("contracted")
    assert rows("select count(*), count(id) from main.contracted") == [(10, 10)]


def test_hooks_run_before_and_after_the_write(dbt, rows):
    assert dbt("run", "--select", "hooked").success
    assert rows("select what, n from main.hook_log") == [("after", 0), ("post", 10), ("pre", 0)]
    outcome = dbt("run", "--select", "hooked", rows_expected=9)
    assert not outcome.success
    message = outcome.message("hooked")
    assert "post-hook 3 of 4 failed after the model itself succeeded (10 rows in 1 file): " in message, message
    assert "not so many rows" in message
    outcome = dbt("run", "--select", "hooked", fails_before=True)
    assert "pre-hook 3 of 3 failed, so the model did not run: " in outcome.message("hooked"), outcome.message("hooked")


@pytest.mark.exhaustive
def test_a_model_can_read_its_own_last_version(dbt, rows):
    for _ in range(3):
        outcome = dbt("run", "--select", "itself")
        assert outcome.success, outcome.log
    assert rows("select run from main.itself") == [(1,), (2,), (3,)]


@pytest.mark.exhaustive
def test_a_model_changes_between_view_table_and_zordered_table(dbt, rows, folders):
    for variant in ("first", "clustered", "plain", "clustered", "first"):
        outcome = dbt("run", "--select", "turns", variant=variant)
        assert outcome.success, (variant, outcome.log)
        assert rows("select distinct made_by from main.turns") == [(variant,)]
    assert not [folder for folder in folders() if "turns" in folder]


@pytest.mark.exhaustive
def test_a_failing_query_leaves_the_view_with_its_name(dbt, rows):
    assert dbt("run", "--select", "turns").success
    assert not dbt("run", "--select", "turns", variant="failing").success
    assert rows("select distinct made_by from main.turns") == [("first",)]
    assert [row[1] for row in rows("show tables in main like 'turns*'")] == ["turns"]


@pytest.mark.exhaustive
def test_an_empty_run_makes_an_empty_table(dbt, rows):
    outcome = dbt("run", "--select", "+reader", "--empty")
    assert outcome.success, outcome.log
    assert rows("select count(*) from main.reader") == [(0,)]


@pytest.mark.slow
def test_a_clone_is_a_view_on_the_other_target(dbt, project_at, rows, tmp_path):
    assert dbt("run", "--select", "clustered").success
    state = tmp_path / "state"
    state.mkdir()
    (state / "manifest.json").write_text(json.dumps(dbt.artifact("manifest.json")))
    other = project_at(schema="dev")
    outcome = other("clone", "--select", "clustered", "--state", str(state))
    assert outcome.success, outcome.log
    assert rows("select count(*) from dev.clustered") == [(20000,)]
