"""Values as constants of Spark's SQL."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types as t

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.spark.read.values_condition import spelling_of


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (t.IntegerType(), -5, "-5"),
        (t.LongType(), 2**63 - 1, "9223372036854775807"),
        (t.BooleanType(), True, "true"),
        (t.DecimalType(20, 3), Decimal("1.500"), "1.5BD"),
        (t.DecimalType(20, 0), Decimal("1E+2"), "100BD"),
        (t.DecimalType(10, 9), Decimal("0E-9"), "0BD"),
        (t.DecimalType(10, 9), Decimal("1E-9"), "0.000000001BD"),
        (t.DoubleType(), float("nan"), "double('NaN')"),
        (t.DoubleType(), float("-inf"), "double('-Infinity')"),
        (t.DoubleType(), 1e300, "1e+300D"),
        (t.FloatType(), 0.5, "0.5F"),
        (t.StringType(), "Zürich (ZH)", "'Zürich (ZH)'"),
        (t.StringType(), "it's", "cast(X'69742773' as string)"),
        (t.StringType(), "a\\b", "cast(X'615C62' as string)"),
        (t.StringType(), "${x}", "cast(X'247B787D' as string)"),
        (t.StringType(), "", "''"),
        (t.BinaryType(), bytearray(b"\x00'"), "X'0027'"),
        (t.DateType(), "+10000-01-01", "date'+10000-01-01'"),
        (t.TimestampType(), -1, "timestamp_micros(-1)"),
        (t.TimestampNTZType(), "2024-03-31 02:30:00", "timestamp_ntz'2024-03-31 02:30:00'"),
    ],
)
def test_a_value_is_a_constant_of_its_type(kind: t.DataType, value: Any, text: str) -> None:
    assert spelling_of(kind, "v").literal(value) == text


def test_a_type_without_constants_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(UnsupportedError, match=r"column v has type array<int>.*select a number, text"):
        spelling_of(t.ArrayType(t.IntegerType()), "v")


@pytest.mark.parametrize(
    ("kind", "values", "text"),
    [
        (t.LongType(), [3, 1, None, 3], "c in (1, 3)"),
        (t.LongType(), [None], "false"),
        (t.DoubleType(), [-0.0, 2.5], "(c in (2.5D) or c = -0.0D or c = 0.0D)"),
        (t.DecimalType(38, 38), [Decimal("0E-38")], "c in (0.0BD)"),
        (t.DoubleType(), [float("nan"), 2.5], "(c in (2.5D) or isnan(c))"),
        (t.FloatType(), [float("nan")], "isnan(c)"),
        (t.BinaryType(), [bytearray(b"a"), b"a"], "c in (X'61')"),
        (t.TimestampType(), [-12_219_292_800_000_001, 0], "true"),
        (t.TimestampType(), [-12_300_000_000_000_000], "c in (timestamp_micros(-12300000000000000))"),
    ],
)
def test_values_are_a_condition_that_readers_of_parquet_get_right(
    kind: t.DataType, values: list[Any], text: str
) -> None:
    assert spelling_of(kind, "v").condition("c", values) == text
