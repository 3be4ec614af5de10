"""How many bytes neighbouring texts have in common, against Python's own comparison."""

from __future__ import annotations

from itertools import takewhile

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.curve.prefixes import common_bytes, separators

TEXTS = st.binary(max_size=6) | st.tuples(
    st.sampled_from((b"x" * 63, b"x" * 64, b"x" * 200, b"\0" * 70)), st.binary(max_size=6)
).map(b"".join)


def alike(left: bytes, right: bytes) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))))


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=20), st.integers(0, 3))
def test_common_bytes_are_those_of_the_common_prefix(pairs: list[tuple[bytes, bytes]], skipped: int) -> None:
    left, right = (pa.array([pair[side] for pair in pairs], pa.large_binary()).slice(skipped) for side in range(2))
    expected = [alike(*pair) for pair in pairs[skipped:]]
    assert common_bytes(left, right).tolist() == expected


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=2, unique=True, max_size=20))
def test_a_separator_is_the_shortest_text_above_one_and_not_above_the_other(texts: list[bytes]) -> None:
    ordered = sorted(texts)
    before, after = pa.array(ordered[:-1], pa.large_binary()), pa.array(ordered[1:], pa.large_binary())
    for low, high, found in zip(ordered[:-1], ordered[1:], separators(before, after).tolist(), strict=True):
        # numpy drops trailing NUL bytes, with which a separator may end.
        separator = high[: alike(low, high) + 1]
        assert low < separator <= high
        assert found == separator.rstrip(b"\0")
