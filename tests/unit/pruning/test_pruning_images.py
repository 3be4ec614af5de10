"""What functions make of bounds at the ends of their types."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from dbt.adapters.zlayout.pruning.images.decimals import decimal_product, decimal_sum
from dbt.adapters.zlayout.pruning.images.vectors import DAY_US, FARTHEST_US, integer_limits, micros_of, near

NARROW, WIDE = pa.decimal128(10, 2), pa.decimal128(38, 0)


def narrow(*values: str | None) -> pa.Array:
    return pa.array([None if each is None else Decimal(each) for each in values], NARROW)


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
