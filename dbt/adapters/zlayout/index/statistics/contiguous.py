"""Chunked columns as single arrays."""

from __future__ import annotations

import pyarrow as pa


def contiguous(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Returns the values as one array without chunks."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
