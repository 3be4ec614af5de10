"""Hashes of values: those of xxHash64, equal for values that Spark holds equal."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.index.bloom.hashing import hashes_of

NAN = float("nan")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc).replace(tzinfo=None)


def hash_of(value: Any, kind: pa.DataType) -> int:
    (found,) = hashes_of(pa.array([value], kind), kind)
    return int(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0xEF46DB3751D8E999),
        ("a", 0xD24EC4F1A98C6E5B),
        ("abc", 0x44BC2CF5AD770999),
        ("Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_texts_have_the_published_hashes_of_xxhash64(text: str, expected: int) -> None:
    assert hash_of(text, pa.string()) == expected


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        (-0.0, 0.0, pa.float64()),
        (-0.0, 0.0, pa.float32()),
        (NAN, -NAN, pa.float64()),
        (Decimal("1.5"), Decimal("1.50"), pa.decimal128(10, 2)),
    ],
)
def test_values_that_spark_holds_equal_have_one_hash(one: Any, other: Any, kind: pa.DataType) -> None:
    assert hash_of(one, kind) == hash_of(other, kind)


def test_every_bit_pattern_of_nan_has_one_hash() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64)
    assert len(hashes_of(pa.array(bits.view(np.float64)), pa.float64())) == 1


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], pa.bool_()),
        ([-128, 127, 0], pa.int8()),
        ([-(2**63), 2**63 - 1, 0], pa.int64()),
        ([0.1, 1.5, NAN, float("inf"), 0.0], pa.float32()),
        ([Decimal("-1.23"), Decimal("1.23"), Decimal(0)], pa.decimal128(38, 10)),
        ([date(1, 1, 1), date(9999, 12, 31)], pa.date32()),
        ([EPOCH - timedelta(150_000), EPOCH + timedelta(microseconds=1)], pa.timestamp("us")),
        (["", "é", "e\u0301", "x" * 31, "x" * 32, "x" * 33, "x" * 256, "x" * 257, "x" * 10_000], pa.string()),
        ([b"", b"\x00", b"\x00\x00", b"\xff"], pa.binary()),
    ],
)
def test_distinct_values_have_distinct_hashes_and_nulls_none(values: list[Any], kind: pa.DataType) -> None:
    column = pa.array([*values, None, *values], kind)
    assert len(hashes_of(column, kind)) == len(values)
    assert set(map(int, hashes_of(column, kind))) == {hash_of(each, kind) for each in values}


def test_hashes_do_not_depend_on_how_a_column_is_held() -> None:
    texts = ["a", "b" * 40, None, "a", "c"]
    plain = pa.array(texts)
    held = [
        pa.chunked_array([plain.slice(0, 2), plain.slice(2)]),
        plain.dictionary_encode(),
        pa.chunked_array([plain.slice(0, 3).dictionary_encode(), plain.slice(3).dictionary_encode()]),
        pa.concat_arrays([pa.array(["z"]), plain]).slice(1),
        plain.cast(pa.large_string()),
    ]
    for column in held:
        assert hashes_of(column, pa.string()).tolist() == hashes_of(plain, pa.string()).tolist()


def test_decimals_and_dates_count_from_their_offset() -> None:
    for values in (pa.array([Decimal(1), Decimal(2)], pa.decimal128(20, 0)), pa.array([date(2000, 1, 1)] * 2)):
        assert hashes_of(values.slice(1), values.type).tolist() == hashes_of(values[1:], values.type).tolist()
    both = pa.array([Decimal(1), Decimal(2)], pa.decimal128(20, 0))
    assert hashes_of(both.slice(1), both.type).tolist() == [hash_of(Decimal(2), both.type)]


def test_a_column_without_values_has_no_hash() -> None:
    for column in (pa.nulls(3, pa.int64()), pa.array([], pa.string()), pa.array([], pa.decimal128(5, 2))):
        assert len(hashes_of(column, column.type)) == 0
