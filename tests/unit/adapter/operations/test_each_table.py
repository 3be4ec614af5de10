"""An operation on all tables of a project: one that fails does not stop the others."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.zlayout.adapter.operations.each_table import report_on_names
from dbt.adapters.zlayout.errors import CancelledError, CorruptError, TableLostError, TableNotFoundError

_FAILURES = {
    "s.damaged": CorruptError("0.json is damaged"),
    "s.lost": TableLostError("another tool has overwritten it"),
    "s.view": TableNotFoundError("s.view is a view"),
}


def _work(name: str) -> tuple[str, int] | None:
    if name in _FAILURES:
        raise _FAILURES[name]
    return None if name == "s.other" else (name, len(name))


def _text(done: dict[str, int]) -> str:
    return "\n".join(f"{name}: {length}" for name, length in done.items()) or "No table."


def test_views_and_tables_of_other_kinds_are_left_out() -> None:
    assert report_on_names(["s.a", "s.view", "s.other", "s.bc"], _work, _text) == "s.a: 3\ns.bc: 4"
    assert report_on_names(["s.view"], _work, _text) == "No table."


def test_an_error_names_the_tables_that_failed_and_the_report_on_the_others_is_printed(capsys) -> None:
    with pytest.raises(DbtRuntimeError) as caught:
        report_on_names(["s.a", "s.damaged", "s.bc", "s.lost"], _work, _text)
    assert str(caught.value).splitlines()[1:] == [
        "  2 tables failed:",
        "    s.damaged: 0.json is damaged",
        "    s.lost: another tool has overwritten it",
    ]
    assert capsys.readouterr().out == "s.a: 3\ns.bc: 4\n"
    with pytest.raises(DbtRuntimeError):
        report_on_names(["s.damaged"], _work, _text)
    assert capsys.readouterr().out == ""


def test_a_cancelled_operation_ends() -> None:
    seen = []

    def work(name: str) -> None:
        seen.append(name)
        raise CancelledError

    with pytest.raises(CancelledError):
        report_on_names(["s.a", "s.b"], work, _text)
    assert seen == ["s.a"]
