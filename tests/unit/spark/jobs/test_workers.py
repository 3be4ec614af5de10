"""A Python that cannot run Spark's workers is reported before a job fails because of it."""

import os
import sys
from types import SimpleNamespace

import pytest

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.spark.jobs.workers import failed_worker_problem, use_driver_python


def session(master="local[2]"):
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec="python3"))


def program(folder, script):
    path = folder / "python-of-theirs"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_workers_run_on_the_python_of_dbt_by_default(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    spark = session()
    use_driver_python(spark)
    assert spark.sparkContext.pythonExec == sys.executable


def test_a_missing_python_is_named_with_the_next_step(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python")
    with pytest.raises(UnsupportedError, match=r"'/nowhere/python': there is no such program; unset PYSPARK_PYTHON"):
        use_driver_python(session())


def test_a_python_without_the_package_is_named_with_what_it_lacks(monkeypatch, tmp_path):
    monkeypatch.setenv(
        "PYSPARK_PYTHON", program(tmp_path, "echo \"ModuleNotFoundError: No module named 'dbt'\" >&2; exit 1")
    )
    with pytest.raises(UnsupportedError, match=r"python-of-theirs.*No module named 'dbt'\); unset PYSPARK_PYTHON"):
        use_driver_python(session())


@pytest.mark.parametrize(
    ("version", "package", "told"),
    [("2.7.18", "0.1.0", r"run on Python 2\.7\.18 .*and dbt on 3"), (None, "0.0.1", r"have dbt-zlayout 0\.0\.1")],
)
def test_a_python_of_another_version_is_reported(monkeypatch, tmp_path, version, package, told):
    version = version or ".".join(map(str, sys.version_info[:3]))
    monkeypatch.setenv("PYSPARK_PYTHON", program(tmp_path, f"echo /their/python; echo {version}; echo {package}"))
    with pytest.raises(UnsupportedError, match=told):
        use_driver_python(session())


def test_a_python_with_the_package_passes_the_check(monkeypatch, tmp_path):
    monkeypatch.setenv("PYSPARK_PYTHON", program(tmp_path, f'exec {sys.executable} "$@"'))
    use_driver_python(session())
    monkeypatch.setenv("PYSPARK_PYTHON", os.path.join(os.path.dirname(sys.executable), "python3"))  # noqa: PTH118, PTH120 # its own
    use_driver_python(session())


def test_the_python_of_a_cluster_is_not_searched_on_this_machine(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/only/on/workers/python")
    use_driver_python(session("yarn"))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('Cannot run program "/no/python": error=2, No such file or directory', "cannot run the Python '/no/python'"),
        ("ModuleNotFoundError: No module named 'dbt.adapters'", "has no module 'dbt.adapters'"),
        ("No module named 'dbt.adapters.zlayout.index.keys'", "has another release of dbt-zlayout, without the module"),
    ],
)
def test_the_error_of_a_job_says_if_the_python_of_its_workers_is_the_reason(said, told):
    assert told in (failed_worker_problem(f"Job aborted\n{said}") or "")
    assert failed_worker_problem("java.io.IOException: No space left on device") is None
