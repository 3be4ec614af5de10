"""Bound cutting: shortens bounds of long strings and binary so that they remain valid bounds.

Bounds of several files are told apart by the bytes in which they differ from their neighbours, so these are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.curve.keys import common_bytes, is_text, large_binary

SHORT_BOUND_BYTES = 64
MOST_BOUND_BYTES = 1024

_BYTES_BEYOND = 16
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def cut_bounds(stats: pa.StructArray, limit: int = SHORT_BOUND_BYTES, most: int = MOST_BOUND_BYTES) -> pa.StructArray:
    """Shortens the bounds of one column's statistics; types other than string and binary are unchanged.

    A bound that begins like another one for long, as URLs do, keeps 16 bytes from where they differ.

    Args:
        stats: Array of `stats_type`.
        limit: Most bytes of a bound that differs from all others within fewer bytes.
        most: Most bytes of any bound.

    Returns:
        The statistics with no bound longer than that. A shortened bound is no longer exact; a maximum that has no
        upper bound within its limit becomes unknown.
    """
    kind = stats.type.field("min").type
    if not is_text(kind):
        return stats
    # Fields of a null are null, whatever lies below it.
    fields = dict(zip((field.name for field in stats.type), stats.flatten(), strict=True))
    sides = [fields[side] for side in ("min", "max")]
    if not any(pc.any(pc.greater(pc.binary_length(each), limit)).as_py() for each in sides):
        return stats
    limits = _Limits.of(sides, limit, most)
    floor, ceiling = (text_floor, text_ceiling) if pa.types.is_string(kind) else (binary_floor, binary_ceiling)
    low, low_exact = _cut(sides[0], fields["min_exact"], limits, floor)
    high, high_exact = _cut(sides[1], fields["max_exact"], limits, ceiling)
    rest = [fields[name] for name in ("null_count", "nan_count", "value_count")]
    return pa.StructArray.from_arrays([low, high, low_exact, high_exact, *rest], fields=list(stats.type))


@dataclass(frozen=True)
class _Limits:
    """Most bytes of each bound.

    Attributes:
        bounds: The distinct bounds, as large binary.
        most_bytes: int64, for each of them.
    """

    bounds: pa.Array
    most_bytes: pa.Array

    @classmethod
    def of(cls, sides: Sequence[pa.Array], limit: int, most: int) -> _Limits:
        distinct = pc.unique(pa.concat_arrays([large_binary(each) for each in sides])).drop_null()
        ordered = distinct.take(pc.sort_indices(distinct))
        alike = np.zeros(len(ordered) + 1, np.int64)
        alike[1:-1] = common_bytes(ordered[:-1], ordered[1:])
        telling = np.maximum(alike[:-1], alike[1:]) + _BYTES_BEYOND
        return cls(ordered, pa.array(np.minimum(np.maximum(telling, limit), max(limit, most))))

    def for_each(self, values: pa.Array) -> pa.Array:
        """Returns the limit of each value, int64; null for null."""
        return self.most_bytes.take(pc.index_in(large_binary(values), value_set=self.bounds))


def text_floor(value: str, limit: int) -> str:
    """Returns the longest prefix within the limit that does not split a code point."""
    return value.encode()[:limit].decode(errors="ignore")


def text_ceiling(value: str, limit: int) -> str | None:
    """Returns a string within the limit that is above every string that starts like the value; None if there is none.

    >>> text_ceiling("Bonn am Rhein", limit=4), text_ceiling("né", limit=2)
    ('Bono', 'o')
    """
    prefix = text_floor(value, limit)
    while prefix:
        successor = _next_code_point(ord(prefix[-1]))
        prefix = prefix[:-1]
        if successor is not None and len((candidate := prefix + chr(successor)).encode()) <= limit:
            return candidate
    return None


def binary_floor(value: bytes, limit: int) -> bytes:
    """Returns the first bytes, up to the limit."""
    return value[:limit]


def binary_ceiling(value: bytes, limit: int) -> bytes | None:
    """Returns bytes within the limit above all that start like the value; None if the prefix is all 0xFF."""
    prefix = value[:limit].rstrip(b"\xff")
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None


def _next_code_point(code_point: int) -> int | None:
    if code_point == _LAST_CODE_POINT:
        return None
    return _SURROGATES.stop if code_point + 1 in _SURROGATES else code_point + 1


def _cut(
    bound: pa.Array, exact: pa.Array, limits: _Limits, shorten: Callable[..., str | bytes | None]
) -> tuple[pa.Array, pa.Array]:
    # Bounds repeat over files (constant prefixes, defaults), so each distinct one is cut only once.
    distinct = pc.unique(bound).drop_null()
    allowed = limits.for_each(distinct)
    is_long = pc.greater(pc.binary_length(distinct), allowed)
    distinct, allowed = distinct.filter(is_long), allowed.filter(is_long)
    too_long = pc.and_(pc.is_valid(bound), pc.is_in(bound, value_set=distinct))
    pairs = zip(distinct.to_pylist(), allowed.to_pylist(), strict=True)
    cut = pa.array([shorten(value, most) for value, most in pairs], bound.type)
    replaced = cut.take(pc.index_in(bound.filter(too_long), value_set=distinct))
    return pc.replace_with_mask(bound, too_long, replaced), pc.and_(exact, pc.invert(too_long))
