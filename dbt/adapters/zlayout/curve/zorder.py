"""The z-order curve: the bits of the keys, interleaved from the most significant on.

Source: G. M. Morton, A computer oriented geodetic data base, 1966. Every column takes part from its first bit on;
one with fewer bits just runs out earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_BITS = 63


def schedule(bits: Sequence[int]) -> list[tuple[int, int]]:
    """The order of the bits: ``(column, bit of the column)``, most significant first."""
    return [
        (column, count - 1 - level)
        for level in range(max(bits, default=0))
        for column, count in enumerate(bits)
        if level < count
    ]


def interleave(codes: Sequence[npt.NDArray[Any]], bits: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Codes to positions on the curve.

    Args:
        codes: One unsigned array[n] a column, each below 2^bits.
        bits: Bits of each column, 63 in all at most.

    Returns:
        uint64[n].

    Raises:
        ValueError: More than 63 bits.
    """
    _check(bits)
    result = np.zeros(len(codes[0]) if codes else 0, dtype=np.uint64)
    words = [np.asarray(code).astype(np.uint64) for code in codes]
    one = np.uint64(1)
    for column, bit in schedule(bits):
        result = (result << one) | ((words[column] >> np.uint64(bit)) & one)
    return result


def deinterleave(positions: npt.NDArray[np.uint64], bits: Sequence[int]) -> list[npt.NDArray[np.uint64]]:
    """Positions on the curve back to codes."""
    _check(bits)
    codes = [np.zeros(len(positions), dtype=np.uint64) for _ in bits]
    order = schedule(bits)
    one = np.uint64(1)
    for place, (column, bit) in enumerate(order):
        shift = np.uint64(len(order) - 1 - place)
        codes[column] |= ((positions >> shift) & one) << np.uint64(bit)
    return codes


def concatenate(codes: Sequence[npt.NDArray[Any]], bits: Sequence[int]) -> npt.NDArray[np.uint64]:
    """The linear order: the first column decides, the next breaks ties."""
    _check(bits)
    result = np.zeros(len(codes[0]) if codes else 0, dtype=np.uint64)
    for code, count in zip(codes, bits, strict=True):
        result = (result << np.uint64(count)) | np.asarray(code).astype(np.uint64)
    return result


def _check(bits: Sequence[int]) -> None:
    if sum(bits) > MOST_BITS:
        raise ValueError(f"{sum(bits)} bits do not fit; at most {MOST_BITS} in all")
