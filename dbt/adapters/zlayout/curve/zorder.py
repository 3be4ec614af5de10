"""Z-order: interleaves the bits of all columns; columns may have different numbers of bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_BITS = 63

_LOOKUP_BITS = 12


def shaved(bits: Sequence[int], limit: int = MAX_BITS) -> tuple[int, ...]:
    """Takes bits from the widest columns, the last of them first, until the total fits.

    >>> shaved([30, 30, 10])
    (27, 26, 10)
    """
    left = list(bits)
    while sum(left) > limit:
        widest = max(range(len(left)), key=lambda column: (left[column], column))
        left[widest] -= 1
    return tuple(left)


def interleave(codes: Sequence[npt.NDArray[Any]], bits: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Returns the z-values of rows.

    Every column gives its highest bit, then its next, and so on. In each round, columns with more bits come first, then
    earlier ones. A column without bits left drops out. The z-value rises when the code of any one column rises.

    Args:
        codes: For each column unsigned integers[n] below ``2 ** bits`` of that column.
        bits: Bits of each column, together at most 63.

    Returns:
        uint64[n]

    >>> x, y = np.array([0b00, 0b01, 0b10, 0b11]), np.array([0b00, 0b00, 0b01, 0b01])
    >>> [format(value, "04b") for value in interleave([x, y], bits=[2, 2])]
    ['0000', '0010', '1001', '1011']
    """
    values = np.zeros(len(codes[0]) if codes else 0, np.uint64)
    for column, targets in zip(codes, _targets(bits), strict=True):
        for low in range(0, len(targets), _LOOKUP_BITS):
            spread = _spread(targets[low : low + _LOOKUP_BITS])
            digits = (column >> column.dtype.type(low)) & column.dtype.type(len(spread) - 1)
            values |= spread[digits.astype(np.intp, copy=False)]
    return values


def deinterleave(values: npt.NDArray[np.uint64], bits: Sequence[int]) -> list[npt.NDArray[np.uint64]]:
    """Returns the codes of z-values; the inverse of `interleave`.

    Args:
        values: uint64[n].
        bits: As given to `interleave`.

    Returns:
        For each column uint64[n].
    """
    columns = []
    for targets in _targets(bits):
        code = np.zeros(len(values), np.uint64)
        for source, target in enumerate(targets):
            code |= ((values >> np.uint64(target)) & np.uint64(1)) << np.uint64(source)
        columns.append(code)
    return columns


def _targets(bits: Sequence[int]) -> list[list[int]]:
    """Returns for each column the positions of its bits in the z-value, lowest first."""
    if sum(bits) > MAX_BITS:
        raise ValueError(f"{sum(bits)} bits do not fit into {MAX_BITS}")
    turns = sorted(range(len(bits)), key=lambda column: (-bits[column], column))
    targets: list[list[int]] = [[] for _ in bits]
    position = sum(bits)
    for taken in range(max(bits, default=0)):
        for column in turns:
            if taken < bits[column]:
                position -= 1
                targets[column].insert(0, position)
    return targets


def _spread(targets: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Returns for every number of ``len(targets)`` bits the value with those bits at their targets."""
    table = np.zeros(1, np.uint64)
    for target in targets:
        table = np.concatenate([table, table | np.uint64(1 << target)])
    return table
