"""The Hilbert curve in any number of dimensions: consecutive cells on the curve are neighbours in space.

Source: John Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.curve.zorder import deinterleave, interleave

_BLOCK_ROWS = 1 << 14  # a block of all columns stays in the processor's cache through the many small steps


def encode(codes: Sequence[npt.NDArray[Any]], bits: int) -> npt.NDArray[np.uint64]:
    """Returns the positions of cells on the curve.

    Args:
        codes: For each of 1 to 8 columns unsigned integers[n] below ``2 ** bits``.
        bits: Bits of every column; ``len(codes) * bits`` is at most 63.

    Returns:
        uint64[n], a bijection onto ``0 … 2 ** (len(codes) * bits) - 1``.

    >>> x, y = np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])
    >>> encode([x, y], bits=1).tolist()
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


def decode(positions: npt.NDArray[np.uint64], columns: int, bits: int) -> list[npt.NDArray[np.uint64]]:
    """Returns the cells at positions on the curve; the inverse of `encode`.

    Args:
        positions: uint64[n].
        columns: Number of columns of a cell.
        bits: Bits of every column.

    Returns:
        For each column uint64[n].
    """
    axes = np.array(deinterleave(positions, [bits] * columns), _cell_type(bits)).reshape(columns, len(positions))
    _transposed_to_axes(axes, bits)
    return [axis.astype(np.uint64) for axis in axes]


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


def _transposed_to_axes(axes: npt.NDArray[Any], bits: int) -> None:
    """The inverse of `_axes_to_transposed`."""
    gray = axes[-1] >> axes.dtype.type(1)
    for column in range(len(axes) - 1, 0, -1):
        axes[column] ^= axes[column - 1]
    axes[0] ^= gray
    for level in range(1, bits):
        for column in range(len(axes) - 1, -1, -1):
            _undo_turn(axes, column, level)


def _undo_turn(axes: npt.NDArray[Any], column: int, level: int) -> None:
    """Where the column's bit is set, flips the lower bits of the first column; elsewhere swaps them with its own."""
    number = axes.dtype.type
    low = number((1 << level) - 1)
    lower_if_set = ((axes[column] >> number(level)) & number(1)) * low
    exchanged = (axes[0] ^ axes[column]) & (low ^ lower_if_set)
    axes[0] ^= exchanged | lower_if_set
    if column:
        axes[column] ^= exchanged
