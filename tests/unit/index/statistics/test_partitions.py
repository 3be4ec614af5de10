"""Names of partition folders and the values in them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.zlayout.index.statistics.partitions import (
    escape_partition_value,
    is_read_alike,
    parse_partition_folder,
    partition_folder,
    typed_partition_values,
    unescape_partition_value,
)

TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"))


def typed(texts: list[str | None], column_type: pa.DataType, timezone: str | None = None) -> tuple[list, list]:
    values = typed_partition_values(pa.array(texts, pa.string()), column_type, timezone)
    assert values.values.type == column_type
    return values.values.to_pylist(), values.known.to_pylist()


@given(TEXTS)
def test_an_escaped_value_reads_back(text: str) -> None:
    escaped = escape_partition_value(text)
    assert unescape_partition_value(escaped) == text
    assert not set(escaped) & set("/=:\"'#*?\\{[]^\n")


@given(st.lists(st.tuples(TEXTS.filter(bool), st.none() | TEXTS.filter(bool)), min_size=1, max_size=3))
def test_a_folder_reads_back_as_its_columns_and_values(values: list[tuple[str, str | None]]) -> None:
    assert parse_partition_folder(partition_folder(values)) == tuple(values)


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("a b/c", "a b%2Fc"),
        ("50%", "50%25"),
        ("x=y:z", "x%3Dy%3Az"),
        ("tab\tnewline\n", "tab%09newline%0A"),
        ("\"#'*?\\", "%22%23%27%2A%3F%5C"),
        ("{[]^\x7f", "%7B%5B%5D%5E%7F"),
        ("Grüße ~!@$&()-_+}|<>,.;`", "Grüße ~!@$&()-_+}|<>,.;`"),
    ],
)
def test_values_are_escaped_as_spark_does(value: str, escaped: str) -> None:
    assert escape_partition_value(value) == escaped


@pytest.mark.parametrize(("text", "value"), [("a%2fb", "a/b"), ("100%", "100%"), ("%zz%4", "%zz%4"), ("%+5", "%+5")])
def test_a_percent_without_hex_digits_stands_for_itself(text: str, value: str) -> None:
    assert unescape_partition_value(text) == value


def test_null_and_the_empty_string_share_a_folder() -> None:
    assert partition_folder([("a b=", None), ("c", "")]) == (
        "a b%3D=__HIVE_DEFAULT_PARTITION__/c=__HIVE_DEFAULT_PARTITION__"
    )
    assert parse_partition_folder("c=__HIVE_DEFAULT_PARTITION__") == (("c", None),)
    assert partition_folder([]) == ""
    assert parse_partition_folder("") == ()


@pytest.mark.parametrize("folder", ["data", "=x", "a=1/b"])
def test_a_folder_without_column_and_value_is_refused(folder: str) -> None:
    with pytest.raises(ValueError, match="is not a partition folder"):
        parse_partition_folder(folder)


def test_strings_keep_leading_zeros_and_nulls_are_known() -> None:
    assert typed(["01", None, "__HIVE_DEFAULT_PARTITION__", ""], pa.string()) == (["01", None, None, ""], [True] * 4)


def test_integers_outside_of_their_type_are_not_known() -> None:
    assert typed(["7", "-128", "128", "x", "1.0", None], pa.int8()) == (
        [7, -128, None, None, None, None],
        [True, True, False, False, False, True],
    )
    big = ["9223372036854775807", "-9223372036854775808", "9223372036854775808"]
    assert typed(big, pa.int64()) == ([2**63 - 1, -(2**63), None], [True, True, False])


def test_decimals_must_fit_precision_and_scale() -> None:
    assert typed(["1.50", "-0.05", "100", "12.345", "1E+3"], pa.decimal128(4, 2)) == (
        [Decimal("1.50"), Decimal("-0.05"), None, None, None],
        [True, True, False, False, False],
    )
    assert typed(["9" * 38], pa.decimal128(38, 0)) == ([Decimal("9" * 38)], [True])
    assert typed(["0.05"], pa.decimal128(2, 2)) == ([Decimal("0.05")], [True])


def test_floats_booleans_and_dates_are_read_as_spark_spells_them() -> None:
    assert typed(["1.5", "-Infinity", "1.0E-5", "abc"], pa.float64()) == (
        [1.5, float("-inf"), 1e-5, None],
        [True, True, True, False],
    )
    assert typed(["true", "FALSE", "yes"], pa.bool_()) == ([True, False, None], [True, True, False])
    assert typed(["2024-02-29", "2023-02-29", "0001-01-01", "2024-1-1", "1500-03-01"], pa.date32()) == (
        [dt.date(2024, 2, 29), None, dt.date(1, 1, 1), None, dt.date(1500, 3, 1)],
        [True, False, True, False, True],
    )


def test_timestamps_without_zone_are_taken_as_they_are() -> None:
    assert typed(["2024-01-02 03:04:05", "2024-01-02 03:04:05.678", "2024-02-30 00:00:00"], pa.timestamp("us")) == (
        [dt.datetime(2024, 1, 2, 3, 4, 5), dt.datetime(2024, 1, 2, 3, 4, 5, 678_000), None],  # noqa: DTZ001 - no zone is the point
        [True, True, False],
    )


def test_timestamps_with_zone_need_the_sessions_zone_and_an_unambiguous_time() -> None:
    utc = pa.timestamp("us", tz="UTC")
    texts = ["2024-01-15 12:00:00", "2024-03-31 02:30:00", "2024-10-27 02:30:00"]
    noon = dt.datetime(2024, 1, 15, 11, tzinfo=dt.timezone.utc)
    assert typed(texts, utc, "Europe/Berlin") == ([noon, None, None], [True, False, False])
    assert typed(texts, utc) == ([None] * 3, [False] * 3)
    assert typed(texts, utc, "+02:00x") == ([None] * 3, [False] * 3)


def test_values_of_a_type_that_cannot_be_a_folder_are_not_known() -> None:
    assert typed(["a", None], pa.binary()) == ([None, None], [False, True])


@pytest.mark.parametrize(
    ("kind", "alike", "different"),
    [
        ("integer", ["4", "-4", "007"], ["+4", " 4", "4.0", "1_0", "٤"]),
        ("decimal(10,2)", ["1.50", "-0.05", "0E-2"], ["1.5", "1", "1.500", "1_0.00", "NaN"]),
        ("decimal(4,0)", ["12"], ["12.0", "1E+1"]),
        ("double", ["1.5", "1.0E10", "NaN", "-Infinity"], ["inf", "nan", " 1.5"]),
        ("boolean", ["true", "False"], ["t", "1", "yes"]),
        ("string", ["", "+4"], []),
        ("date", ["2024-1-5"], []),
    ],
)
def test_values_that_spark_reads_in_two_ways(kind: str, alike: list[str], different: list[str]) -> None:
    assert [each for each in (*alike, None, "__HIVE_DEFAULT_PARTITION__") if not is_read_alike(each, kind)] == []
    assert [each for each in different if is_read_alike(each, kind)] == []
