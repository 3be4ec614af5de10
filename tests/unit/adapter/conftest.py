"""Renders macros of the package with dbt's own Jinja, and stubs for what dbt provides to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.clients.jinja import get_environment

_MACROS = Path(__file__).parents[3] / "dbt" / "include" / "zlayout" / "macros"


class _ReturnedError(Exception):
    def __init__(self, value: object) -> None:
        self.value = value


class MacroStage:
    """The macros of some files as Python functions. ``context`` holds what they call."""

    def __init__(self, *files: str, **context: Any) -> None:
        self.statements: list[str] = []
        self.context: dict[str, Any] = {
            "return": self._return,
            "statement": self._statement,
            "log": lambda *_, **__: "",
            **context,
        }
        self._own: dict[str, Callable[..., Any]] = {}
        for file in files:
            module = get_environment(None).from_string((_MACROS / file).read_text(), globals=self.context).module
            for name, macro in vars(module).items():
                if name.startswith("dbt_macro__"):
                    self._own[name.removeprefix("dbt_macro__")] = self._callable(macro)
        self.context.update(self._own)

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._own[name](*args, **kwargs)

    def _callable(self, macro: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return " ".join(str(macro(*args, **kwargs)).split())
            except _ReturnedError as returned:
                return returned.value

        return run

    def _return(self, value: object) -> None:
        raise _ReturnedError(value)

    def _statement(self, *_: object, caller: Callable[[], str], **__: object) -> str:
        self.statements.append(" ".join(caller().split()))
        return ""


@pytest.fixture
def macro_stage() -> type[MacroStage]:
    return MacroStage


@pytest.fixture
def config_of() -> Callable[..., Any]:
    """dbt's ``config`` object of a model with these settings, and always with a contract."""

    def make(**settings: Any) -> Any:
        values = {"contract": SimpleNamespace(enforced=False), **settings}
        model = SimpleNamespace(previous_batch_results=None)
        return SimpleNamespace(get=lambda key, default=None, **_: values.get(key, default), model=model)

    return make
