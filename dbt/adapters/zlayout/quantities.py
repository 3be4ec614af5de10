"""Formats quantities as text for people: numbers, counts with their noun, and sizes in bytes."""

from __future__ import annotations

import math

_UNITS = ("KiB", "MiB", "GiB", "TiB")


def number_text(number: float) -> str:
    """Returns a number with at most one decimal.

    >>> number_text(1200), number_text(2.94), number_text(3.0)
    ('1,200', '2.9', '3')
    """
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}".removesuffix(".0")


def counted(number: float, noun: str) -> str:
    """Returns a number with its noun, which is in the plural unless the number is 1.

    >>> counted(1, "file"), counted(1200, "new file"), counted(2.94, "file"), counted(2, "query")
    ('1 file', '1,200 new files', '2.9 files', '2 queries')
    """
    text = number_text(number)
    if text == "1":
        return f"{text} {noun}"
    return f"{text} {noun[:-1]}ies" if noun.endswith("ry") else f"{text} {noun}s"


def size_text(size_bytes: float) -> str:
    """Returns a size in a readable unit.

    >>> size_text(1), size_text(18_022), size_text(1.5 * 2**30)
    ('1 byte', '17.6 KiB', '1.5 GiB')
    """
    if size_bytes < 1024:
        return counted(round(size_bytes), "byte")
    power = min(int(math.log2(size_bytes) // 10), len(_UNITS))
    return f"{size_bytes / 1024**power:,.1f} {_UNITS[power - 1]}"
