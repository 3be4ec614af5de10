"""Finds ints that Spark's hash partitioning sends to a given partition, on every Spark version.

Source: Spark's ``HashPartitioning`` is ``pmod(murmur3(key, seed 42), partitions)`` (``Murmur3_x86_32.hashInt``).
Spark 4.1 has ``repartitionById`` for this. Earlier versions do not.
"""

from __future__ import annotations

import numpy as np

_SEED = 42


def murmur3_of_ints(values: np.ndarray) -> np.ndarray:
    """Returns Spark's hash of ints.

    Args:
        values: int32[n].

    Returns:
        int32[n].
    """
    with np.errstate(over="ignore"):
        mixed = values.astype(np.int32).view(np.uint32) * np.uint32(0xCC9E2D51)
        mixed = _rotated(mixed, 15) * np.uint32(0x1B873593)
        state = _rotated(np.uint32(_SEED) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        state ^= np.uint32(4)
        state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return (state ^ (state >> np.uint32(16))).view(np.int32)


def slot_keys(partitions: int) -> np.ndarray:
    """Returns, for each partition number, an int that Spark's hash partitioning over ``partitions`` sends there.

    Returns:
        int32[partitions]. ``keys[p]`` goes to partition ``p``.
    """
    keys = np.full(partitions, -1, dtype=np.int64)
    start, step = 0, max(64, 8 * partitions)
    while (keys < 0).any():
        candidates = np.arange(start, start + step, dtype=np.int32)
        landed = np.mod(murmur3_of_ints(candidates).astype(np.int64), partitions)
        first, where = np.unique(landed, return_index=True)
        open_ = keys[first] < 0
        keys[first[open_]] = candidates[where[open_]]
        start += step
    return keys.astype(np.int32)


def _rotated(values: np.ndarray, bits: int) -> np.ndarray:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
