"""Chunks of index slices: a column's values for some rows, as Arrow's buffers, compressed as one.

Reading takes no more memory than the size that was promised, whatever the bytes are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.errors import CorruptError

_CODEC = pa.Codec("zstd", compression_level=3)
_ALIGNED = 8
_NO_BUFFER = -1


@dataclass(frozen=True)
class Chunk:
    """An encoded chunk.

    Attributes:
        content: Its bytes.
        plain_bytes: Their number before compression.
    """

    content: bytes
    plain_bytes: int


def chunk_of(values: pa.Array) -> Chunk:
    """Encodes values of a flat type, or structs of flat fields. A null struct becomes a struct of nulls."""
    everything = pa.array(np.arange(len(values)))
    sizes: list[int] = []
    parts: list[bytes] = []
    for leaf in _leaves(values):
        # Taking gives the values buffers of their own, which begin with them.
        own = leaf.take(everything)
        validity, *rest = own.buffers()
        for buffer in (validity if own.null_count else None, *rest):
            content = b"" if buffer is None else buffer.to_pybytes()
            sizes.append(_NO_BUFFER if buffer is None else len(content))
            parts.append(content.ljust(-(-len(content) // _ALIGNED) * _ALIGNED, b"\0"))
    plain = b"".join([np.array(sizes, "<i8").tobytes(), *parts])
    return Chunk(_CODEC.compress(plain, asbytes=True), len(plain))


def values_of(content: bytes, plain_bytes: int, kind: pa.DataType, row_count: int) -> pa.Array:
    """Decodes a chunk.

    Args:
        content: The encoded chunk.
        plain_bytes: Its number of bytes before compression.
        kind: The type of its values.
        row_count: The number of its values.

    Raises:
        CorruptError: It does not hold that many values of the type.
    """
    try:
        plain = _CODEC.decompress(content, decompressed_size=plain_bytes)
        types = [field.type for field in kind] if pa.types.is_struct(kind) else [kind]
        leaves = _arrays(plain, types, row_count)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptError(f"a chunk cannot be decoded: {error}") from error
    return pa.StructArray.from_arrays(leaves, fields=list(kind)) if pa.types.is_struct(kind) else leaves[0]


def _arrays(plain: pa.Buffer, types: Sequence[pa.DataType], row_count: int) -> list[pa.Array]:
    counts = [3 if _has_offsets(kind) else 2 for kind in types]
    at = 8 * sum(counts)
    sizes = iter(np.frombuffer(plain[:at], "<i8").tolist() if plain.size >= at else ())
    arrays = []
    for kind, count in zip(types, counts, strict=True):
        buffers: list[pa.Buffer | None] = []
        for _ in range(count):
            size = next(sizes, None)
            if size is None or size < _NO_BUFFER or at + size > plain.size:
                raise ValueError("its buffers are not inside it")
            buffers.append(None if size == _NO_BUFFER else plain.slice(at, size))
            at += -(-max(size, 0) // _ALIGNED) * _ALIGNED
        array = pa.Array.from_buffers(kind, row_count, buffers)
        array.validate(full=True)
        arrays.append(array)
    return arrays


def is_flat(kind: pa.DataType) -> bool:
    """Returns whether values of a type are a bitmap of nulls, perhaps offsets, and bytes, as in the types of tables."""
    types = pa.types
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_temporal(kind)
        or types.is_fixed_size_binary(kind)
        or _has_offsets(kind)
    )


def _has_offsets(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind)
    )


def _leaves(values: pa.Array) -> Sequence[pa.Array]:
    return values.flatten() if pa.types.is_struct(values.type) else [values]
