"""The package asks for what it was tested with, so that `pip install` gives an environment that works."""

import ast
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).parents[1]
# Python 3.10, which runs these tests too, has no tomllib; the list is also one of Python.
_LISTED = re.search(
    r"^dependencies = (\[.*?^\])", (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE | re.DOTALL
)
DEPENDENCIES = {each.name: each.specifier for each in map(Requirement, ast.literal_eval(_LISTED[1]))}
_PINNED = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)
LOCKED = dict(_PINNED.findall((ROOT / "requirements.lock").read_text("utf-8")))


# A release of dbt-core that CI tests: the lock has the newest one, .ci/dbt-*.lock the others.
_OLDER = (dict(_PINNED.findall(path.read_text("utf-8")))["dbt-core"] for path in (ROOT / ".ci").glob("dbt-*.lock"))
TESTED = sorted((*_OLDER, LOCKED["dbt-core"]), key=Version)


@pytest.mark.parametrize("release", ["1.9.11", "1.13.0", "2.0.0"])
def test_a_dbt_core_that_was_not_tested_is_not_installed(release):
    assert release not in DEPENDENCIES["dbt-core"]


def test_each_minor_release_of_dbt_core_that_can_be_installed_is_tested():
    can = [minor for minor in range(50) if f"1.{minor}.99" in DEPENDENCIES["dbt-core"]]
    assert [Version(each).minor for each in TESTED] == can


def test_the_package_of_the_hub_takes_each_tested_dbt_core():
    wanted = re.search(r"require-dbt-version: (\[.*\])", (ROOT / "hub" / "dbt_project.yml").read_text("utf-8"))
    assert all(each in SpecifierSet(",".join(ast.literal_eval(wanted[1]))) for each in TESTED)


def test_ci_runs_every_older_dbt_core_that_has_a_lock():
    listed = re.search(r"^OTHER_DBTS = (.*)$", (ROOT / ".ci" / "checks.py").read_text("utf-8"), re.MULTILINE)
    assert list(ast.literal_eval(listed[1])) == [each.rpartition(".")[0] for each in TESTED[:-1]]


def test_the_lock_leaves_out_what_no_registry_has_built():
    left_out = (ROOT / ".ci" / "not-installed.txt").read_text("utf-8").splitlines()
    assert [name for name in left_out if not name.startswith("#") and name in LOCKED] == []


def test_the_lock_keeps_to_the_range_of_each_dependency():
    assert {name for name in DEPENDENCIES if name in LOCKED} == set(DEPENDENCIES)
    assert [name for name, allowed in DEPENDENCIES.items() if LOCKED[name] not in allowed] == []


@pytest.mark.parametrize("name", ["dbt-adapters", "dbt-common", "dbt-spark"])
def test_a_minor_release_of_dbt_before_the_tested_one_is_not_installed(name):
    major, minor = map(int, LOCKED[name].split(".")[:2])
    assert f"{major}.{minor}.0" in DEPENDENCIES[name]
    assert f"{major}.{minor - 1}.99" not in DEPENDENCIES[name]


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_documentation_tells_which_dbt_core_it_takes(page):
    told = re.findall(r"dbt-core (\d[\d.]*\d) to (\d[\d.]*\d)", (ROOT / page).read_text("utf-8"))
    assert set(told) == {(TESTED[0].rpartition(".")[0], TESTED[-1].rpartition(".")[0])}
