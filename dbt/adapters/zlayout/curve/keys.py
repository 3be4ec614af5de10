"""Key columns as numpy arrays that sort exactly as Spark sorts the column, and what neighbouring texts share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import UnsupportedError

MOST_TEXT_BYTES = 1024
ORDERABLE_TYPES = (
    "integers, floats, decimals up to 38 digits, dates, timestamps, times, day-time intervals, booleans, strings and "
    "binary"
)

_CHUNK_ROWS = 1 << 14
_MAX_INT64_DIGITS = 18
_MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_SIGN = np.uint64(1 << 63)
_WINDOW_BYTES = 64


@dataclass(frozen=True, eq=False)
class Comparable:
    """A key column in a form that numpy can sort and search.

    Attributes:
        values: int64[n] or bytes 'S<width>'[n]. Smaller means earlier in Spark's ascending order; strings that agree in
            as many bytes as were taken, or differ only in trailing NUL bytes, are equal here. Zero at nulls.
        nulls: bool[n], true where the column is null.
    """

    values: npt.NDArray[Any]
    nulls: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)


def is_orderable(column_type: pa.DataType) -> bool:
    """Returns whether columns of an Arrow type can be keys; a dictionary counts as its value type."""
    return _conversion(_plain(column_type)) is not None


def key_type(column_type: pa.DataType) -> pa.DataType:
    """Returns the Arrow type that represents all encodings of the same values: no dictionary, large or view types."""
    plain = _plain(column_type)
    if _is_text(plain):
        return pa.string()
    return pa.binary() if _is_bytes(plain) else plain


def comparable(array: pa.Array | pa.ChunkedArray, most_bytes: int = MOST_TEXT_BYTES) -> Comparable:
    """Converts a key column.

    Integers, dates, booleans and, in their own unit, timestamps, times and day-time intervals become int64. Floats
    become int64 by their bits: -0.0 equals 0.0, NaNs are equal and above infinity. Decimals become int64, or 16 biased
    big-endian bytes from 19 digits on. Strings and binary become their first ``most_bytes`` bytes: Spark orders both by
    unsigned bytes.

    Args:
        array: A column of an orderable type, see `is_orderable`.
        most_bytes: Bytes of a string to take; no value has more.

    Raises:
        UnsupportedError: The type has no order.

    >>> comparable(pa.array([1.5, float("nan"), -2.0, None])).values.argsort(kind="stable").tolist()
    [2, 3, 0, 1]
    """
    convert = _conversion(_plain(array.type))
    if convert is None:
        raise UnsupportedError(
            f"a column of type {array.type} cannot be a clustering key; allowed are "
            f"{ORDERABLE_TYPES}: choose another column"
        )
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    parts = [_of_chunk(chunk, convert, most_bytes) for chunk in chunks or [pa.array([], array.type)]]
    if len(parts) == 1:
        return parts[0]
    return Comparable(np.concatenate([p.values for p in parts]), np.concatenate([p.nulls for p in parts]))


def _of_chunk(chunk: pa.Array, convert: Callable[[pa.Array, int], npt.NDArray[Any]], most_bytes: int) -> Comparable:
    if pa.types.is_dictionary(chunk.type):
        entries = comparable(chunk.dictionary, most_bytes)
        return taken(entries, chunk.indices)
    nulls = null_mask(chunk)
    values = convert(chunk, most_bytes)
    if chunk.null_count:
        values = np.where(nulls, np.zeros(1, values.dtype), values)
    return Comparable(values, nulls)


def taken(entries: Comparable, indices: pa.Array) -> Comparable:
    """Returns the rows of a dictionary column.

    Args:
        entries: The dictionary, converted.
        indices: Position of each row in the dictionary, or null.
    """
    nulls = null_mask(indices)
    if not len(entries):
        return Comparable(np.zeros(len(indices), entries.values.dtype), np.ones(len(indices), np.bool_))
    positions = pc.fill_null(indices, 0).to_numpy(zero_copy_only=False)
    nulls = nulls | entries.nulls[positions]
    values = entries.values[positions]
    return Comparable(np.where(nulls, np.zeros(1, values.dtype), values) if nulls.any() else values, nulls)


def null_mask(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Returns where an array is null, as bool[n]."""
    if not array.null_count:
        return np.zeros(len(array), np.bool_)
    mask: npt.NDArray[np.bool_] = pc.is_null(array).to_numpy(zero_copy_only=False)
    return mask


def _plain(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_))


def _conversion(type_: pa.DataType) -> Callable[[pa.Array, int], npt.NDArray[Any]] | None:
    kinds = pa.types
    if kinds.is_signed_integer(type_) or type_ in (pa.uint8(), pa.uint16(), pa.uint32()) or kinds.is_boolean(type_):
        return _integers
    if kinds.is_date32(type_) or kinds.is_timestamp(type_) or kinds.is_time64(type_) or kinds.is_duration(type_):
        return _integers
    if kinds.is_float32(type_) or kinds.is_float64(type_):
        return _floats
    if kinds.is_decimal128(type_):
        return _short_decimals if type_.precision <= _MAX_INT64_DIGITS else _long_decimals
    return _prefixes if is_text(type_) else None


