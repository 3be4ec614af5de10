"""Linear order: sorts by the first column, then by the second and so on, packed into one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.curve.zorder import MAX_BITS


def leading(bits: Sequence[int], limit: int = MAX_BITS) -> tuple[int, ...]:
    """Assigns bits to columns from left to right until they run out; the lowest bits of later columns are dropped."""
    kept: list[int] = []
    for each in bits:
        kept.append(min(each, limit - sum(kept)))
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
