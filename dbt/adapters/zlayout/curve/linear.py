"""Linear order: by the first column, ties by the second, and so on, packed into one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.curve.zorder import MAX_BITS


def leading(bits: Sequence[int], limit: int = MAX_BITS) -> tuple[int, ...]:
    """Gives each column its bits as long as they last: what does not fit decides ties only."""
    kept: list[int] = []
    for each in bits:
        kept.append(min(each, limit - sum(kept)))
    return tuple(kept)


def concatenate(codes: Sequence[npt.NDArray[Any]], bits: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Packs the codes of each row, the first column highest.

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
