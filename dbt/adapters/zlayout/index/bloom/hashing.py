"""Hashes of values for Bloom filters: xxHash64 in vectors, of bytes that are equal for values that Spark holds equal.

-0.0 and 0.0 have one hash, and so have all NaN. Whole numbers, dates, times and floats are hashed as 8 bytes, decimals
as the 16 bytes of their unscaled value, texts and binary as their bytes.

Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.pruning.statistics.validation import contiguous

Hashes = npt.NDArray[np.uint64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(each)
    for each in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_NAN = np.uint64(0x7FF8000000000000)
# Where null has a hash: the fraction of pi, which is as unlikely for a value as any other number.
NULL_HASH = np.uint64(0x243F6A8885A308D3)
_STRIPE = 32
# Longer values take a call each, which is faster than many short steps over few of them.
_MOST_BYTES_IN_VECTORS = 256
_BYTES_AT_ONCE = 1 << 20


def hashes_of(values: pa.Array | pa.ChunkedArray, column_type: pa.DataType) -> Hashes:
    """Returns the distinct hashes of the values, sorted. Nulls have none.

    Args:
        values: Values of a column; texts may be dictionary-encoded, decimals may be of 8 bytes.
        column_type: The column's type, see `canonical_type`.

    Raises:
        pyarrow.ArrowException: The values cannot be of this type.
    """
    return distinct(_hashed(_distinct(values).cast(column_type).drop_null()))


def hashes_of_each(texts: pa.Array) -> Hashes:
    """Returns the hash of each text, in their order; there must be no nulls."""
    return _of_bytes(texts) if len(texts) else np.empty(0, np.uint64)


def hashes_of_tuples(words: Sequence[npt.NDArray[np.uint64]]) -> Hashes:
    """Returns the hash of the bytes of each row's words, one array for each place, the lowest byte first."""
    rows = np.stack(words, axis=1).astype("<u8").view(np.uint8).reshape(len(words[0]), 8 * len(words))
    found = np.empty(len(rows), np.uint64)
    step = max(1, _BYTES_AT_ONCE // rows.shape[1])
    for start in range(0, len(rows), step):
        found[start : start + step] = _of_rows(rows[start : start + step])
    return found


def hashes_of_rows(values: pa.Array | pa.ChunkedArray, column_type: pa.DataType) -> Hashes:
    """Returns the hash of each value; `NULL_HASH` for null. The arguments are those of `hashes_of`.

    Raises:
        pyarrow.ArrowException: The values cannot be of this type.
    """
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    whole = contiguous(values).cast(column_type)
    hashes = np.full(len(whole), NULL_HASH)
    if whole.null_count < len(whole):
        hashes[whole.is_valid().to_numpy(zero_copy_only=False)] = _hashed(whole.drop_null())
    return hashes


def combined(parts: Sequence[Hashes]) -> Hashes:
    """Returns one hash for several columns of each row, given the hashes of each column in one order."""
    return _of_rows(np.ascontiguousarray(np.column_stack(parts), dtype="<u8").view(np.uint8))


def distinct(hashes: Hashes) -> Hashes:
    """Returns each of the hashes once, sorted."""
    if not len(hashes):
        return hashes
    # Many times faster than np.unique, which builds a table first.
    ordered = np.sort(hashes)
    return ordered[np.r_[True, ordered[1:] != ordered[:-1]]]


def _distinct(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns the values without most repetitions, and without dictionaries."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    if pa.types.is_dictionary(values.type):
        chunks = [each.dictionary.take(pc.unique(each.indices).drop_null()) for each in chunks]
        kind = values.type.value_type
    else:
        kind = values.type
    whole = contiguous(pa.chunked_array(chunks, kind))
    return pc.unique(whole) if _is_bytes(kind) else whole


def _hashed(values: pa.Array) -> Hashes:
    kind = values.type
    if not len(values):
        return np.empty(0, np.uint64)
    if _is_bytes(kind):
        return _of_bytes(values)
    if pa.types.is_decimal128(kind):
        start = 16 * values.offset
        return _of_rows(np.frombuffer(values.buffers()[1], np.uint8)[start : start + 16 * len(values)].reshape(-1, 16))
    if pa.types.is_floating(kind):
        numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        with np.errstate(invalid="ignore"):  # a NaN may be one that signals
            words = np.where(numbers == 0, 0.0, numbers).view(np.uint64)
        words = np.where(np.isnan(numbers), _NAN, words)
    elif pa.types.is_boolean(kind):
        words = values.cast(pa.int64()).to_numpy().view(np.uint64)
    else:
        # Dates are numbers of days, times numbers of microseconds.
        whole = values.view(pa.int32()) if pa.types.is_date32(kind) else values
        whole = whole.view(pa.int64()) if pa.types.is_timestamp(kind) else whole
        words = whole.cast(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64)
    return hashes_of_words(words)


def hashes_of_words(words: npt.NDArray[np.uint64]) -> Hashes:
    """Returns the hash of each word's 8 bytes, the lowest byte first."""
    return _of_rows(np.ascontiguousarray(words, dtype="<u8").view(np.uint8).reshape(-1, 8))


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_binary(kind)
        or types.is_large_string(kind)
        or types.is_large_binary(kind)
        or kind in (pa.string_view(), pa.binary_view())
    )


def _of_bytes(values: pa.Array) -> Hashes:
    large = values.cast(pa.large_binary())
    _, offsets_buffer, data_buffer = large.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[large.offset : large.offset + len(large) + 1]
    content = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    found = np.empty(len(large), np.uint64)
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    first = 0
    while first < len(order):
        length = int(ordered[first])
        if length > _MOST_BYTES_IN_VECTORS:
            break
        after = int(np.searchsorted(ordered, length, side="right"))
        step = max(1, _BYTES_AT_ONCE // max(1, length))
        for begin in range(first, after, step):
            some = order[begin : min(begin + step, after)]
            found[some] = _of_rows(_bytes_at(content, starts[some], length))
        first = after
    for row in order[first:].tolist():
        value = content[starts[row] : starts[row] + lengths[row]].tobytes()
        found[row] = int.from_bytes(hashlib.blake2b(value, digest_size=8).digest(), "little")
    return found


def _bytes_at(content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.uint8]:
    """Returns the bytes of values of one length, a row each."""
    if length and (np.diff(starts) == length).all():
        # They follow each other, as values of one length mostly do.
        return content[starts[0] : starts[0] + len(starts) * length].reshape(-1, length)
    scattered: npt.NDArray[np.uint8] = content[starts[:, None] + np.arange(length)]
    return scattered


def _of_rows(rows: npt.NDArray[np.uint8]) -> Hashes:
    """Returns xxHash64, with seed 0, of each row of a matrix of bytes."""
    count, length = rows.shape
    at = 0
    if length >= _STRIPE:
        with np.errstate(over="ignore"):
            lanes = [np.full(count, start, np.uint64) for start in (_P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1)]
        while at + _STRIPE <= length:
            words = _words(rows[:, at : at + _STRIPE], "<u8")
            lanes = [_round(lane, words[:, number]) for number, lane in enumerate(lanes)]
            at += _STRIPE
        hashes = np.zeros(count, np.uint64)
        for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True):
            hashes = hashes + _rotated(lane, turn)
        for lane in lanes:
            hashes = (hashes ^ _round(np.zeros_like(lane), lane)) * _P1 + _P4
    else:
        hashes = np.full(count, _P5)
    hashes = hashes + np.uint64(length)
    while at + 8 <= length:
        word = _words(rows[:, at : at + 8], "<u8")[:, 0]
        hashes = _rotated(hashes ^ _round(np.zeros_like(word), word), 27) * _P1 + _P4
        at += 8
    if at + 4 <= length:
        word = _words(rows[:, at : at + 4], "<u4")[:, 0].astype(np.uint64)
        hashes = _rotated(hashes ^ (word * _P1), 23) * _P2 + _P3
        at += 4
    while at < length:
        hashes = _rotated(hashes ^ (rows[:, at].astype(np.uint64) * _P5), 11) * _P1
        at += 1
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    final: Hashes = hashes ^ (hashes >> np.uint64(32))
    return final


def _words(rows: npt.NDArray[np.uint8], kind: str) -> npt.NDArray[np.uint64]:
    words: npt.NDArray[np.uint64] = np.ascontiguousarray(rows).view(kind)
    return words


def _round(lane: Hashes, word: Hashes) -> Hashes:
    return _rotated(lane + word * _P2, 31) * _P1


def _rotated(words: Hashes, turn: int) -> Hashes:
    return (words << np.uint64(turn)) | (words >> np.uint64(64 - turn))
