"""How well a table is laid out: the run-operation, the adapter's method, and the tests with a limit."""

from __future__ import annotations

import json

import pytest

from dbt.adapters.zlayout.table.ztable import ZTable


@pytest.fixture(scope="module", autouse=True)
def laid_out(dbt):
    assert dbt("run", "--select", "laid_out").success


def test_info_shows_the_layout_for_the_keys(dbt):
    short = dbt.operation("zlayout_info", model="laid_out").printed.splitlines()
    assert short[0].startswith("Good: a lookup on id reads ")
    assert len(short) == 3
    outcome = dbt.operation("zlayout_info", model="laid_out", verbose=True)
    assert outcome.success, outcome.log
    lines = outcome.printed.splitlines()
    assert lines[0] == short[0]
    assert "layout for id, code" in lines
    assert [line.split()[0] for line in lines if line.startswith(("  id ", "  code "))] == ["id", "code"]
    assert any(line.startswith("  all together") for line in lines)
    assert any("####" in line for line in lines)
    assert len(lines) < 40


def test_info_takes_columns_and_prints_json(dbt):
    outcome = dbt.operation("zlayout_info", model="main.laid_out", columns=["WORD"], json=True)
    assert outcome.success, outcome.log
    found = json.loads(outcome.printed)
    assert found["rows"] == found["clustering"]["rows"] == 20000
    assert found["clustering"]["columns"] == ["word"]
    assert sum(found["clustering"]["depth_histogram"].values()) == found["files"]
    assert found["clustering"]["average_depth"] > 2


@pytest.mark.exhaustive
def test_info_names_the_columns_that_can_be_measured(dbt):
    outcome = dbt.operation("zlayout_info", model="laid_out", columns=["cod"])
    assert not outcome.success
    told = str(outcome.exception) + outcome.log
    assert "'cod' has no statistics;" in told
    assert "choose among id, code, word" in told


@pytest.mark.exhaustive
def test_the_adapter_method_returns_the_same(dbt):
    found = json.loads(dbt.operation("layout_of", identifier="laid_out", predicate="id < 100").printed)
    assert found["columns"] == found["zorder"] == ["id", "code"]
    assert 0 < found["predicate"]["kept_files"] < found["predicate"]["total_files"] == found["files"]
    whole = json.loads(dbt.operation("zlayout_info", model="laid_out", json=True).printed)["clustering"]
    assert {**found, "predicate": None} == whole


@pytest.mark.parametrize("test", ["keys_lie_apart", "a_range_skips_enough", "a_column_is_not_too_deep"])
def test_a_good_layout_passes(dbt, test):
    outcome = dbt("test", "--select", test)
    assert outcome.success, outcome.log
    assert list(outcome.results) == [test]


def rows_of_failing(dbt, spark, test, **variables):
    outcome = dbt("test", "--select", test, "--store-failures", **variables)
    assert not outcome.success
    (result,) = outcome.results.values()
    assert result.failures == 1
    (row,) = spark.table(f"main_dbt_test__audit.{result.node.alias}").collect()
    assert row.what_to_do in outcome.log
    return row


def test_a_layout_that_is_too_deep_fails_with_what_was_measured(dbt, spark):
    row = rows_of_failing(dbt, spark, "words_are_too_deep")
    assert row["columns"] == "word"
    assert row.average_depth > row.at_most == 1.5
    assert "list word in zorder" in row.what_to_do
    column = rows_of_failing(dbt, spark, "a_column_is_not_too_deep", most=1.25)
    assert (column["columns"], column.at_most) == ("id", 1.25)
    assert "zlayout_cluster" in column.what_to_do


def test_a_condition_that_skips_too_little_fails_with_what_to_do(dbt, spark):
    row = rows_of_failing(dbt, spark, "an_ending_skips_nothing")
    assert (row.predicate, row.skipped_percent, row.at_least) == ("word like '%''7'", 0.0, 0.5)
    assert row.kept_files == row.total_files > 5
    assert row.what_to_do


@pytest.mark.parametrize("most", [0.5, "many"])
def test_a_limit_that_is_not_a_number_is_an_error(dbt, most):
    outcome = dbt("test", "--select", "a_column_is_not_too_deep", dbt_vars={"most": most})
    assert not outcome.success
    assert "is not a number of at least 1" in outcome.message("a_column_is_not_too_deep")


def test_settings_under_meta_count(dbt, spark):
    outcome = dbt("run", "--full-refresh", "--select", "set_in_meta")
    assert outcome.success, outcome.log
    found = ZTable.for_name(spark, "main.set_in_meta")
    assert found.information()["zorder"] == ["id"]
    assert len(found.files()) > 2


def test_the_report_of_a_project_has_its_tables_and_what_its_tests_read(dbt):
    # A path is relative to the project, wherever dbt runs.
    outcome = dbt.operation("zlayout_report", path="target/report.html")
    path = dbt.folder / "target" / "report.html"
    assert outcome.success, outcome.log
    assert "main.laid_out  Good: a lookup on id reads " in outcome.printed
    page = path.read_text("utf-8")
    assert "<strong>main.laid_out</strong>" in page
    assert "Conditions by files" in page
    told = json.loads(dbt.operation("zlayout_report", model="laid_out", json=True).printed)
    (table,) = told["tables"]
    assert told["path"] is None
    assert (table["rows"], table["verdict"]["level"]) == (20_000, "good")
    assert {each["source"] for each in table["conditions"]} >= {"a_range_skips_enough"}
    assert all(
        0 < each["files_read"] < each["files"]
        for each in table["conditions"]
        if each["source"] == "a_range_skips_enough"
    )


def test_a_report_without_a_place_says_what_to_give(dbt):
    outcome = dbt.operation("zlayout_report")
    assert not outcome.success
    assert "{path: report.html}" in str(outcome.exception) + outcome.log
