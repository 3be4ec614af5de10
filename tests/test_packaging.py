"""The package asks for what it was tested with, so that `pip install` gives an environment that works."""

import ast
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
# Python 3.10, which runs these tests too, has no tomllib; the list is also one of Python.
_LISTED = re.search(
    r"^dependencies = (\[.*?^\])", (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE | re.DOTALL
)
DEPENDENCIES = {each.name: each.specifier for each in map(Requirement, ast.literal_eval(_LISTED[1]))}
LOCKED = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("release", ["1.10.0", "1.10.22", "1.12.0", "1.12.6", "2.0.0"])
def test_a_dbt_core_that_was_not_tested_is_not_installed(release):
    assert release not in DEPENDENCIES["dbt-core"]


@pytest.mark.parametrize("release", ["1.11.0", "1.11.16"])
def test_the_tested_releases_of_dbt_core_can_be_installed(release):
    assert release in DEPENDENCIES["dbt-core"]


def test_the_lock_keeps_to_the_range_of_each_dependency():
    assert {name for name in DEPENDENCIES if name in LOCKED} == set(DEPENDENCIES)
    assert [name for name, allowed in DEPENDENCIES.items() if LOCKED[name] not in allowed] == []


@pytest.mark.parametrize("name", ["dbt-core", "dbt-adapters", "dbt-common", "dbt-spark"])
def test_a_minor_release_of_dbt_before_the_tested_one_is_not_installed(name):
    major, minor = map(int, LOCKED[name].split(".")[:2])
    assert f"{major}.{minor}.0" in DEPENDENCIES[name]
    assert f"{major}.{minor - 1}.99" not in DEPENDENCIES[name]


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_documentation_tells_which_dbt_core_it_takes(page):
    tested = ".".join(LOCKED["dbt-core"].split(".")[:2])
    told = re.findall(r"dbt-core (\d[\d.]*\d(?: (?:or|and) \d[\d.]*\d)?)", (ROOT / page).read_text("utf-8"))
    assert set(told) == {tested}
