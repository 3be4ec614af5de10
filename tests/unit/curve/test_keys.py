from __future__ import annotations

from itertools import takewhile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.curve.keys import common_bytes, comparable, is_orderable, key_type, separators
from dbt.adapters.zlayout.errors import UnsupportedError

NAN = float("nan")
TEXTS = st.binary(max_size=6) | st.tuples(
    st.sampled_from((b"x" * 63, b"x" * 64, b"x" * 200, b"\0" * 70)), st.binary(max_size=6)
).map(b"".join)


def test_negative_zero_equals_zero_and_every_nan_is_one_value_above_infinity() -> None:
    odd_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
    values = comparable(pa.array([-0.0, 0.0, NAN, odd_nan, float("inf"), float("-inf")])).values
    assert values[0] == values[1]
    assert values[2] == values[3] > values[4] > values[0] > values[5]


def test_long_decimals_order_across_zero() -> None:
    numbers = [-(10**37), -(2**64), -1, 0, 1, 2**64, 10**37]
    values = comparable(pa.array(numbers, pa.decimal128(38, 0))).values
    assert values.dtype == np.dtype("S16")
    assert (values[1:] > values[:-1]).all()


@pytest.mark.parametrize(
    "type_",
    [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()],
    ids=str,
)
def test_all_encodings_of_texts_give_the_same_values(type_: pa.DataType) -> None:
    texts = ["b", None, "", "é", "a" * 200, "ab"]
    plain = comparable(pa.array(texts, pa.string()))
    array = pa.array([text.encode() if text and key_type(type_) == pa.binary() else text for text in texts], type_)
    found = comparable(array)
    assert found.values.tolist() == plain.values.tolist()
    assert found.nulls.tolist() == plain.nulls.tolist() == [False, True, False, False, False, False]


def test_slices_and_chunks_keep_their_rows() -> None:
    texts = pa.array(["x", "yy", None, "zzz", "w" * 100, ""])
    decimals = pa.array([1, 2, None, 4, 5, 6], pa.decimal128(30, 0))
    for array in (texts, decimals, pa.array([1, 2, None, 4, 5, 6]), texts.dictionary_encode()):
        whole = comparable(array)
        cut = comparable(array.slice(1, 4))
        chunked = comparable(pa.chunked_array([array.slice(0, 2), array.slice(2, 0), array.slice(2)]))
        assert cut.values.tolist() == whole.values[1:5].tolist()
        assert chunked.values.tolist() == whole.values.tolist()
        assert chunked.nulls.tolist() == whole.nulls.tolist()


def test_texts_longer_than_one_scratch_chunk_of_rows_stay_aligned() -> None:
    texts = [str(number) * (number % 30) for number in range(40_000)]
    assert comparable(pa.array(texts), 64).values.tolist() == [text.encode()[:64] for text in texts]
    assert comparable(pa.array(texts)).values.tolist() == [text.encode() for text in texts]


def test_a_dictionary_may_hold_null_as_an_entry_or_be_empty() -> None:
    entry = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array([None, "a"]))
    assert comparable(entry).nulls.tolist() == [True, False, True]
    empty = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([], pa.string()))
    assert comparable(empty).nulls.tolist() == [True, True]


@pytest.mark.parametrize(
    "type_", [pa.int32(), pa.string(), pa.decimal128(30, 2), pa.bool_(), pa.timestamp("us")], ids=str
)
def test_empty_and_all_null_columns_have_values(type_: pa.DataType) -> None:
    assert len(comparable(pa.array([], type_))) == 0
    assert len(comparable(pa.chunked_array([], type_))) == 0
    assert comparable(pa.nulls(3, type_)).nulls.all()


@pytest.mark.parametrize(
    "type_",
    [pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.int32()), pa.null()],
    ids=str,
)
def test_a_type_without_order_is_refused_with_what_is_allowed(type_: pa.DataType) -> None:
    assert not is_orderable(type_)
    with pytest.raises(UnsupportedError, match=r"allowed are integers, floats"):
        comparable(pa.nulls(1, type_))


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
