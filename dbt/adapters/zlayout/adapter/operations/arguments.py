"""Numbers and switches among the arguments of operations and tests, as YAML, Jinja and the command line pass them."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.config.scalars import as_number, parse_boolean

_F = TypeVar("_F", bound=Callable[..., Any])


def reads_switches(method: _F) -> _F:
    """Reads the arguments of an adapter method that are annotated as `bool`, which may come as text.

    Raises:
        CompilationError: One of them is not true or false.
    """
    signature = inspect.signature(method)
    switches = {name for name, each in signature.parameters.items() if each.annotation in (bool, "bool")}

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        names = {"as_json": "json"}
        problems: list[str] = []
        for name in switches & given.arguments.keys():
            given.arguments[name] = parse_boolean(names.get(name, name), given.arguments[name], problems)
        if problems:
            raise CompilationError("; ".join(problems))
        return method(*given.args, **given.kwargs)

    return wrapped  # type: ignore[return-value]


def whole_number(name: str, value: object, least: int) -> int:
    """Returns the whole number that an argument gives.

    Raises:
        CompilationError: The value is not a whole number, or it is too small.
    """
    if isinstance(value, bool) or not str(value).isdecimal() or int(str(value)) < least:
        raise CompilationError(f"{name}: {value!r} is not a whole number of at least {least}")
    return int(str(value))


def number_between(name: str, value: object, least: float, most: float = math.inf) -> float:
    """Returns the number that an argument gives. Jinja may have turned it into text.

    Raises:
        CompilationError: The value is not a number, or it is out of bounds.
    """
    number = as_number(value)
    if least <= number <= most:
        return number
    allowed = f"of at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
    raise CompilationError(f"{name}: {value!r} is not a number {allowed}")
