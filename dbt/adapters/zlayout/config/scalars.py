"""Reading one number or one word of a setting, with a sentence where it is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_INTEGER = re.compile(r"[+-]?\d[\d_]*")


def as_integer(value: object) -> int | None:
    """The whole number that a setting means, or None; Jinja hands numbers over as strings, and True is not one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    return None


def as_number(value: object) -> float:
    """The number that a setting means, or NaN, which lies within no limits; True is no number here either."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            pass
    return math.nan


def parse_integer(key: str, value: object, problems: list[str], *, default: int, low: int, high: int) -> int:
    """Reads a whole number between two limits, both included; None means the default."""
    if value is None:
        return default
    number = as_integer(value)
    if number is None or not low <= number <= high:
        problems.append(f"{key}: {value!r} is not a whole number from {low:,} to {high:,}")
        return default
    return number


def parse_hours(key: str, value: object, problems: list[str], *, default: float) -> float:
    """Reads a number of hours; None means the default."""
    if value is None:
        return default
    hours = as_number(value)
    if not 0 <= hours <= 1_000_000:
        problems.append(f"{key}: {value!r} is not a number of hours from 0 to 1,000,000")
        return default
    return hours


def parse_choice(key: str, value: object, problems: list[str], *, default: str, allowed: Sequence[str]) -> str:
    """Reads one of a few words, in any case; None means the default."""
    if value is None:
        return default
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in allowed:
        problems.append(f"{key}: {value!r} is not one of {', '.join(allowed)}")
        return default
    return word


def parse_boolean(key: str, value: object, problems: list[str]) -> bool:
    """Reads a yes or no, which Jinja may hand over as text; None means no."""
    if value is None or isinstance(value, bool):
        return bool(value)
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ("true", "false"):
        problems.append(f"{key}: {value!r} is not true or false")
    return word == "true"
