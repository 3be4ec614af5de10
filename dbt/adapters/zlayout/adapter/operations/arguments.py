"""Numbers among the arguments of operations and tests, as YAML, Jinja and the command line pass them."""

from __future__ import annotations

import math

from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.config.scalars import as_number


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
    allowed = f"{least:g} or more" if most == math.inf else f"{least:g} to {most:g}"
    raise CompilationError(f"{name} is {value!r}; write a number, {allowed}")
