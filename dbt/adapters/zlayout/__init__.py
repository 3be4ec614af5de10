"""The public names, each loaded when it is first used.

Spark workers import ``dbt.adapters.zlayout.curve`` and its like through this package: it must cost them neither dbt
nor pyspark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbt.adapters.zlayout.plugin import Plugin
    from dbt.adapters.zlayout.spark.read.session import enable
    from dbt.adapters.zlayout.table.ztable import ZTable, explain_query

__all__ = ["Plugin", "ZTable", "enable", "explain_query"]

_HOMES = {"Plugin": "plugin", "ZTable": "table", "enable": "spark.read.session", "explain_query": "table"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name == "__version__":
        # A module with `version`, as dbt looks for it in every adapter.
        return import_module(f"{__name__}.__version__")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