def _integers(array: pa.Array, _: int) -> npt.NDArray[Any]:
    if pa.types.is_date32(array.type):
        array = array.view(pa.int32())
    elif pa.types.is_temporal(array.type):
        array = array.view(pa.int64())
    if array.null_count:
        array = pc.fill_null(array, False if pa.types.is_boolean(array.type) else 0)
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values.astype(np.int64, copy=False)


def _floats(array: pa.Array, _: int) -> npt.NDArray[Any]:
    if array.null_count:
        array = pc.fill_null(array, 0.0)
    numbers = array.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0  # adding turns -0.0 into 0.0
    numbers[np.isnan(numbers)] = np.nan  # gives all NaNs the same sign and payload
    return _order_of_bits(numbers.view(np.int64))


def floats_of(ordered: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Returns the floats that `comparable` converted to int64."""
    return _order_of_bits(ordered).view(np.float64)


def _order_of_bits(bits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Maps the bits of floats to integers of the same order, and back."""
    turned: npt.NDArray[np.int64] = bits ^ ((bits >> np.int64(63)) & _MAGNITUDE)
    return turned


def _words(array: pa.Array) -> npt.NDArray[np.uint64]:
    """Returns decimals as uint64[n, 2]: the low word, then the high word."""
    buffer = array.buffers()[1]
    if not len(array) or buffer is None:
        return np.zeros((len(array), 2), np.uint64)
    words = np.frombuffer(buffer, "<u8", count=2 * (array.offset + len(array)))
    return words.reshape(-1, 2)[array.offset :]


def _short_decimals(array: pa.Array, _: int) -> npt.NDArray[Any]:
    return np.ascontiguousarray(_words(array)[:, 0]).view(np.int64)


def _long_decimals(array: pa.Array, _: int) -> npt.NDArray[Any]:
    words = _words(array)
    ordered = np.empty((len(array), 2), ">u8")
    ordered[:, 0] = words[:, 1] ^ _SIGN
    ordered[:, 1] = words[:, 0]
    return ordered.view("S16").reshape(-1)


def is_text(column_type: pa.DataType) -> bool:
    """Returns whether values of a type are strings or binary, which compare by their bytes."""
    return _is_text(column_type) or _is_bytes(column_type)


def large_binary(array: pa.Array) -> pa.Array:
    """Returns strings or binary as the bytes that they compare by."""
    large = pa.large_string() if _is_text(array.type) else pa.large_binary()
    try:
        return array.cast(large).view(pa.large_binary())
    except pa.ArrowNotImplementedError:
        return pa.array(array.to_pylist(), large).view(pa.large_binary())  # pyarrow 17 cannot cast view types


def _prefixes(array: pa.Array, most_bytes: int) -> npt.NDArray[Any]:
    array = large_binary(array)
    if array.null_count:
        array = pc.fill_null(array, b"")
    longest = pc.max(pc.binary_length(array)).as_py() or 0
    width = max(1, min(most_bytes, longest))
    return padded(array, width, cut=longest > width).view(f"S{width}").reshape(-1)


def padded(texts: pa.Array, width: int, *, start: int = 0, cut: bool = True) -> npt.NDArray[np.uint8]:
    """Returns bytes of each value, with zeros after its end.

    Args:
        texts: Large binary without nulls.
        width: Number of bytes, from ``start`` on.
        start: The first byte.
        cut: Whether a value may have more bytes.

    Returns:
        uint8[n, width].
    """
    matrix = np.zeros((len(texts), width), np.uint8)
    for first in range(0, len(texts), _CHUNK_ROWS):
        # In chunks of rows, to keep scratch memory small.
        piece = texts.slice(first, _CHUNK_ROWS)
        if cut:
            piece = pc.binary_slice(piece, start, start + width)
        _, offset_buffer, content = piece.buffers()
        offsets = np.frombuffer(offset_buffer, np.int64)[piece.offset : piece.offset + len(piece) + 1]
        # The buffer holds the rows in the same sequence as the matrix does once its padding is masked out.
        present = np.arange(width) < np.diff(offsets)[:, np.newaxis]
        if content is not None:
            matrix[first : first + len(piece)][present] = np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]
    return matrix


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
        distinct = differ.any(axis=1)
        at = open_[distinct]
        # Padding after the end of a text may differ too: no pair has more in common than its shorter text.
        found[at] = np.minimum(found[at], start + differ[distinct].argmax(axis=1))
        start += _WINDOW_BYTES
        open_ = open_[~distinct]
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
