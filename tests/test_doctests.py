"""The examples in docstrings run and give the results that they show."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES_WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "dbt" / "adapters" / "zlayout").rglob("*.py"))
    if "    >>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("name", MODULES_WITH_EXAMPLES)
def test_the_examples_of_a_module_give_what_they_show(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_examples_are_found():
    assert "dbt.adapters.zlayout.pruning.reasons" in MODULES_WITH_EXAMPLES
