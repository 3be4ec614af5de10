"""Overlap depth: how many files a point of the key space lies in, on average over the files.

Source: Snowflake's ``SYSTEM$CLUSTERING_INFORMATION``. 1.0 is a perfect layout: no two files share a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_MOST_PROBES = 512


def overlap_depth(
    lows: Sequence[npt.NDArray[Any]],
    highs: Sequence[npt.NDArray[Any]],
    unknown: npt.NDArray[np.bool_],
    partition: npt.NDArray[np.int64],
) -> float:
    """Average number of files, itself included, whose boxes over all keys meet the box of a file.

    Args:
        lows: Per key the smallest value of each file, comparable[n].
        highs: Per key the largest.
        unknown: bool[n]; files without bounds, which meet every file of their partition.
        partition: int64[n]; files of different partitions share nothing.

    Returns:
        1.0 … n, and 0.0 without files. Beyond 512 files, an evenly spread sample of files is measured against all.
    """
    count = len(unknown)
    if count == 0:
        return 0.0
    probes = np.unique(np.linspace(0, count - 1, min(count, _MOST_PROBES)).astype(np.int64))
    total = 0
    for start in range(0, len(probes), 64):
        chunk = probes[start : start + 64]
        meets = np.ones((len(chunk), count), dtype=bool)
        for low, high in zip(lows, highs, strict=True):
            meets &= (low[None, :] <= high[chunk, None]) & (high[None, :] >= low[chunk, None])
        meets |= unknown[None, :] | unknown[chunk, None]
        meets &= partition[None, :] == partition[chunk, None]
        total += int(meets.sum())
    return total / len(probes)
