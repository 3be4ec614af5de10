"""The orders of rows along the curve: z-order, Hilbert order and linear order, each as one number per row.

Z-order interleaves the bits of all columns, which may have different numbers of bits. On the Hilbert curve consecutive
cells are neighbours in space; source: John Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707
(2004). Linear order sorts by the first column, then by the second and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_BITS = 63
_LOOKUP_BITS = 12
_BLOCK_ROWS = 1 << 14  # a block of all columns stays in the processor's cache through the many small steps


def balanced_bits(bits: Sequence[int]) -> tuple[int, ...]:
    """Takes bits from the widest columns until the total fits; among columns of one width, from the last one first.

    >>> balanced_bits([30, 30, 10])
    (27, 26, 10)
    """
    left = list(bits)
    while sum(left) > MAX_BITS:
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


def hilbert_positions(codes: Sequence[npt.NDArray[Any]], bits: int) -> npt.NDArray[np.uint64]:
    """Returns the positions of cells on the curve.

    Args:
        codes: For each of 1 to 8 columns unsigned integers[n] below ``2 ** bits``.
        bits: Bits of every column; ``len(codes) * bits`` is at most 63.

    Returns:
        uint64[n], a bijection onto ``0 … 2 ** (len(codes) * bits) - 1``.

    >>> x, y = np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])
    >>> hilbert_positions([x, y], bits=1).tolist()
    [0, 3, 2, 1]
    """
    axes = np.array([np.asarray(code) for code in codes], _cell_type(bits))
    rows = axes.shape[1]
    positions = np.empty(rows, np.uint64)
    for start in range(0, rows, _BLOCK_ROWS):
        block = np.ascontiguousarray(axes[:, start : start + _BLOCK_ROWS])
        _axes_to_transposed(block, bits)
        positions[start : start + _BLOCK_ROWS] = interleave(list(block), [bits] * len(codes))
    return positions


def _cell_type(bits: int) -> type[np.unsignedinteger[Any]]:
    if bits <= 16:
        return np.uint16
    return np.uint32 if bits <= 32 else np.uint64


def _axes_to_transposed(axes: npt.NDArray[Any], bits: int) -> None:
    """Converts coordinates[column, row] into the digits of the position, in place."""
    number = axes.dtype.type
    for level in range(bits - 1, 0, -1):
        for column in range(len(axes)):
            _undo_turn(axes, column, level)
    for column in range(1, len(axes)):
        axes[column] ^= axes[column - 1]
    gray = np.zeros(axes.shape[1], axes.dtype)
    for level in range(bits - 1, 0, -1):
        set_bit = (axes[-1] >> number(level)) & number(1)
        gray ^= set_bit * number((1 << level) - 1)
    axes ^= gray


def _undo_turn(axes: npt.NDArray[Any], column: int, level: int) -> None:
    """Where the column's bit is set, flips the lower bits of the first column; elsewhere swaps them with its own."""
    number = axes.dtype.type
    low = number((1 << level) - 1)
    lower_if_set = ((axes[column] >> number(level)) & number(1)) * low
    exchanged = (axes[0] ^ axes[column]) & (low ^ lower_if_set)
    axes[0] ^= exchanged | lower_if_set
    if column:
        axes[column] ^= exchanged


def leading_bits(bits: Sequence[int]) -> tuple[int, ...]:
    """Assigns bits to columns from left to right until they run out; the lowest bits of later columns are dropped."""
    kept: list[int] = []
    for each in bits:
        kept.append(min(each, MAX_BITS - sum(kept)))
    return tuple(kept)


def concatenate(codes: Sequence[npt.NDArray[Any]], bits: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Packs the codes of each row into one number, the first column in the highest bits.

    Args:
        codes: For each column unsigned integers[n] below ``2 ** bits`` of that column.
        bits: Bits of each column, together at most 63.

    Returns:
        uint64[n]
    """
    values = np.zeros(len(codes[0]) if codes else 0, np.uint64)
    for column, width in zip(codes, bits, strict=True):
        values = (values << np.uint64(width)) | column.astype(np.uint64)
    return values
