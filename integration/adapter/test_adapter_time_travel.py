"""Older versions from dbt: in models, and through run-operations."""

from __future__ import annotations

import json

import pytest

from dbt.adapters.zlayout.spark.commit.catalog_entries import drop_table
from dbt.adapters.zlayout.table.ztable import ZTable


@pytest.fixture(autouse=True)
def versions(dbt, spark):
    """A model of three versions whose rows name their version. Rebuilt after a test that adds or cleans versions."""
    drop_table(spark, "main", "version_reader")
    if spark.catalog.tableExists("main.versions"):
        if ZTable.for_name(spark, "main.versions").history().column("version").to_pylist() == [2, 1, 0]:
            return
        drop_table(spark, "main", "versions")
    for turn in (1, 2, 3):
        build(dbt, "versions", turn=turn)


def build(dbt, *models, **variables):
    outcome = dbt("run", "--select", *models, past=True, **variables)
    assert outcome.success, outcome.log
    return outcome


def operation(dbt, name, **arguments):
    return dbt("run-operation", name, "--args", json.dumps(arguments), past=True)


def history(dbt):
    outcome = operation(dbt, "zlayout_history", model="versions", json=True)
    assert outcome.success, outcome.log
    return json.loads(outcome.printed)


@pytest.mark.parametrize(
    "kind",
    [*(pytest.param(kind, marks=pytest.mark.slow) for kind in ("table", "incremental")), "zordered_table"],
)
def test_a_model_reads_an_older_version_of_another(dbt, rows, kind):
    build(dbt, "version_reader", version=0, reader=kind)
    assert rows("select count(*), max(turn), max(dropped) from main.version_reader") == [(100, 1, "x")]
    if kind != "incremental":
        build(dbt, "version_reader", version="1", reader=kind)
        assert rows("select distinct turn from main.version_reader") == [(2,)]
    assert rows("select distinct turn from main.versions") == [(3,)]


@pytest.mark.exhaustive
def test_a_model_compares_a_version_with_the_newest(dbt, rows):
    build(dbt, "compared")
    assert rows("select distinct turn_now, turn_then from main.compared") == [(3, 1)]


@pytest.mark.exhaustive
def test_a_model_reads_the_version_at_a_time(dbt, rows):
    committed_at = history(dbt)[1]["committed_at"]
    assert committed_at.endswith(" UTC")
    build(dbt, "version_reader", timestamp=committed_at)
    assert rows("select distinct turn from main.version_reader") == [(2,)]


@pytest.mark.exhaustive
def test_empty_also_applies_to_an_older_version(dbt, rows):
    outcome = dbt("run", "--select", "version_reader", "--empty", past=True, version=0)
    assert outcome.success, outcome.log
    assert rows("select * from main.version_reader") == []


def test_a_view_of_a_version_is_an_error(dbt):
    outcome = dbt("run", "--select", "version_reader", past=True, version=0, reader="view")
    assert not outcome.success
    assert "temporary view" in outcome.message("version_reader")


def test_the_error_for_a_missing_version_names_the_readable_ones(dbt):
    outcome = dbt("run", "--select", "version_reader", past=True, version=7)
    assert not outcome.success
    assert "versions 0 to 2 can be read" in outcome.message("version_reader")
    assert "needs version" in dbt("run", "--select", "version_reader", past=True).message("version_reader")


@pytest.mark.exhaustive
def test_a_query_in_a_macro_reads_a_version(dbt):
    outcome = operation(dbt, "count_at", model="versions", version=1)
    assert outcome.printed == "100 2"


def test_history_prints_a_table_or_json(dbt):
    told = history(dbt)
    assert [row["version"] for row in told] == [2, 1, 0]
    lines = operation(dbt, "zlayout_history", model="versions", limit=2).printed.splitlines()
    assert lines[0] == "main.versions"
    assert lines[1].split()[4:] == ["rows", "+rows", "~rows", "-rows", "+files", "-files", "bytes", "added"]
    assert len(lines) == 4
    assert lines[2].split()[:2] == ["2", told[0]["committed_at"].split()[0]]
    assert lines[2].split()[4:11] == ["overwrite", "100", "-", "-", "-", "1", "1"]
    assert "whole number of at least 1" in failure(operation(dbt, "zlayout_history", model="versions", limit=0))


def failure(outcome):
    assert not outcome.success
    return str(outcome.exception) + outcome.log


@pytest.mark.slow
def test_a_rollback_restores_a_version(dbt, rows):
    outcome = operation(dbt, "zlayout_rollback", model="versions", version=0)
    assert outcome.success, outcome.log
    assert "main.versions: version 3 restores version 0: 100 rows, 1 file restored" in outcome.printed
    assert rows("select distinct turn, dropped from main.versions") == [(1, "x")]
    instant = history(dbt)[1]["instant"]
    done = operation(dbt, "zlayout_rollback", model="versions", instant=int(instant), json=True)
    assert json.loads(done.printed)["to_version"] == 2
    assert rows("select distinct turn from main.versions") == [(3,)]
    build(dbt, "versions", turn=4)
    assert rows("select distinct turn from main.versions") == [(4,)]
    assert [row["operation"] for row in history(dbt)[:3]] == ["overwrite", "rollback", "rollback"]
    assert "needs version, instant or timestamp" in failure(operation(dbt, "zlayout_rollback", model="versions"))


@pytest.mark.slow
def test_clean_deletes_what_the_dry_run_listed(dbt):
    arguments = {"model": "versions", "retain_versions": 1}
    told = operation(dbt, "zlayout_clean", dry_run=True, json=True, **arguments)
    (expected,) = json.loads(told.printed)
    lines = operation(dbt, "zlayout_clean", dry_run=True, **arguments).printed.splitlines()
    assert lines[0].startswith(f"main.versions: would delete {expected['files']} files (")
    assert lines[1:] == [f"  {path}" for path in expected["paths"]]
    assert operation(dbt, "count_at", model="versions", version=0).success
    (done,) = json.loads(operation(dbt, "zlayout_clean", json=True, **arguments).printed)
    assert done == {**expected, "dry_run": False}
    assert "version 2 can be read" in failure(operation(dbt, "count_at", model="versions", version=0))


@pytest.mark.exhaustive
def test_clean_without_a_model_cleans_the_project(dbt):
    build(dbt, "clustered", "reader_view")
    done = operation(dbt, "zlayout_clean", retain_versions=1, retain_hours=0, json=True)
    assert done.success, done.log
    cleaned = {result["table"]: result for result in json.loads(done.printed)}
    assert {"main.versions", "main.clustered"} <= set(cleaned)
    assert "main.reader_view" not in cleaned
    assert cleaned["main.versions"]["oldest_version"] == 2
    assert "retain_versions" in failure(operation(dbt, "zlayout_clean", retain_versions=0))
