"""Parsers for settings that are one number or one word; each adds a sentence if the value is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_INTEGER = re.compile(r"[+-]?\d[\d_]*")


def as_integer(value: object) -> int | None:
    """Returns the value as an integer, or None; accepts strings, which Jinja produces, but not booleans."""
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
    """Returns the value as a float, or NaN, which is outside any limits; booleans are not numbers."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            pass
    return math.nan


def parse_integer(key: str, value: object, problems: list[str], *, default: int, low: int, high: int) -> int:
    """Reads an integer between two inclusive limits; None means the default."""
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
    """Reads one of several words, case-insensitively; None means the default."""
    if value is None:
        return default
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in allowed:
        problems.append(f"{key}: {value!r} is not one of {', '.join(allowed)}")
        return default
    return word


def parse_boolean(key: str, value: object, problems: list[str]) -> bool:
    """Reads a boolean, which Jinja may pass as text; None means false."""
    if value is None or isinstance(value, bool):
        return bool(value)
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ("true", "false"):
        problems.append(f"{key}: {value!r} is not true or false")
    return word == "true"
