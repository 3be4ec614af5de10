"""Covering ranges: reduces many values to a few ranges that contain them all, split at the widest gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.curve.keys import common_bytes, comparable, is_text, large_binary
from dbt.adapters.zlayout.predicate.expr import And, Compare, Expr, Op, Or, Term

_WORD_BYTES = 8


def covering_ranges(low: pa.Array, high: pa.Array, most: int) -> tuple[pa.Array, pa.Array]:
    """Merges ranges until at most ``most`` are left.

    Ranges that overlap become one. If more than ``most`` are left, the narrowest gaps between them are closed. The
    width of a gap only decides which ones are closed; every value of the input lies in a range of the output.

    Args:
        low: The least value of each range, of an orderable type, without nulls.
        high: The greatest value of each range; for single values the same array.
        most: Most ranges to return, at least one.

    Returns:
        The ends of ranges that do not overlap, in ascending order; NaN is the greatest number.

    >>> low, high = covering_ranges(pa.array([7, 1, 3, 100]), pa.array([9, 4, 5, 101]), 2)
    >>> low.to_pylist(), high.to_pylist()
    ([1, 100], [9, 101])
    """
    count = len(low)
    if not count:
        return low, high
    both = pa.concat_arrays([low, high])
    order = pc.sort_indices(both).to_numpy()
    rank = np.empty(len(both), np.int64)
    rank[order] = np.arange(len(both))
    by_low = np.argsort(rank[:count])
    reach = np.maximum.accumulate(rank[count:][by_low])
    begins = np.flatnonzero(np.r_[True, rank[:count][by_low][1:] > reach[:-1]])
    ends = np.r_[begins[1:], count] - 1
    first, last = by_low[begins], order[reach[ends]]
    if len(begins) > most:
        widths = _gaps(both.take(pa.array(last[:-1])), both.take(pa.array(first[1:])))
        closed = len(widths) - (most - 1)
        cuts = np.sort(np.argpartition(widths, closed - 1)[closed:])
        first, last = first[np.r_[0, cuts + 1]], last[np.r_[cuts, len(last) - 1]]
    return both.take(pa.array(first)), both.take(pa.array(last))


def within_ranges(operand: Term, low: pa.Array, high: pa.Array, most: int) -> Expr:
    """Returns the condition that an operand lies in one of the ranges of `covering_ranges`, of which there is one."""
    ends = zip(*covering_ranges(low, high, most), strict=True)
    return Or(tuple(And((Compare(Op.GE, operand, least), Compare(Op.LE, operand, last))) for least, last in ends))


def _gaps(before: pa.Array, after: pa.Array) -> npt.NDArray[np.float64]:
    """Returns how far each value is from its counterpart, on any scale that grows with the distance.

    For texts it is the logarithm of the distance, with each text read as a fraction whose digits are its bytes.
    """
    if not is_text(before.type):
        return _distances(comparable(before).values, comparable(after).values)
    left, right = large_binary(before), large_binary(after)
    alike = common_bytes(left, right)
    differences = _words_at(right, alike) - _words_at(left, alike)
    found: npt.NDArray[np.float64] = np.log2(np.maximum(differences.astype(np.float64), 0.5)) - 8.0 * alike
    return found


def _words_at(texts: pa.Array, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Returns eight bytes of each text as a number, from its start position on, padded with zeros after its end."""
    _, offset_buffer, content = texts.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    places = (offsets[:-1] + starts)[:, np.newaxis] + np.arange(_WORD_BYTES)
    some_bytes = np.frombuffer(content, np.uint8) if content is not None and content.size else np.zeros(1, np.uint8)
    found = some_bytes[np.minimum(places, len(some_bytes) - 1)]
    return _words(np.where(places < offsets[1:, np.newaxis], found, 0).astype(np.uint8))


def _distances(before: npt.NDArray[Any], after: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Returns the distances of comparable values; of long decimals by eight bytes from the first difference on."""
    if before.dtype.kind == "S":
        width = before.dtype.itemsize
        matrices = [each.view(np.uint8).reshape(-1, width) for each in (before, after)]
        stacked = np.concatenate(matrices)
        differs = np.flatnonzero((stacked != stacked[0]).any(axis=0))
        start = int(differs[0]) if len(differs) else 0
        before, after = (_words(each[:, start : start + _WORD_BYTES]) for each in matrices)
    # Beyond the range of int64 the difference wraps to its value as an unsigned number.
    found: npt.NDArray[np.float64] = (after.view(np.uint64) - before.view(np.uint64)).astype(np.float64)
    return found


def _words(some_bytes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    padded = np.zeros((len(some_bytes), _WORD_BYTES), np.uint8)
    padded[:, : some_bytes.shape[1]] = some_bytes
    words: npt.NDArray[np.uint64] = padded.view(">u8").reshape(-1).astype(np.uint64)
    return words
