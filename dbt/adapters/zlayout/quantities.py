"""Formats text for people: numbers, counts with their noun, sizes in bytes, and aligned columns of cells."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence

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


def quoted_list(texts: Sequence[str]) -> str:
    r"""Returns texts as a list in YAML, each in quotation marks.

    >>> print(quoted_list(["lower(email)", 'concat(a, "x")']))
    ["lower(email)", "concat(a, \"x\")"]
    """
    return json.dumps(list(texts), ensure_ascii=False)


def size_text(size_bytes: float) -> str:
    """Returns a size in a readable unit.

    >>> size_text(1), size_text(18_022), size_text(1.5 * 2**30)
    ('1 byte', '17.6 KiB', '1.5 GiB')
    """
    if size_bytes < 1024:
        return counted(round(size_bytes), "byte")
    power = min(int(math.log2(size_bytes) // 10), len(_UNITS))
    return f"{size_bytes / 1024**power:,.1f} {_UNITS[power - 1]}"


def aligned_lines(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Returns the rows as lines, with two spaces between the columns.

    Args:
        rows: The cells. All rows have the same number of cells.
        right: The indexes of right-aligned columns, such as numbers.

    >>> aligned_lines([("day=1", "7"), ("day=2", "12")], right=[1])
    ['day=1   7', 'day=2  12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def ruled_lines(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Returns the rows as aligned lines below a header and a rule."""
    rule = ["-" * max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return aligned_lines([head, rule, *rows], right=right)
