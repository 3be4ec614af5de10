"""The Hilbert curve in any number of dimensions, over vectors of points.

Source: J. Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.curve.zorder import deinterleave, interleave


def encode(codes: Sequence[npt.NDArray[Any]], bits: int) -> npt.NDArray[np.uint64]:
    """Points to positions on the curve; neighbours on the curve differ by one step in one column.

    Args:
        codes: One unsigned array[n] a column, each below 2^bits.
        bits: Bits of every column; columns times bits is 63 at most.

    Returns:
        uint64[n].
    """
    axes = [np.asarray(code).astype(np.uint64) for code in codes]
    for level in range(bits - 1, 0, -1):
        _turn(axes, np.uint64(level), range(len(axes)))
    for column in range(1, len(axes)):
        axes[column] = axes[column] ^ axes[column - 1]
    flip = np.zeros_like(axes[-1])
    for level in range(bits - 1, 0, -1):
        flip ^= np.where(_bit(axes[-1], level), np.uint64((1 << level) - 1), np.uint64(0))
    return interleave([axis ^ flip for axis in axes], [bits] * len(axes))


def decode(positions: npt.NDArray[np.uint64], columns: int, bits: int) -> list[npt.NDArray[np.uint64]]:
    """Positions on the curve back to points."""
    axes = deinterleave(positions, [bits] * columns)
    last = axes[-1] >> np.uint64(1)
    for column in range(columns - 1, 0, -1):
        axes[column] = axes[column] ^ axes[column - 1]
    axes[0] = axes[0] ^ last
    for level in range(1, bits):
        _turn(axes, np.uint64(level), range(columns - 1, -1, -1))
    return axes


def _turn(axes: list[npt.NDArray[np.uint64]], level: np.uint64, columns: range) -> None:
    """Skilling's step of one level: invert or exchange the lower bits of the first column."""
    mask = np.uint64((1 << int(level)) - 1)
    for column in columns:
        inside = _bit(axes[column], int(level))
        swapped = np.where(inside, np.uint64(0), (axes[0] ^ axes[column]) & mask)
        if column:
            axes[0] = np.where(inside, axes[0] ^ mask, axes[0] ^ swapped)
            axes[column] = axes[column] ^ swapped
        else:
            axes[0] = np.where(inside, axes[0] ^ mask, axes[0])


def _bit(values: npt.NDArray[np.uint64], level: int) -> npt.NDArray[np.bool_]:
    return np.asarray((values >> np.uint64(level)) & np.uint64(1), dtype=bool)
