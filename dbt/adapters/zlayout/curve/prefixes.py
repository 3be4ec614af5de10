"""What neighbouring texts have in common: how many bytes tell them apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.curve.keys import padded

_WINDOW_BYTES = 64


def common_bytes(left: pa.Array, right: pa.Array) -> npt.NDArray[np.int64]:
    """Returns how many bytes each pair of texts begins with in common.

    Args:
        left: Large binary without nulls.
        right: Likewise, as long.

    Returns:
        int64[n].

    >>> left, right = (pa.array(each, pa.large_binary()) for each in ([b"abc", b"ab"], [b"abd", b"ab"]))
    >>> common_bytes(left, right).tolist()
    [2, 2]
    """
    shorter = np.minimum(*(pc.binary_length(side).to_numpy(zero_copy_only=False) for side in (left, right)))
    found: npt.NDArray[np.int64] = shorter.astype(np.int64)
    open_, start = np.flatnonzero(found > 0), 0
    while len(open_):
        rows = pa.array(open_)
        differ = padded(left.take(rows), _WINDOW_BYTES, start=start) != padded(
            right.take(rows), _WINDOW_BYTES, start=start
        )
        told_apart = differ.any(axis=1)
        at = open_[told_apart]
        # Padding after the end of a text may differ too: no pair has more in common than its shorter text.
        found[at] = np.minimum(found[at], start + differ[told_apart].argmax(axis=1))
        start += _WINDOW_BYTES
        open_ = open_[~told_apart]
        open_ = open_[found[open_] > start]
    return found


def separators(before: pa.Array, after: pa.Array) -> npt.NDArray[Any]:
    """Returns for each pair the fewest bytes that are above the first text and not above the second.

    Args:
        before: Large binary without nulls.
        after: Likewise; each text is above its counterpart.

    Returns:
        bytes 'S<width>'[n].

    >>> first, second = (pa.array([each], pa.large_binary()) for each in (b"/shop/cart/17", b"/shop/item/4"))
    >>> separators(first, second).tolist()
    [b'/shop/i']
    """
    if not len(after):
        return np.zeros(0, "S1")
    lengths = common_bytes(before, after) + 1
    width = int(lengths.max())
    matrix = padded(after, width)
    matrix[np.arange(width) >= lengths[:, np.newaxis]] = 0
    return matrix.view(f"S{width}").reshape(-1)
