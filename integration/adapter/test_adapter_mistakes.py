"""Common mistakes: the error has the value, what is allowed and the next step."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
import yaml


@pytest.fixture(scope="module")
def first(dbt, lake):
    """One run of every model with a mistake."""
    a_file = lake / "a file"
    a_file.write_text("no folder")
    return dbt("build", "--select", "tag:mistakes", "one_file", a_file=str(a_file))


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (
            "column_twice",
            "the query has 2 columns with the same name: `id`, `ID`; column names must be unique even if case is ignored",
        ),
        (
            "relative_root",
            "location_root: 'data/lake' is not absolute; write the full path, such as '/data/lake', or a URI",
        ),
        ("unknown_root", "location_root: 'foo://data/lake' has the scheme 'foo' (it is not known to create"),
        ("root_is_a_file", "a file is a file, not a folder; set location_root to a folder that can be written"),
    ],
)
def test_a_mistake_fails_the_model_with_one_sentence(first, model, told):
    assert first.results[model].status == "error"
    assert told in first.message(model)
    assert "Traceback" not in first.message(model)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (
            "key_of_no_column",
            "unique_key: 'order_id' is not a column of the query, which has orderid (did you mean 'orderid'?)",
        ),
        ("view_with_keys", "zorder ['id'] has no effect on a view, which has no files; set materialized to 'table'"),
        ("folders_of_one_row", "partition_by id spreads 120 rows over 120 files, 1 row per file; partition by"),
        ("rows_that_double", "incremental_strategy 'merge' without unique_key adds every row"),
    ],
)
def test_a_probable_mistake_is_a_warning(first, model, told):
    assert first.results[model].status == "success"
    assert [line for line in first.log.splitlines() if model in line and told in line]


def test_a_warning_after_the_commit_does_not_fail_the_model(dbt):
    """The rows are committed. If the model failed, a second run would add them again."""
    strict = ("--warn-error-options", '{"error": ["AdapterEventWarning"]}')
    assert not dbt(*strict, "run", "--select", "view_with_keys").success
    outcome = dbt(*strict, "run", "--select", "folders_of_one_row")
    assert outcome.success, outcome.log
    assert "partition_by id spreads 120 rows over 120 files" in outcome.log


def test_a_test_that_a_single_file_cannot_pass_says_so(first):
    assert "the table has 1 file, and a condition that matches a row cannot skip it" in first.log


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (
            "ignore",
            "column `many` is array<bigint> in the table and array<string> in the query; cast it to array<bigint>",
        ),
        (
            "fail",
            "column `nested` is struct<x:int> in the table and struct<x:double> in the query; cast it to struct<x:int>",
        ),
        ("fail", "column `one` is bigint in the table and string in the query; cast it to bigint in the query, set"),
    ],
)
def test_a_changed_type_is_named_in_spark_sql_with_the_next_step(dbt, first, policy, told):
    outcome = dbt("run", "--select", "other_types", policy=policy)
    assert told in outcome.message("other_types")
    assert "--full-refresh" in outcome.message("other_types")


@pytest.mark.parametrize("operation", ["zlayout_info", "zlayout_history", "zlayout_rollback"])
def test_an_operation_without_a_model_lists_the_models(dbt, operation):
    outcome = dbt.operation(operation)
    assert not outcome.success
    assert "model: missing; add --args '{model: NAME}', where NAME is " in str(outcome.exception) + outcome.log


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ("/nowhere/python", "cannot run the Python '/nowhere/python': there is no such program; unset PYSPARK_PYTHON"),
        ("a Python without the package", "No module named 'dbt'); unset PYSPARK_PYTHON"),
    ],
)
def test_a_python_that_cannot_run_workers_is_named_before_a_job_fails(dbt, monkeypatch, tmp_path, chosen, told):
    if not chosen.startswith("/"):
        without = tmp_path / "python3"
        without.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'dbt'\" >&2; exit 1\n")
        without.chmod(0o755)
        chosen = str(without)
    monkeypatch.setenv("PYSPARK_PYTHON", chosen)
    assert told in dbt("run", "--select", "one_file").message("one_file")
    debugged = dbt("debug")
    assert not debugged.success
    assert told in debugged.printed + debugged.log


@pytest.mark.slow
def test_a_metastore_that_another_process_has_open_is_a_one_line_error(project_at, tmp_path):
    database = tmp_path / "metastore_db"
    database.mkdir()
    (database / "dbex.lck").touch()
    project = project_at(schema="main")
    profiles = project.folder / "profiles.yml"
    profile = yaml.safe_load(profiles.read_text())
    target = profile["adapter_suite"]["outputs"]["t"]
    target["server_side_parameters"] = {
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={database};create=true"
    }
    profiles.write_text(yaml.safe_dump(profile))
    with _locked(database / "dbex.lck"):
        asked = [
            str(Path(sys.executable).parent / "dbt"),
            "debug",
            "--connection",
            "--profiles-dir",
            str(project.folder),
        ]
        done = subprocess.run(asked, cwd=project.folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    told = [line for line in done.stdout.splitlines() if "is open in another process" in line]
    assert len(told) == 1
    assert f"the metastore {database} is open in another process" in told[0]
    assert len((done.stdout + done.stderr).splitlines()) < 40


@contextlib.contextmanager
def _locked(path):
    """Holds a lock as Derby does, in another process, because a process does not conflict with its own locks."""
    program = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        holder.stdout.readline()
        yield
        holder.stdin.close()


def test_each_later_run_warns_about_partition_folders_in_local_time(dbt, spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        first, second = dbt("run", "--select", "hourly"), dbt("run", "--select", "hourly")
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert first.success
    assert second.success
    told = "partition column `ts` is stored in local time (Europe/Berlin), so sessions in another time zone"
    assert told not in first.log
    assert told in second.log
