"""Tests and run-operations: whether the index is fresh, and what a query reads and why."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest


@pytest.fixture(autouse=True)
def clustered(dbt):
    assert dbt("run", "--select", "clustered").success


def location_of(spark, table):
    (row,) = spark.sql(f"describe extended {table}").where("col_name = 'Location'").collect()
    return Path(unquote(urlparse(row.data_type).path))


def test_explain_shows_which_files_a_query_reads(dbt):
    outcome = dbt.operation("zlayout_explain", sql="select * from {{ ref('clustered') }} where id < 10")
    assert outcome.success, outcome.log
    assert "main.clustered" in outcome.printed
    assert "id" in outcome.printed
    assert "SKIP" in outcome.printed


def test_explain_of_a_model_and_a_predicate_can_print_json(dbt):
    outcome = dbt.operation("zlayout_explain", model="clustered", predicate="id < 10", json=True)
    assert outcome.success, outcome.log
    (explained,) = json.loads(outcome.printed)
    assert 0 < explained["kept_files"] < explained["total_files"]
    assert explained["kept_files"] + explained["skipped_files"] == explained["total_files"]
    assert {row["verdict"] for row in explained["files"]} >= {"SKIP"}


def test_the_adapter_method_returns_the_same(dbt):
    outcome = dbt.operation("pruning_of", identifier="clustered", predicate="id < 10")
    assert 0 < json.loads(outcome.printed)["kept_files"] < json.loads(outcome.printed)["total_files"]


def test_explain_without_arguments_shows_its_usage(dbt):
    outcome = dbt.operation("zlayout_explain")
    assert not outcome.success
    assert "{sql:" in str(outcome.exception) + outcome.log


def test_info_shows_the_state_of_a_table(dbt):
    outcome = dbt.operation("zlayout_info", model="clustered")
    assert outcome.success, outcome.log
    assert "20,000" in outcome.printed
    assert json.loads(dbt.operation("zlayout_info", model="main.clustered", json=True).printed)["rows"] == 20000


def test_the_error_for_a_misspelled_model_suggests_a_name(dbt):
    outcome = dbt.operation("zlayout_info", model="clusterd")
    assert not outcome.success
    assert "did you mean 'clustered'" in str(outcome.exception) + outcome.log


def test_the_freshness_test_passes_on_a_new_table_and_fails_on_a_stray_file(dbt, spark):
    assert dbt("test", "--select", "clustered").success
    folder = location_of(spark, "main.clustered")
    stray = folder / "it's stray.parquet"
    stray.write_bytes(next(folder.rglob("*.parquet")).read_bytes())
    try:
        outcome = dbt("test", "--select", "clustered", "--store-failures")
        assert not outcome.success
        (result,) = outcome.results.values()
        assert result.failures == 1
        (status,) = json.loads(dbt.operation("status_of", identifier="clustered").printed)
        assert status["path"].endswith("it's stray.parquet")
        assert status["reason"]
        stored = spark.table(f"main_dbt_test__audit.{result.node.alias}").collect()
        assert [row.path for row in stored] == [status["path"]]
    finally:
        stray.unlink()
    assert dbt("test", "--select", "clustered").success
