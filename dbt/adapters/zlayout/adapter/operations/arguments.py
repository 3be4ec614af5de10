"""Parses the arguments of operations and tests, as YAML, Jinja and the command line pass them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.config.known_keys import unknown_settings
from dbt.adapters.zlayout.config.scalars import as_number, parse_boolean, parse_size
from dbt.adapters.zlayout.errors import ConfigError

LAG_TEST = "zlayout_compaction_lag_at_most"
_OPERATION = "zlayout_compact"
_SWITCHES = ("schedule", "execute", "logs_only")
_OF_A_NEW_PLAN = ("strategy", "max_bytes", "where", "logs_only")
_WORDS = (*_SWITCHES[:2], "plan", *_OF_A_NEW_PLAN)


def whole_number(name: str, value: object, least: int) -> int:
    """Returns the whole number that an argument gives.

    Raises:
        CompilationError: The value is not a whole number, or it is too small.
    """
    if isinstance(value, bool) or not str(value).isdecimal() or int(str(value)) < least:
        raise CompilationError(f"{name}: {value!r} is not a whole number of at least {least}")
    return int(str(value))


def number_between(value: object, least: float, most: float | None, name: str) -> float:
    """Returns the number that a test was given. Jinja may have turned it into text.

    Raises:
        CompilationError: The value is not a number, or it is out of bounds.
    """
    number = as_number(value)
    if least <= number <= (math.inf if most is None else most):
        return number
    allowed = f"{least:g} or more" if most is None else f"{least:g} to {most:g}"
    raise CompilationError(f"{name} is {value!r}; write a number, {allowed}")


def past_version(version: object, instant: object, timestamp: object) -> dict[str, Any]:
    """Returns the version that an operation names, as keywords of ``ZTable.read``. Empty if it names none.

    Raises:
        CompilationError: The version is not a whole number.
    """
    # dbt passes variables as text, and YAML parses the digits of an instant as a number.
    present = {
        "version": None if version is None else whole_number("version", version, least=0),
        "instant": None if instant is None else str(instant),
        "timestamp": timestamp,
    }
    return {name: value for name, value in present.items() if value is not None}


def compact_keywords(given: Mapping[str, Any], *, one_table: bool) -> dict[str, Any]:
    """Returns the keywords of ``ZTable.compact`` for the arguments of zlayout_compact.

    Args:
        given: The arguments by their names in the operation. None means not given.
        one_table: Whether the operation names a table.

    Raises:
        ConfigError: An argument is wrong. The message names every wrong one.
    """
    present = {name: value for name, value in given.items() if value is not None}
    problems = unknown_settings(present, _WORDS)
    wanted: dict[str, Any] = {name: parse_boolean(name, present.get(name), problems) for name in _SWITCHES}
    if "plan" in present:
        wanted["plan"] = str(present["plan"])  # YAML parses the digits of an instant as a number
        if not one_table:
            problems.append("plan: an instant belongs to one table; give its model too")
    executes = wanted["execute"] or "plan" in present
    if executes and wanted["schedule"]:
        problems.append("schedule: execute and plan run existing plans, schedule makes one; leave one of them out")
    if executes:
        problems += [
            f"{name}: only applies to a new plan, and execute and plan run existing plans; leave it out"
            for name in _OF_A_NEW_PLAN
            if present.get(name) not in (None, False)
        ]
    if not isinstance(present.get("where", ""), str | Mapping):
        problems.append(f"where: {present['where']!r} is not a condition; write one, such as \"day = '2024-01-01'\"")
    if problems:
        raise ConfigError(problems, _OPERATION)
    return {**present, **wanted}


def lag_limits(commits: object = None, log_bytes: object = None, hours: object = None) -> dict[str, float]:
    """Returns the limits for a table's logs, by measure.

    Args:
        commits: The most delta commits.
        log_bytes: The largest size, such as '1gb'.
        hours: The highest age.

    Raises:
        ConfigError: No limit is given, or a limit is not a number or size. The message names every wrong one.
    """
    problems: list[str] = []
    limits: dict[str, float] = {}
    for name, value in (("commits", commits), ("hours", hours)):
        if value is not None:
            limits[name] = as_number(value)
            if not 0 <= limits[name] < math.inf:
                problems.append(f"{name}: {value!r} is not a number of at least 0")
    if log_bytes is not None:
        limits["log_bytes"] = 0 if str(log_bytes) == "0" else parse_size("log_bytes", log_bytes, problems) or 0
    if not limits:
        problems.append("a limit is missing: give commits, log_bytes or hours")
    if problems:
        raise ConfigError(problems, LAG_TEST)
    return limits
