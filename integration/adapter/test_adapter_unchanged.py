"""Models that skip a run when nothing has changed: what they are made from, and what makes them run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.table.ztable import ZTable

MODELS = ("ups", "ups_seen", "skips", "skips_increment")


@pytest.fixture(autouse=True)
def built(dbt, spark):
    spark.sql("create schema if not exists main")
    spark.sql("drop table if exists main.others")
    spark.range(50).coalesce(1).write.format("parquet").saveAsTable("main.others")
    done = dbt("run", "--full-refresh", "--select", *MODELS)
    assert done.success, done.log


def run(dbt, model="skips", *options, **variables):
    done = dbt("run", "--select", model, *options, dbt_vars=variables)
    assert done.success, done.log
    return done


def skipped(done, model="skips"):
    return done.message(model).startswith("unchanged since v")


def test_an_unchanged_model_writes_nothing_and_says_so(dbt, spark):
    version = ZTable.for_name(spark, "main.skips").version
    done = run(dbt)
    assert (
        done.message("skips")
        == f"unchanged since v{version}: ups v{ZTable.for_name(spark, 'main.ups').version}, others (1 file)"
    )
    assert done.response("skips")["version"] == ZTable.for_name(spark, "main.skips").version == version
    assert done.response("skips")["rows_affected"] == 0
    (told,) = dbt.artifact("run_results.json")["results"]
    assert told["message"].startswith("unchanged since v")
    # Neither comments nor white space nor another layout of what it reads change the rows.
    assert skipped(run(dbt, comment="-- a comment\n  "))
    ZTable.for_name(spark, "main.ups").cluster(rewrite_all=True)
    ZTable.for_name(spark, "main.skips").cluster(rewrite_all=True)
    assert skipped(run(dbt))


def test_the_error_of_a_hook_says_that_the_model_was_skipped(dbt, spark):
    failed = dbt("run", "--select", "skips", dbt_vars={"hook_fails": True})
    assert not failed.success
    version = ZTable.for_name(spark, "main.skips").version
    assert f"post-hook failed after the model itself succeeded (unchanged since v{version}: " in failed.message("skips")
    assert skipped(run(dbt))


def test_a_process_that_runs_dbt_again_sees_the_files_of_other_processes(dbt, spark):
    folder = Path(urlsplit(spark.sql("describe extended main.others").where("col_name = 'Location'").first()[1]).path)
    assert skipped(run(dbt))
    pq.write_table(pa.table({"id": pa.array([900], pa.int64())}), folder / "later.parquet")
    done = run(dbt)
    assert "main.others has other files" in done.log
    assert not skipped(done)


@pytest.mark.slow
def test_a_model_without_the_key_stores_what_it_was_made_from(dbt, spark):
    assert not skipped(run(dbt, skips=False))
    version = ZTable.for_name(spark, "main.skips").version
    told = dbt.operation("zlayout_why_run", model="ups").printed
    assert told.startswith("ups: would run: skip_unchanged is not set; with it, unchanged since v")
    assert skipped(run(dbt))
    assert ZTable.for_name(spark, "main.skips").version == version


@pytest.mark.slow
def test_whatever_may_change_the_rows_makes_the_model_run(dbt, spark):
    ups = ZTable.for_name(spark, "main.ups")
    ups.delete("id = 99")
    done = run(dbt)
    assert not skipped(done)
    assert f"main.ups has other rows since v{ups.version} (v{ups.version - 1} was read)" in done.log
    assert skipped(run(dbt))
    spark.range(3).coalesce(1).write.insertInto("main.others")
    done = run(dbt)
    assert not skipped(done)
    assert "main.others has other files" in done.log
    assert not skipped(run(dbt, comment=", 1 as one"))
    assert not skipped(run(dbt))
    assert not skipped(run(dbt, "skips", "--full-refresh"))
    assert skipped(run(dbt))
    # A view between the model and the table.
    assert not skipped(run(dbt, "ups_seen+", most=2))
    assert skipped(run(dbt))
    ZTable.for_name(spark, "main.skips").delete("id = 1")
    done = run(dbt)
    assert not skipped(done)
    assert "its rows or columns were last changed by something other" in done.log
    assert spark.table("main.skips").where("id = 1").count() == 1


@pytest.mark.slow
def test_an_incremental_model_skips_after_a_run_that_found_no_rows(dbt, spark):
    # The first increment has other SQL than the first build.
    told = dbt.operation("zlayout_why_run", model="skips_increment").printed
    assert told == "skips_increment: would run: its SQL differs on the first run after a build (is_incremental)"
    assert not skipped(run(dbt, "skips_increment"), "skips_increment")
    assert skipped(run(dbt, "skips_increment"), "skips_increment")
    ZTable.for_name(spark, "main.ups").append(spark.sql("select 1000L as id, 1L as kind"))
    assert not skipped(run(dbt, "skips_increment"), "skips_increment")
    assert spark.table("main.skips_increment").count() == 101
    # It reads its own table, and its last run changed that.
    assert not skipped(run(dbt, "skips_increment"), "skips_increment")
    assert skipped(run(dbt, "skips_increment"), "skips_increment")


@pytest.mark.slow
def test_a_condition_of_a_merge_that_depends_on_the_time_makes_the_model_run(dbt):
    run(dbt, "skips_increment")
    fixed, of_today = "id < 0 and date'2024-01-01' > date'2024-01-02'", "id < 0 and current_date() > date'2024-01-01'"
    assert not skipped(run(dbt, "skips_increment", gone=fixed), "skips_increment")
    assert skipped(run(dbt, "skips_increment", gone=fixed), "skips_increment")
    for _ in range(2):
        done = run(dbt, "skips_increment", gone=of_today)
        assert not skipped(done, "skips_increment")
    assert "it uses the current time, user or schema" in done.log


def test_a_model_that_no_longer_keeps_its_rows_runs(dbt, spark):
    run(dbt, "skips_kept", "--full-refresh")
    ZTable.for_name(spark, "main.ups").append(spark.sql("select 1000L as id, 1L as kind"))
    run(dbt, "skips_kept")
    assert spark.table("main.skips_kept").count() == 201
    assert not skipped(run(dbt, "skips_kept", kept_as="table"), "skips_kept")
    assert spark.table("main.skips_kept").count() == 101


@pytest.mark.slow
def test_columns_count_as_rows_do(dbt, spark):
    run(dbt, "skips_kept", "--full-refresh")
    ids = spark.sql("select 1L as id where false")
    ZTable.for_name(spark, "main.skips_kept").append(ids, on_schema_change="sync_all_columns")
    assert spark.table("main.skips_kept").columns == ["id"]
    assert not skipped(run(dbt, "skips_kept", kept_as="table"), "skips_kept")
    assert spark.table("main.skips_kept").columns == ["id", "kind"]
    ids = spark.sql("select 1L as id, 1L as kind, 'x' as word where false")
    ZTable.for_name(spark, "main.ups").append(ids, on_schema_change="append_new_columns")
    told = dbt.operation("zlayout_why_run", model="skips").printed
    assert told == "skips: would run: main.ups has other columns"
    assert not skipped(run(dbt))


@pytest.mark.slow
@pytest.mark.parametrize("rewrites", [False, True])
def test_another_version_of_the_same_number_makes_the_model_run(dbt, spark, tmp_path, rewrites):
    folder = Path(urlsplit(ZTable.for_name(spark, "main.ups").location).path)
    shutil.copytree(folder, tmp_path / "saved")
    ZTable.for_name(spark, "main.ups").append(spark.sql("select 1000L as id, 1L as kind"))
    run(dbt)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "saved", folder)
    spark.catalog.refreshTable("main.ups")
    ups = ZTable.for_name(spark, "main.ups")
    ups.append(spark.sql("select 2000L as id, 1L as kind"))
    if rewrites:
        ups.cluster(rewrite_all=True)
    assert not skipped(run(dbt))
    assert spark.table("main.skips").where("id = 2000").count() == 1


@pytest.mark.slow
def test_a_model_whose_last_version_cannot_be_read_runs(dbt, spark, tmp_path):
    spark.sql("drop table main.skips")
    spark.range(3).selectExpr("id", "id as found").write.saveAsTable("main.skips", path=str(tmp_path / "skips"))
    assert not skipped(run(dbt))
    assert spark.table("main.skips").count() == 100


@pytest.mark.slow
def test_a_python_model_with_the_key_runs_once(dbt, tmp_path, monkeypatch):
    runs = tmp_path / "runs"
    monkeypatch.setenv("RUNS_OF_PYTHON_MODEL", str(runs))
    for number in (1, 2):
        assert not skipped(run(dbt, "skips_python"), "skips_python")
        assert len(runs.read_text().splitlines()) == number


@pytest.mark.parametrize(
    ("addition", "why"),
    [
        pytest.param(", rand() as r", "a function such as rand or uuid", marks=pytest.mark.slow),
        (", current_timestamp() as t", "the current time, user or schema (current_timestamp)"),
    ],
)
def test_rows_that_differ_from_run_to_run_are_never_skipped(dbt, addition, why):
    done = run(dbt, comment=addition)
    assert not skipped(done)
    done = run(dbt, comment=addition)
    assert not skipped(done)
    assert why in done.log


@pytest.mark.slow
def test_a_comment_in_the_file_is_told_apart_from_what_makes_a_model_run(dbt):
    path = dbt.folder / "models/unchanged/skips.sql"
    text = path.read_text()
    path.write_text(text + "\n-- seen\n")
    try:
        told = dbt.operation("zlayout_why_run", model="skips").printed
        assert told.startswith("skips: would run if its compiled SQL has changed too: its file has changed since v")
        assert skipped(run(dbt))
    finally:
        path.write_text(text)


def test_why_run_names_what_would_make_a_model_run(dbt, spark):
    told = dbt.operation("zlayout_why_run", model="skips")
    assert told.success, told.log
    assert told.printed.startswith("skips: unchanged since v")
    assert dbt.operation("zlayout_why_run", model="main.skips").printed == told.printed
    ZTable.for_name(spark, "main.ups").delete("id = 3")
    told = json.loads(dbt.operation("zlayout_why_run", json=True).printed)
    assert told["skips"]["skip_unchanged"]
    assert not told["ups"]["skip_unchanged"]
    assert [each.partition(" since")[0] for each in told["skips"]["reasons"]] == ["main.ups has other rows"]
    assert told["ups"]["reasons"][0] == "skip_unchanged is not set"
    assert told["ups"]["reasons"][1].startswith("its rows or columns were last changed by something other")
    # A view below it, which dbt or someone else has changed since.
    assert not skipped(run(dbt))
    run(dbt, "ups_seen", most=2)
    told = dbt.operation("zlayout_why_run", model="skips").printed
    assert told == "skips: would run: the view main.ups_seen has changed"
    spark.sql("drop view main.ups_seen")
    told = dbt.operation("zlayout_why_run", model="skips").printed
    assert told == "skips: would run: the view main.ups_seen is gone"
    refused = dbt.operation("zlayout_why_run", model="main.others")
    assert "'main.others' is not a model of this project" in str(refused.exception) + refused.log
    refused = dbt.operation("zlayout_why_run", model="skpis")
    assert not refused.success
    assert "did you mean 'skips'?" in str(refused.exception) + refused.log
