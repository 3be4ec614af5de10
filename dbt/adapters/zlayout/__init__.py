"""The public names. Each one is imported on first use.

Spark workers import modules such as ``dbt.adapters.zlayout.curve`` through this package, so importing it must load
neither dbt nor pyspark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbt.adapters.zlayout.plugin import Plugin
    from dbt.adapters.zlayout.spark.read.session import enable
    from dbt.adapters.zlayout.table.ztable import ZTable, explain_query

__all__ = ["Plugin", "ZTable", "enable", "explain_query"]

_HOMES = {"Plugin": "plugin", "ZTable": "table.ztable", "enable": "spark.read.session", "explain_query": "table.ztable"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name == "__version__":
        # dbt expects every adapter to have this module, with `version` in it.
        return import_module(f"{__name__}.__version__")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
