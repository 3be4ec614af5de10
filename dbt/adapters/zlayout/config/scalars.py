"""Parsers of values that are one number, one word or one text; each adds a sentence if the value is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from dbt.adapters.zlayout.store.opening import place_problem
from dbt.adapters.zlayout.store.uri import without_login

T = TypeVar("T")
# Takes the key for messages, a value that is not None, and the list of problems. A wrong value gives None.
Parser: TypeAlias = Callable[[str, object, list[str]], T | None]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_MIN_BYTES = 1 << 10
_NAME = re.compile(r"[^\W\d]\w*")
_CATALOG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def as_integer(value: object) -> int | None:
    """Returns the value as an integer, or None; accepts strings, which Jinja produces, but not booleans."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    return None


def as_number(value: object) -> float:
    """Returns the value as a float, or NaN, which is outside any limits; booleans are not numbers."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    return math.nan


def whole(low: int, high: int) -> Parser[int]:
    """Returns a parser of integers between two inclusive limits."""

    def parse(key: str, value: object, problems: list[str]) -> int | None:
        number = as_integer(value)
        if number is not None and low <= number <= high:
            return number
        problems.append(f"{key}: {value!r} is not a whole number from {low:,} to {high:,}")
        return None

    return parse


def parse_hours(key: str, value: object, problems: list[str]) -> float | None:
    """Reads a number of hours."""
    hours = as_number(value)
    if 0 <= hours <= 1_000_000:
        return hours
    problems.append(f"{key}: {value!r} is not a number of hours from 0 to 1,000,000")
    return None


def parse_share(key: str, value: object, problems: list[str]) -> float | None:
    """Reads a number between 0 and 1, both excluded."""
    share = as_number(value)
    if 0 < share < 1:
        return share
    problems.append(f"{key}: {value!r} is not a share between 0 and 1, such as 0.2")
    return None


def parse_ratio(key: str, value: object, problems: list[str]) -> float | None:
    """Reads a finite number of at least 0."""
    ratio = as_number(value)
    if 0 <= ratio < math.inf:
        return ratio
    problems.append(f"{key}: {value!r} is not a number of at least 0, such as 0.1")
    return None


def parse_size(key: str, value: object, problems: list[str]) -> int | None:
    """Reads a size such as ``'128mb'``, or a number of bytes, as bytes.

    >>> parse_size("target_file_size", "1.5kb", problems=[])
    1536
    """
    size_bytes = as_integer(value)
    if size_bytes is None and isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        size = float(match[1]) * _UNITS.get(match[2].lower(), math.inf)
        size_bytes = int(size) if math.isfinite(size) else None
    if size_bytes is None:
        problems.append(f"{key}: {value!r} is not a size; write '128mb' (kb, mb, gb or tb) or a number of bytes")
    elif size_bytes < _MIN_BYTES:
        problems.append(f"{key}: {value!r} is below 1kb")
        return None
    return size_bytes


def word_of(value: object) -> str:
    """Returns a word in lower case; '' if the value is no text.

    YAML reads `off` as false, which a profile and Jinja turn into text: all of these are 'off'.

    >>> [word_of(each) for each in ("Inline", "off", False, "False", 7)]
    ['inline', 'off', 'off', 'off', '']
    """
    word = value.strip().lower() if isinstance(value, str) else ""
    return "off" if value is False or word == "false" else word


def one_of(*allowed: str) -> Parser[str]:
    """Returns a parser of words, in any case."""

    def parse(key: str, value: object, problems: list[str]) -> str | None:
        if (word := word_of(value)) in allowed:
            return word
        problems.append(f"{key}: {value!r} is not one of {', '.join(allowed)}")
        return None

    return parse


def parse_boolean(key: str, value: object, problems: list[str]) -> bool:
    """Reads a boolean, which Jinja may pass as text; None means false."""
    if value is None or isinstance(value, bool):
        return bool(value)
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ("true", "false"):
        problems.append(f"{key}: {value!r} is not true or false")
    return word == "true"


def parse_name(key: str, value: object, problems: list[str]) -> str | None:
    """Reads a name that needs no quotes in SQL."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    problems.append(f"{key}: {value!r} is not a plain name")
    return None


def parse_catalog(key: str, value: object, problems: list[str]) -> str | None:
    """Reads the name of a catalog; empty text is none."""
    if isinstance(value, str) and (not value or _CATALOG.fullmatch(value)):
        return value
    # An address may have a login in it.
    shown = repr(value) if not isinstance(value, str) or ":" not in value else f"'{value.partition(':')[0]}:…'"
    problems.append(
        f"{key}: {shown} is not the name of a catalog, such as 'lakehouse'; its address and login go into pyiceberg's "
        "configuration: .pyiceberg.yaml, or variables such as PYICEBERG_CATALOG__LAKEHOUSE__URI"
    )
    return None


def condition(example: str) -> Parser[str]:
    """Returns a parser of SQL conditions."""

    def parse(key: str, value: object, problems: list[str]) -> str | None:
        if isinstance(value, str) and value.strip():
            return value
        problems.append(f'{key}: {value!r} is not a condition (write "{example}")')
        return None

    return parse


def parse_folder(key: str, value: object, problems: list[str]) -> str | None:
    """Reads a full path or a URI of a place that this package can write to."""
    if not isinstance(value, str) or not value.strip():
        problems.append(f"{key}: {value!r} is not a folder (write a path or a URI such as s3://bucket/folder)")
        return None
    root = value.strip()
    if (problem := place_problem(root)) is not None:
        problems.append(f"{key}: {without_login(value)!r} {problem}")
    return root
