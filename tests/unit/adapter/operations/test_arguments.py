"""Switches of operations are true or false, also as text."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.operations.arguments import reads_switches


@reads_switches
def operation(model: str, drop: bool, as_json: bool = False, **given: object) -> tuple[object, ...]:
    return model, drop, as_json, given


def test_text_means_what_it_says() -> None:
    assert operation("m", "false", as_json="True", other="no") == ("m", False, True, {"other": "no"})  # type: ignore[arg-type]
    assert operation("m", None) == ("m", False, False, {})  # type: ignore[arg-type]


def test_what_is_neither_true_nor_false_is_refused_by_the_name_that_users_write() -> None:
    with pytest.raises(CompilationError, match="drop: 'no' is not true or false"):
        operation("m", "no")  # type: ignore[arg-type]
    with pytest.raises(CompilationError, match=r"(?<!as_)json: 1 is not true or false"):
        operation("m", True, 1)  # type: ignore[arg-type]
