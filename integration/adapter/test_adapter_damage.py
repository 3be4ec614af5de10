"""Damaged metadata or files, and steps that fail after a commit: what dbt says, and how a user goes on."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from dbt.adapters.zlayout import ZTable

LOG = ".zlayout/timeline/log/00000000000000000000.json"


@pytest.fixture
def folder(dbt, spark):
    """The folder of the table to damage. Its model is rebuilt afterwards."""
    dbt.operation("drop_it", identifier="damaged")
    assert dbt("run", "--select", "damaged").success
    yield _folder(spark)
    assert dbt("run", "--select", "damaged", "--full-refresh").success


def _folder(spark):
    return Path(unquote(urlsplit(ZTable.for_name(spark, "main.damaged").location).path))


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_damaged_log_entry_is_named_and_a_full_refresh_rebuilds_the_table(dbt, spark, folder):
    (folder / LOG).write_text("{")
    before = content(folder)
    failed = dbt("run", "--select", "damaged")
    assert not failed.success
    told = failed.message("damaged")
    assert f"{LOG} is not JSON" in told
    assert "--full-refresh" in told
    assert "Traceback" not in told
    anew = dbt("run", "--select", "damaged", "--full-refresh", rows=7)
    assert anew.success, anew.log
    assert (anew.message("damaged"), anew.response("damaged")["version"]) == ("7 rows in 1 file", 0)
    assert any(LOG in line and str(folder) in line for line in anew.log.splitlines())
    assert dbt("run", "--select", "damaged", rows=1).success
    assert spark.table("main.damaged").count() == 8
    assert content(folder) == before
    assert _folder(spark) != folder


@pytest.mark.slow
def test_the_error_for_a_table_without_its_log_says_what_is_left_and_what_to_do(dbt, spark, folder):
    shutil.rmtree(folder / ".zlayout")
    before = content(folder)
    failed = dbt("run", "--select", "damaged")
    assert not failed.success
    told = failed.message("damaged")
    for part in (
        f"{folder}: the log in .zlayout is gone",
        "0.compact is left: queries still read version 0, 1 file",
        "run ZTable.adopt(spark, ",
        "rebuild with --full-refresh, which leaves this folder untouched",
    ):
        assert part in " ".join(told.split())
    assert content(folder) == before
    anew = dbt("run", "--select", "damaged", "--full-refresh", rows=7)
    assert anew.success, anew.log
    assert spark.table("main.damaged").count() == 7
    assert content(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize("left", ["nothing", "files"])
def test_a_run_does_not_continue_with_a_table_whose_rows_are_gone(dbt, spark, folder, left):
    shutil.rmtree(folder)
    if left == "files":
        spark.sql("select 1L as id").write.parquet(str(folder))
    failed = dbt("run", "--select", "damaged")
    assert not failed.success
    told = " ".join(failed.message("damaged").split())
    assert ("was overwritten by another tool" if left == "files" else "holds no table any more") in told
    assert "rebuild its model with --full-refresh" in told
    anew = dbt("run", "--select", "damaged", "--full-refresh", rows=7)
    assert anew.success, anew.log
    assert spark.table("main.damaged").count() == 7


@pytest.mark.slow
def test_the_index_test_names_a_missing_data_file(dbt, spark, folder):
    assert dbt("test", "--select", "damaged").success
    assert dbt("run", "--select", "damaged").success
    files = sorted(ZTable.for_name(spark, "main.damaged").snapshot().files["path"].to_pylist())
    assert len(files) == 2
    (folder / files[1]).unlink()
    tested = dbt("test", "--select", "damaged", "--store-failures")
    assert not tested.success
    (result,) = tested.results.values()
    assert (str(result.status), result.failures) == ("fail", 1)
    (row,) = spark.table(f"main_dbt_test__audit.{result.node.alias}").collect()
    assert (row.path, row.cell, row.stored) == (files[1], "file", "listed by the table")
    assert row.found.startswith("not in the folder; ")


def test_unfinished_steps_after_a_commit_are_in_the_response_and_on_the_line(dbt, spark, folder):
    assert dbt("run", "--select", "damaged").response("damaged").get("unfinished") is None
    record = folder / ".zlayout/timeline/clean/20240101000000000.json"
    record.parent.mkdir(exist_ok=True)
    record.write_text("{")
    done = dbt("run", "--select", "damaged")
    assert done.success
    (problem,) = done.response("damaged")["unfinished"]
    assert problem.startswith("old versions are not cleaned: ")
    assert record.name in problem
    assert done.message("damaged") == "v2 +10 ~0 -0 rows in 1 new file, 1 step left to the next writer"
    assert any(record.name in line and "version 2 is committed" in line for line in done.log.splitlines())
    assert spark.table("main.damaged").count() == 30
    record.unlink()
    assert dbt("run", "--select", "damaged").response("damaged").get("unfinished") is None
