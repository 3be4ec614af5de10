"""dbt's own conformance tests on this adapter: one Spark session for all of them, a project and a schema for each class."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests import util
from dbt.tests.fixtures.project import write_project_files
from dbt.tests.util import write_file
from dbt.version import __version__
from packaging.version import Version
from spark_project import SparkProject, profile_target, run_for_tests, update_rows_for_tests
from spark_words import Files, said_in_spark

from dbt.adapters.zlayout.impl import ZlayoutAdapter

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
pytest_plugins = ["dbt.tests.fixtures.project"]
# dbt-core has functions since 1.11. What is adopted is counted on the newest one alone.
_NEEDS_DBT = {"test_functions.py": "1.11", "test_adoption.py": "1.12"}
collect_ignore = [name for name, needed in _NEEDS_DBT.items() if Version(__version__) < Version(needed)]


def pytest_configure(config: pytest.Config) -> None:
    ZlayoutAdapter.run_sql_for_tests = run_for_tests
    # Before the base classes take it by name.
    util.update_rows = update_rows_for_tests
    # dbt and its parsers warn of themselves; the suite is about what they do.
    config.addinivalue_line("filterwarnings", "default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that a class names in ``cannot`` fails for the reason given there, and for as long as that holds.

    A class whose ``needs_dbt`` is above the installed dbt-core is skipped.
    """
    for item in items:
        needed = getattr(getattr(item, "cls", None), "needs_dbt", None)
        if needed is not None and Version(__version__) < Version(needed):
            item.add_marker(pytest.mark.skip(reason=f"needs dbt-core {needed}"))
        cannot = getattr(getattr(item, "cls", None), "cannot", {})
        if (reason := cannot.get(getattr(item, "originalname", None))) is not None:
            item.add_marker(pytest.mark.xfail(strict=True, reason=reason))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says how many classes passed entirely."""
    outcomes: dict[str, set[str]] = {}
    for outcome in ("passed", "failed", "error", "xfailed", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            place = report.nodeid.split("::")
            if len(place) == 3:
                outcomes.setdefault("::".join(place[:2]), set()).add(outcome)
    whole = sum(found == {"passed"} for found in outcomes.values())
    if outcomes:
        terminalreporter.write_line(f"{whole} of {len(outcomes)} classes of dbt-tests-adapter passed entirely")


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all data of the suite lies in."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session", autouse=True)
def _session_ends_with_the_suite() -> Iterator[None]:
    yield
    from pyspark.sql import SparkSession

    if (session := SparkSession.getActiveSession()) is not None:
        session.stop()


@pytest.fixture(scope="class")
def dbt_profile_target(lake: Path) -> dict[str, Any]:
    return profile_target(lake)


@pytest.fixture(scope="class")
def functions() -> Files:
    """A class's functions; dbt-core 1.10 has no such fixture."""
    return {}


@pytest.fixture(scope="class")
def project(project_setup: Any, project_files: None) -> SparkProject:
    """The project of the class, which sends its own statements in Spark's words."""
    project = SparkProject(**{name: value for name, value in vars(project_setup).items() if name != "created_schemas"})
    project.created_schemas = project_setup.created_schemas
    return project


@pytest.fixture(scope="class")
def dbt_project_yml(request: pytest.FixtureRequest, project_root: Any, project_config_update: Any) -> dict[str, Any]:
    """The project's configuration, with what the class says of Spark in ``config_in_spark``."""
    base = {"name": "test", "profile": "test", "flags": {"send_anonymous_usage_stats": False}}
    update = yaml.safe_load(project_config_update) if isinstance(project_config_update, str) else project_config_update
    config = {**base, **said_in_spark(update or {}, getattr(request.cls, "config_in_spark", {}))}
    write_file(yaml.safe_dump(config), project_root, "dbt_project.yml")
    return config


@pytest.fixture(scope="class")
def project_files(
    request: pytest.FixtureRequest,
    project_root: Any,
    models: Files,
    macros: Files,
    snapshots: Files,
    properties: Files,
    seeds: Files,
    tests: Files,
    analyses: Files,
    functions: Files,
) -> None:
    """The files of the project, with what the class says of Spark in ``in_spark``."""
    for written in ("selectors_yml", "dependencies_yml", "packages_yml", "dbt_project_yml"):
        request.getfixturevalue(written)
    folders = {
        "models": {**models, **properties},
        "macros": macros,
        "snapshots": snapshots,
        "seeds": seeds,
        "tests": tests,
        "analyses": analyses,
        "functions": functions,
    }
    for name, files in said_in_spark(folders, getattr(request.cls, "in_spark", {})).items():
        write_project_files(project_root, name, files)


@pytest.fixture(scope="class")
def profile_user() -> str | None:
    """Who owns what the tests make: whoever runs Spark."""
    import getpass

    return getpass.getuser()


@pytest.fixture(scope="class")
def logs_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A folder outside of the checkout."""
    folder = str(tmp_path_factory.mktemp("logs"))
    os.environ["DBT_LOG_PATH"] = folder
    yield folder
    del os.environ["DBT_LOG_PATH"]
