"""Importing the package in a Spark worker loads neither dbt nor pyspark."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dbt.adapters.zlayout as package

_HEAVY = ("pyspark", "dbt.adapters.spark", "dbt.adapters.base", "dbt.adapters.sql", "dbt_common", "agate")


@pytest.mark.parametrize("core", ["errors", "curve", "config", "predicate", "pruning"])
def test_importing_core_imports_neither_dbt_nor_pyspark(core: str) -> None:
    program = (
        f"import sys, dbt.adapters.zlayout.{core}\n"
        f"heavy = [name for name in {_HEAVY!r} if name in sys.modules]\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_public_names_are_found_through_the_package() -> None:
    from dbt.adapters.zlayout.plugin import Plugin
    from dbt.adapters.zlayout.spark.read.session import enable

    assert package.Plugin is Plugin
    assert package.enable is enable
    assert {"Plugin", "ZTable", "enable", "explain_query"} <= set(dir(package))


def test_dbt_finds_the_version_where_it_looks_for_it() -> None:
    assert package.__version__.version.count(".") == 2


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Plugins'"):
        _ = package.Plugins
