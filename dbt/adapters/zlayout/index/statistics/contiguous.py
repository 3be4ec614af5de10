"""A column as one array, whatever chunks it came in."""

from __future__ import annotations

import pyarrow as pa


def contiguous(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The same values without chunks."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
