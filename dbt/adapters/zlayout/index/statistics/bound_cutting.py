"""Bound cutting: shortens bounds of long strings and binary so that they remain valid bounds."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

MAX_BOUND_BYTES = 64

_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def cut_bounds(stats: pa.StructArray, limit: int = MAX_BOUND_BYTES) -> pa.StructArray:
    """Shortens the bounds of one column's statistics; types other than string and binary are unchanged.

    Args:
        stats: Array of `stats_type`.
        limit: Most bytes of a bound.

    Returns:
        The statistics with no bound longer than the limit. A shortened bound is no longer exact; a maximum that has no
        upper bound within the limit becomes unknown.
    """
    kind = stats.type.field("min").type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return stats
    text = pa.types.is_string(kind)
    low, low_exact = _cut(stats.field("min"), stats.field("min_exact"), limit, text_floor if text else binary_floor)
    high, high_exact = _cut(
        stats.field("max"), stats.field("max_exact"), limit, text_ceiling if text else binary_ceiling
    )
    rest = [stats.field(name) for name in ("null_count", "nan_count", "value_count")]
    return pa.StructArray.from_arrays([low, high, low_exact, high_exact, *rest], fields=list(stats.type))


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
    bound: pa.Array, exact: pa.Array, limit: int, shorten: Callable[..., str | bytes | None]
) -> tuple[pa.Array, pa.Array]:
    too_long = pc.fill_null(pc.greater(pc.binary_length(bound), limit), False)
    if not pc.any(too_long).as_py():
        return bound, exact
    # Bounds repeat over files (constant prefixes, defaults), so each distinct one is cut only once.
    distinct = pc.unique(bound.filter(too_long))
    cut = pa.array([shorten(value, limit) for value in distinct.to_pylist()], bound.type)
    replaced = cut.take(pc.index_in(bound.filter(too_long), value_set=distinct))
    return pc.replace_with_mask(bound, too_long, replaced), pc.and_(exact, pc.invert(too_long))
