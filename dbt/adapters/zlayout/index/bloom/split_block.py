"""The split block Bloom filter of the Parquet specification: each value sets eight bits in one block of 32 bytes.

A filter has any number of blocks. The upper half of a hash chooses the block, the lower half the bits.

Source: https://github.com/apache/parquet-format/blob/master/BloomFilter.md
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.index.bloom.hashing import Hashes

BLOCK_BYTES = 32
# Bits for each distinct value: one in a hundred absent values is found by mistake.
BITS_PER_VALUE = 11
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
_HALF = np.uint64(32)

Words = npt.NDArray[np.uint32]
"""Eight words of a block, in the last dimension."""


def filter_bytes(distinct: int) -> int:
    """Returns the size of a filter for a number of distinct values.

    >>> filter_bytes(0), filter_bytes(1), filter_bytes(1_000_000)
    (0, 32, 1375008)
    """
    return -(-distinct * BITS_PER_VALUE // (8 * BLOCK_BYTES)) * BLOCK_BYTES


def filter_of(hashes: Hashes) -> bytes:
    """Returns the filter of distinct hashes; it is empty if there are none."""
    blocks = filter_bytes(len(hashes)) // BLOCK_BYTES
    if not blocks:
        return b""
    words = np.zeros((blocks, 8), np.uint32)
    at = blocks_of(hashes, np.uint64(blocks))
    masks = masks_of(hashes)
    for number in range(8):
        np.bitwise_or.at(words[:, number], at, masks[:, number])
    return words.astype("<u4").tobytes()


def held_by(content: bytes, hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Returns which of the hashes a whole filter may hold."""
    words = np.frombuffer(content, "<u4").reshape(-1, 8)
    if not len(words):
        return np.zeros(len(hashes), dtype=bool)
    masks = masks_of(hashes)
    held: npt.NDArray[np.bool_] = ((words[blocks_of(hashes, np.uint64(len(words)))] & masks) == masks).all(axis=1)
    return held


def blocks_of(hashes: Hashes, blocks: np.uint64 | npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Returns the number of the block of each hash, in filters with this many blocks. Both broadcast."""
    found: npt.NDArray[np.int64] = (((hashes >> _HALF) * blocks) >> _HALF).astype(np.int64)
    return found


def masks_of(hashes: Hashes) -> Words:
    """Returns the bits of each hash: uint32[n, 8]."""
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    masks: Words = np.uint32(1) << ((low[:, None] * _SALT) >> np.uint32(27))
    return masks
