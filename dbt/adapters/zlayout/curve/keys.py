"""Arrow values as numbers or bytes that compare in Spark's order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import UnsupportedError

TEXT_BYTES = 64
_CHUNK_ROWS = 1 << 16


@dataclass(frozen=True)
class Comparable:
    """Values in a form that numpy sorts as Spark does.

    Attributes:
        values: int64[n] or bytes 'S<w>'[n]; at null positions some value or other.
        nulls: bool[n].
    """

    values: npt.NDArray[Any]
    nulls: npt.NDArray[np.bool_]


def is_orderable(column_type: pa.DataType) -> bool:
    """Whether a column of this type can be a key."""
    kinds = pa.types
    if kinds.is_dictionary(column_type):
        return is_orderable(column_type.value_type)
    return bool(
        kinds.is_boolean(column_type)
        or kinds.is_signed_integer(column_type)
        or kinds.is_float32(column_type)
        or kinds.is_float64(column_type)
        or kinds.is_decimal128(column_type)
        or kinds.is_date32(column_type)
        or kinds.is_timestamp(column_type)
        or _is_text(column_type)
    )


def comparable(array: pa.Array | pa.ChunkedArray) -> Comparable:
    """Makes values comparable.

    Integers, dates, timestamps and booleans become int64; floats too, by the order of their bits (-0.0 equals 0.0,
    every
    NaN is the same and above infinity); decimals of more than 18 digits become big-endian bytes; strings and binary the
    first 64 bytes of their UTF-8, so that longer ones may tie but never change places.

    Raises:
        UnsupportedError: The type has no order.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    kind = array.type
    if not is_orderable(kind):
        raise UnsupportedError(
            f"a column of type {kind} cannot be ordered; keys are integers, floats, decimals, dates, timestamps, "
            "strings, binary and booleans"
        )
    if pa.types.is_dictionary(kind):
        words = comparable(array.dictionary)
        nulls = _nulls(array)
        codes = pc.fill_null(array.indices, 0).to_numpy(zero_copy_only=False)
        values = words.values[codes] if len(words.values) else np.zeros(len(array), words.values.dtype)
        return Comparable(values, nulls)
    return Comparable(_values(array, kind), _nulls(array))


def _values(array: pa.Array, kind: pa.DataType) -> npt.NDArray[Any]:
    if _is_text(kind):
        return _text(array)
    if pa.types.is_decimal128(kind):
        return _decimals(array, kind)
    if pa.types.is_floating(kind):
        return _floats(pc.fill_null(array, 0.0).cast(pa.float64()).to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif pa.types.is_date32(kind):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        array = array.cast(pa.int64())
    values: npt.NDArray[np.int64] = pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _floats(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    clean = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = clean.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


def _decimals(array: pa.Array, kind: pa.DataType) -> npt.NDArray[Any]:
    words = np.frombuffer(array.buffers()[1], dtype="<u8")[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[0::2], words[1::2]
    if kind.precision <= 18:
        return np.where(_nulls(array), 0, low.view(np.int64))
    packed = np.empty((len(array), 2), dtype=">u8")
    packed[:, 0] = high ^ np.uint64(1 << 63)
    packed[:, 1] = low
    return np.where(_nulls(array), b"", packed.view("S16").reshape(-1))


def _text(array: pa.Array) -> npt.NDArray[Any]:
    array = array.cast(pa.large_binary())
    width = min(TEXT_BYTES, max(1, pc.max(pc.binary_length(array)).as_py() or 1))
    out = np.zeros(len(array), dtype=f"S{width}")
    for start in range(0, len(array), _CHUNK_ROWS):
        part = array.slice(start, _CHUNK_ROWS)
        offsets = np.frombuffer(part.buffers()[1], dtype=np.int64)[part.offset : part.offset + len(part) + 1]
        data = part.buffers()[2]
        letters = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        lengths = np.minimum(np.diff(offsets), width)
        block = np.zeros((len(part), width), dtype=np.uint8)
        position = np.arange(width)
        inside = position[None, :] < lengths[:, None]
        where = np.minimum(offsets[:-1, None] + position[None, :], len(letters) - 1)
        block[inside] = letters[where[inside]]
        out[start : start + len(part)] = block.view(f"S{width}").reshape(-1)
    return out


def _nulls(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False))


def _is_text(kind: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_string(kind)
        or kinds.is_large_string(kind)
        or kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kind in (pa.string_view(), pa.binary_view())
    )
