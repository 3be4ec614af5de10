"""Formats rows of cells as lines of text. Each column is as wide as its widest cell."""

from __future__ import annotations

from collections.abc import Collection, Sequence


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
