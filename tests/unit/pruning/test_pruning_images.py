"""What functions make of bounds at the ends of their types."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.pruning.images.decimals import decimal_product, decimal_sum
from dbt.adapters.zlayout.pruning.images.monotone import forgotten, without_nan
from dbt.adapters.zlayout.pruning.images.vectors import DAY_US, FARTHEST_US, integer_limits, micros_of, near
from dbt.adapters.zlayout.pruning.trust import Facts

NARROW, WIDE = pa.decimal128(10, 2), pa.decimal128(38, 0)


def narrow(*values: str | None) -> pa.Array:
    return pa.array([None if each is None else Decimal(each) for each in values], NARROW)


def four_files(kind: pa.DataType) -> Facts:
    """Of 1 … 2 each; the first may hold null, the second NaN, the third both."""
    yes = np.ones(4, np.bool_)
    null, nan = np.array([True, False, True, False]), np.array([False, True, True, False])
    return Facts(pa.array([1] * 4, kind), pa.array([2] * 4, kind), yes, yes, null, nan, yes, yes)


@pytest.mark.parametrize(("kind", "floating"), [(pa.float64(), True), (pa.int64(), False)])
def test_what_is_forgotten_of_a_file_leaves_the_others_as_they_are(kind: pa.DataType, floating: bool) -> None:
    left = forgotten(four_files(kind), np.array([False, False, False, True]))
    assert left.minimum.to_pylist() == [1, 1, 1, None]
    assert left.maximum.to_pylist() == [2, 2, 2, None]
    assert left.minimum_exact.tolist() == left.maximum_exact.tolist() == [True, True, True, False]
    assert left.may_be_null.tolist() == [True, False, True, True]
    assert left.may_be_nan.tolist() == [False, True, True, floating]
    assert left.may_be_number.tolist() == [True] * 4
    assert left.informed.tolist() == [True, True, True, False]


@pytest.mark.parametrize(("kind", "nan"), [(pa.float64(), [False, True, True, False]), (pa.int64(), [False] * 4)])
def test_a_function_of_nan_is_nan_where_its_type_has_one(kind: pa.DataType, nan: list[bool]) -> None:
    found = without_nan(four_files(kind), four_files(pa.float64()))
    assert found.minimum.to_pylist() == [1, None, None, 1]
    assert found.maximum.to_pylist() == [2, None, None, 2]
    assert found.may_be_nan.tolist() == nan


def test_a_sum_of_decimals_is_known_as_far_as_its_digits_reach() -> None:
    sums = decimal_sum(narrow("99999999.98", "99999999.99", None), Decimal("0.01"), NARROW)
    assert sums.known.tolist() == [True, False, True]
    assert sums.value.to_pylist() == [Decimal("99999999.99"), None, None]
    falls = decimal_sum(narrow("-99999999.98", "-99999999.99"), Decimal("-0.01"), NARROW)
    assert falls.known.tolist() == [True, False]
    assert falls.value.to_pylist() == [Decimal("-99999999.99"), None]


def test_a_sum_of_decimals_rounds_half_away_from_zero_as_spark_does() -> None:
    sums = decimal_sum(narrow("1.00", "-1.01"), Decimal("0.005"), NARROW)
    assert sums.value.to_pylist() == [Decimal("1.01"), Decimal("-1.01")]


def test_an_amount_of_round_thousands_is_added_whole() -> None:
    assert decimal_sum(narrow("1.25"), Decimal("1E+3"), NARROW).value.to_pylist() == [Decimal("1001.25")]


def test_a_product_of_decimals_is_known_while_all_of_its_digits_are_had() -> None:
    side = pa.array([Decimal(3), None], WIDE)
    factor = Decimal("0." + "0" * 36 + "2")
    just = decimal_product(side, factor, pa.decimal128(38, 37))
    assert just.known.tolist() == [True, True]
    assert just.value.to_pylist() == [3 * factor, None]
    too_wide = decimal_product(side, Decimal("0." + "0" * 37 + "2"), pa.decimal128(38, 38))
    assert too_wide.known.tolist() == [False, True]
    assert too_wide.value.null_count == 2


def test_far_dates_and_times_are_held_where_microseconds_do_not_overflow() -> None:
    farthest = FARTHEST_US // DAY_US
    days = pa.array([farthest, farthest + 1, -farthest, -farthest - 2, 0], pa.int32()).cast(pa.date32())
    assert near(days).tolist() == [True, False, True, False, True]
    assert micros_of(days).tolist()[::4] == [farthest * DAY_US, 0]
    assert all(abs(int(each)) < FARTHEST_US + DAY_US for each in micros_of(days))
    times = pa.array([FARTHEST_US, FARTHEST_US + 1, -FARTHEST_US, -FARTHEST_US - 1], pa.int64()).cast(
        pa.timestamp("us")
    )
    assert near(times).tolist() == [True, False, True, False]
    assert micros_of(times).tolist()[0] == FARTHEST_US


def test_the_ends_of_integer_types() -> None:
    assert integer_limits(pa.int8()) == (-128, 127)
    assert integer_limits(pa.date32()) == (-(2**31), 2**31 - 1)
    assert integer_limits(pa.timestamp("us")) == (-(2**63), 2**63 - 1)
