"""Bound propagation for strings: prefixes, and upper or lower case as far as it can be bounded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.functions import FoldedCase, Prefix, Prepended
from dbt.adapters.zlayout.pruning.propagation.monotone import kept, monotone
from dbt.adapters.zlayout.pruning.statistics.validation import Facts
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags

_PREFIX_BYTES = 16
_ASCII_DELETE = 0x7F


def prefix(function: Prefix, facts: Facts) -> Facts | None:
    """The first n characters are increasing in the string.

    Proof: let a < b differ first at byte i. They share all characters before the one that contains byte i. If n of
    these exist, the prefixes are equal; otherwise each prefix extends beyond byte i, or one string ends there.
    """
    if not pa.types.is_string(facts.minimum.type) or function.length < 1:
        return None
    return monotone(facts, lambda side: kept(pc.utf8_slice_codeunits(side, 0, function.length)), total=True)


def prepended(function: Prepended, facts: Facts) -> Facts | None:
    """Prepending the same string to two strings keeps their order.

    Appending does not: 'a' < 'a!', but 'ax' > 'a!x'.
    """
    if not pa.types.is_string(facts.minimum.type):
        return None
    head = function.head.cast(pa.string())
    return monotone(facts, lambda side: kept(pc.binary_join_element_wise(head, side, "")), total=True)


def folded_case(function: FoldedCase, facts: Facts) -> Facts | None:
    """Case conversion does not keep the order ('B' < 'a'), but it keeps the common prefix of all strings of a file.

    Proof: every string between two that start with P starts with P. ASCII letters change case independently of what
    follows, except i and j, which some languages treat differently: P ends before these. So every string of the file
    becomes one that starts with the converted P, and is below that P with its last character raised by one.
    """
    if not pa.types.is_string(facts.minimum.type):
        return None
    # An unknown bound has zeros for bytes, which are not letters, so it has no common prefix.
    low, high = (_first_bytes(side) for side in (facts.minimum, facts.maximum))
    plain = (low == high) & (low > 0) & (low < _ASCII_DELETE) & ~np.isin(low, np.frombuffer(b"iIjJ", np.uint8))
    common: Flags = np.logical_and.accumulate(plain, axis=1)
    first, last = (b"a", b"z") if function.upper else (b"A", b"Z")
    letters = (low >= first[0]) & (low <= last[0])
    changed = np.where(letters, low ^ 0x20, low)
    begins = np.where(common, changed, 0).astype(np.uint8)
    length = common.sum(axis=1)
    ends = begins.copy()
    some = np.flatnonzero(length)
    ends[some, length[some] - 1] += 1
    never = np.zeros(len(length), dtype=np.bool_)
    return replace(
        facts,
        minimum=_texts(begins, length),
        maximum=_texts(ends, length),
        minimum_exact=never,
        maximum_exact=never,
    )


def _first_bytes(side: pa.Array) -> np.ndarray:
    """Returns uint8[n, 16]: the first bytes of each string, padded with zeros."""
    # Without this cast, a string that is not UTF-8 would make the slicing fail.
    cut = pc.fill_null(pc.binary_slice(side.cast(pa.binary()), 0, _PREFIX_BYTES), b"")
    padded = np.array(cut.to_numpy(zero_copy_only=False), dtype=f"S{_PREFIX_BYTES}")
    return padded.view(np.uint8).reshape(len(side), _PREFIX_BYTES)


def _texts(characters: np.ndarray, length: np.ndarray) -> pa.Array:
    texts = pa.array(np.ascontiguousarray(characters).view(f"S{_PREFIX_BYTES}").ravel(), pa.binary()).cast(pa.string())
    return pc.if_else(pa.array(length > 0), texts, pa.scalar(None, pa.string()))
