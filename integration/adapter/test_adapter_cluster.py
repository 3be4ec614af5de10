"""Clustering after a run and by run-operation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbt.adapters.zlayout import ZTable


@pytest.fixture(autouse=True)
def afresh(dbt):
    for name in ("clustered_inline", "clustered_later", "clustered_by_hook", "rebuilt_with_hook", "moves"):
        dbt.operation("drop_it", identifier=name)


def runs(dbt, model, count, rows=2_000, **variables):
    outcome = dbt("run", "--select", model)
    assert outcome.success, outcome.log
    for number in range(count):
        first = 20_000 + number * rows
        outcome = dbt("run", "--select", model, **{"from": first, "to": first + rows, **variables})
        assert outcome.success, outcome.log
        yield outcome


@pytest.mark.slow
def test_a_run_clusters_files_after_its_rows_if_it_pays_off(dbt, spark):
    outcomes = list(runs(dbt, "clustered_inline", 6))
    done = [outcome.response("clustered_inline").get("clustered") for outcome in outcomes]
    clustered = [each for each in done if each is not None]
    assert clustered
    assert all(each["files_read_after"] < each["files_read_before"] for each in clustered)
    assert any("clustered" in outcome.message("clustered_inline") for outcome in outcomes)
    assert spark.table("main.clustered_inline").count() == 32_000
    assert spark.table("main.clustered_inline").select("id").distinct().count() == 32_000


@pytest.mark.exhaustive
def test_clustering_waits_for_cluster_every_commits(dbt, spark):
    outcomes = list(runs(dbt, "clustered_inline", 4, every=3))
    done = [outcome.response("clustered_inline").get("clustered") is not None for outcome in outcomes]
    assert done[:2] == [False, False]
    assert "clustering" in ZTable.for_name(spark, "main.clustered_inline").history().column("operation").to_pylist()


@pytest.mark.slow
def test_a_deferred_plan_is_executed_by_a_run_operation(dbt, spark):
    outcomes = list(runs(dbt, "clustered_later", 6))
    assert any("zlayout_cluster with execute: true" in outcome.log for outcome in outcomes)
    assert all(outcome.response("clustered_later").get("clustered") is None for outcome in outcomes)
    dry = dbt.operation("zlayout_cluster_plan", model="clustered_later")
    assert dry.success, dry.log
    assert "would rewrite" in dry.printed
    packed = dbt.operation("zlayout_cluster_plan", model="clustered_later", strategy="binpack")
    # These files are too large to be worth packing.
    assert "main.clustered_later: nothing to gain" in packed.printed
    sort = dbt.operation("zlayout_cluster_plan", model="clustered_later", strategy="sort", sort_by=["id"])
    assert "sorted by id" in sort.printed
    unnamed = dbt.operation("zlayout_cluster", strategy="sort", sort_by=["id"])
    assert "sort_by: the columns belong to one table" in str(unnamed.exception) + unnamed.log
    done = dbt.operation("zlayout_cluster", model="clustered_later", execute=True)
    assert done.success, done.log
    assert "a point lookup now reads" in done.printed
    assert spark.table("main.clustered_later").count() == 32_000
    again = dbt.operation("zlayout_cluster", model="clustered_later", json=True)
    (report,) = json.loads(again.printed)
    assert (report["table"], report["bytes_rewritten"], report["dry_run"]) == ("main.clustered_later", 0, False)


@pytest.mark.slow
def test_a_hook_packs_small_files_and_the_line_of_the_run_says_so(dbt, spark):
    outcomes = list(runs(dbt, "clustered_by_hook", 4, rows=10))
    table = ZTable.for_name(spark, "main.clustered_by_hook")
    assert len(table.snapshot().files) < 4
    assert spark.table("main.clustered_by_hook").count() == 50
    told = [outcome for outcome in outcomes if "clustered" in outcome.response("clustered_by_hook")]
    assert told
    for outcome in told:
        done = outcome.response("clustered_by_hook")["clustered"]
        line = outcome.message("clustered_by_hook")
        assert line.endswith(f", {done['files_removed']} files clustered into {done['files_added']}")


@pytest.mark.slow
@pytest.mark.parametrize("size", ["128mb", "16kb"])
def test_a_hook_after_a_fresh_build_does_nothing(dbt, spark, size):
    # Later builds use the cuts of the first, and hold fewer rows, then more.
    for rows in (60_000, 25_000, 100_000):
        outcome = dbt("run", "--select", "rebuilt_with_hook", rows=rows, size=size)
        assert outcome.success, outcome.log
        table = ZTable.for_name(spark, "main.rebuilt_with_hook")
        files = len(table.snapshot().files)
        assert outcome.message("rebuilt_with_hook") == f"{rows:,} rows in {files:,} file" + "s" * (files > 1)
        assert "clustered" not in outcome.response("rebuilt_with_hook")
        assert table.version == outcome.response("rebuilt_with_hook")["version"]


@pytest.mark.slow
def test_another_partition_by_moves_the_rows_of_a_model_to_other_folders(dbt, spark):
    assert dbt("run", "--select", "moves").success
    again = {"from": 50, "to": 80, "times": 2}
    changed = dbt("run", "--select", "moves", folders=["part"], keys=["told"], **again)
    assert changed.success, changed.log
    assert "the partition columns change from nothing to part: 60 rows will be rewritten" in changed.log
    assert "dbt run-operation zlayout_cluster --args '{model: main.moves}'" in changed.log
    assert changed.message("moves").startswith("v2 +20 ~10 -0 rows")
    expected = [(number, number * (2 if number >= 50 else 1)) for number in range(80)]
    table = ZTable.for_name(spark, "main.moves")
    assert table.snapshot().partition_by == ("part",)
    assert sorted(tuple(row) for row in spark.table("main.moves").select("id", "told").collect()) == expected
    by_hand = dbt.operation("zlayout_cluster", model="moves", partition_by=[], json=True)
    (report,) = json.loads(by_hand.printed)
    assert (report["groups_done"], report["groups_failed"]) == (1, [])
    assert ZTable.for_name(spark, "main.moves").snapshot().partition_by == ()
    assert sorted(tuple(row) for row in spark.table("main.moves").select("id", "told").collect()) == expected


def test_a_hook_on_another_table_leaves_it_the_settings_of_its_own_model(dbt, spark):
    outcome = dbt("run", "--select", "moves", "hooks_another")
    assert outcome.success, outcome.log
    assert "main.moves: nothing to gain" in outcome.log
    assert ZTable.for_name(spark, "main.hooks_another").snapshot().partition_by == ("part",)
    assert ZTable.for_name(spark, "main.moves").snapshot().partition_by == ()


@pytest.mark.slow
def test_the_operation_names_the_groups_that_failed_and_commits_the_others(dbt, spark):
    assert dbt("run", "--select", "moves", folders=["part"]).success
    assert dbt("run", "--select", "moves", folders=["part"], **{"from": 60, "to": 90}).success
    table = ZTable.for_name(spark, "main.moves")
    paths = table.snapshot().files["path"].to_pylist()
    root = Path(table.location.removeprefix("file://"))
    (root / next(path for path in paths if path.startswith("part=1/"))).unlink()
    done = dbt.operation("zlayout_cluster", model="moves", min_input_files=1, partial_progress=True)
    assert done.success, done.log
    assert "main.moves: 4 files → " in done.printed
    assert "failed on a group of 2 files in part=1: " in done.printed
    failed = dbt.operation("zlayout_cluster", model="moves", min_input_files=1)
    assert not failed.success
    assert "no group could be clustered" in str(failed.exception) + failed.log


@pytest.mark.slow
def test_the_operation_names_a_wrong_setting_and_a_table_that_is_only_indexed(dbt, spark):
    assert dbt("run", "--select", "clustered_inline").success
    wrong = dbt.operation("zlayout_cluster", model="clustered_inline", max_bytes="much")
    assert not wrong.success
    assert "max_bytes: 'much' is not a size" in str(wrong.exception) + wrong.log
    spark.sql("create table if not exists main.only_indexed using parquet as select 1 as id")
    assert dbt.operation("zlayout_refresh_index", model="main.only_indexed").success
    refused = dbt.operation("zlayout_cluster", model="main.only_indexed")
    assert not refused.success
    assert "only indexed" in str(refused.exception) + refused.log
    spark.sql("drop table main.only_indexed")
