"""What functions make of bounds at the ends of their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.predicate import functions as f
from dbt.adapters.zlayout.predicate.expr import Function
from dbt.adapters.zlayout.predicate.functions import CalendarPart, Rounding, TimeUnit, Zone
from dbt.adapters.zlayout.pruning.propagation import propagate
from dbt.adapters.zlayout.pruning.propagation.monotone import (
    DAY_US,
    FARTHEST_US,
    decimal_product,
    decimal_sum,
    forgotten,
    integer_limits,
    near,
    without_nan,
)
from dbt.adapters.zlayout.pruning.statistics.validation import Facts

NARROW, WIDE = pa.decimal128(10, 2), pa.decimal128(38, 0)
BOOL, INT8, INT32, INT64 = pa.bool_(), pa.int8(), pa.int32(), pa.int64()
FLOAT, DOUBLE, TEXT, BYTES = pa.float32(), pa.float64(), pa.string(), pa.binary()
DATE, WALL, INSTANT = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")
HOUR_US = 3_600_000_000
STORED = {DATE: INT32, WALL: INT64, INSTANT: INT64}
"""What dates and times are written as here: days and microseconds since 1970."""


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
    assert left.may_have_value.tolist() == [True] * 4
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
    times = pa.array([FARTHEST_US, FARTHEST_US + 1, -FARTHEST_US, -FARTHEST_US - 1], pa.int64()).cast(
        pa.timestamp("us")
    )
    assert near(times).tolist() == [True, False, True, False]


def test_the_ends_of_integer_types() -> None:
    assert integer_limits(pa.int8()) == (-128, 127)
    assert integer_limits(pa.date32()) == (-(2**31), 2**31 - 1)
    assert integer_limits(pa.timestamp("us")) == (-(2**63), 2**63 - 1)


def files(kind: pa.DataType, lows: Sequence[Any], highs: Sequence[Any]) -> Facts:
    """Of numbers only, each from low to high, both of them values of the file; None is unknown."""
    ends = [pa.array(each, STORED.get(kind, kind)).cast(kind) for each in (lows, highs)]
    exact = [np.array([value is not None for value in each]) for each in (lows, highs)]
    no, yes = np.zeros(len(lows), np.bool_), np.ones(len(lows), np.bool_)
    return Facts(*ends, *exact, may_be_null=no, may_be_nan=no, may_have_value=yes, informed=yes)


def one_file(kind: pa.DataType, low: Any, high: Any) -> Facts:
    return files(kind, [low], [high])


def all_bounds_of(found: Facts | None) -> list[tuple[Any, Any]]:
    assert found is not None
    ends = (side.cast(STORED.get(side.type, side.type)).to_pylist() for side in (found.minimum, found.maximum))
    return list(zip(*ends, strict=True))


def bounds_of(found: Facts | None) -> tuple[Any, Any]:
    (only,) = all_bounds_of(found)
    return only


RISING = [
    (f.Prefix(TEXT, 2), TEXT, "abc", "ab"),
    (f.Prepended(TEXT, pa.scalar("x")), TEXT, "a", "xa"),
    (f.Convert(INT32), BOOL, True, 1),
    (f.Convert(INT64), INT32, 7, 7),
    (f.Convert(FLOAT), INT32, 7, 7.0),
    (f.Convert(DOUBLE), FLOAT, 1.5, 1.5),
    (f.Convert(FLOAT), DOUBLE, 1.5, 1.5),
    (f.Convert(DATE), WALL, DAY_US, 1),
    (f.Convert(BYTES), TEXT, "a", b"a"),
    (f.Plus(DOUBLE, 1.0), DOUBLE, 0.5, 1.5),
    (f.Times(DOUBLE, 2.0), DOUBLE, 0.5, 1.0),
    (f.Over(DOUBLE, 2.0), DOUBLE, 0.5, 0.25),
    (f.Truncated(WALL, TimeUnit.HOUR), WALL, HOUR_US + 1, HOUR_US),
    (f.PartOf(INT32, CalendarPart.YEAR), DATE, 18_700, 2021),
    (f.Ticks(INT32, DAY_US), DATE, 7, 7),
    (f.Ticks(INT64, 1_000_000), INSTANT, 7_000_001, 7),
    (f.FromTicks(DATE, DAY_US), INT32, 7, 7),
]


@pytest.mark.parametrize(("function", "kind", "x", "mapped"), RISING, ids=str)
def test_one_bound_alone_maps_through_what_is_defined_everywhere(
    function: Function, kind: pa.DataType, x: Any, mapped: Any
) -> None:
    for low, high, expected in ((x, None, (mapped, None)), (None, x, (None, mapped))):
        found = propagate(function, one_file(kind, low, high))
        assert bounds_of(found) == expected
        assert not found.may_be_null[0]
        assert found.informed[0]


@pytest.mark.parametrize(
    ("function", "kind", "x"),
    [
        (f.Negate(DOUBLE), DOUBLE, 1.5),
        (f.Negate(NARROW), NARROW, Decimal("1.50")),
        (f.Times(DOUBLE, -1.0), DOUBLE, 1.5),
        (f.Over(DOUBLE, -1.0), DOUBLE, 1.5),
    ],
    ids=str,
)
def test_what_falls_everywhere_makes_one_bound_the_other(function: Function, kind: pa.DataType, x: Any) -> None:
    assert bounds_of(propagate(function, one_file(kind, x, None))) == (None, -x)
    assert bounds_of(propagate(function, one_file(kind, None, x))) == (-x, None)


@pytest.mark.parametrize(
    ("function", "kind", "x"),
    [
        (f.Plus(INT32, 1), INT32, 1),
        (f.Plus(NARROW, Decimal("0.01")), NARROW, Decimal(1)),
        (f.Times(INT32, 2), INT32, 1),
        (f.Times(NARROW, Decimal(2)), NARROW, Decimal(1)),
        (f.Over(INT32, -1), INT32, 1),
        (f.Negate(INT32), INT32, 1),
        (f.Convert(INT8), INT32, 1),
        (f.Convert(NARROW), INT64, 1),
        (f.Convert(INT32), DOUBLE, 1.0),
        (f.Convert(pa.decimal128(8, 1)), NARROW, Decimal(1)),
        (f.Convert(INT32), WIDE, Decimal(1)),
        (f.Convert(WALL), DATE, 1),
        (f.Convert(TEXT), DATE, 1),
        (f.Rounded(pa.decimal128(9, 1), Rounding.HALF_UP, 1), NARROW, Decimal(1)),
        (f.Rounded(INT64, Rounding.FLOOR, 0), DOUBLE, 1.5),
        (f.Rounded(INT32, Rounding.HALF_UP, -1), INT32, 1),
        (f.Truncated(WALL, TimeUnit.MONTH), WALL, 1),
        (f.PlusMonths(DATE, 1), DATE, 1),
        (f.PlusMonths(WALL, 1), WALL, 1),
        (f.LastDay(DATE), DATE, 1),
        (f.FromTicks(INSTANT, 1_000_000), INT64, 1),
    ],
    ids=str,
)
def test_one_bound_alone_says_nothing_of_what_may_overflow(function: Function, kind: pa.DataType, x: Any) -> None:
    for low, high in ((x, None), (None, x)):
        found = propagate(function, one_file(kind, low, high))
        assert bounds_of(found) == (None, None)
        assert found.may_be_null[0]
        assert not found.informed[0]


UNKNOWN = (None, None)
ENDS = [
    (f.Convert(INT8), INT64, (-128, 127), (-128, 127)),
    (f.Convert(INT8), INT64, (-129, 0), UNKNOWN),
    (f.Convert(INT8), INT64, (0, 128), UNKNOWN),
    (f.Convert(INT32), DOUBLE, (-(2.0**31), 2.0**31 - 0.5), (-(2**31), 2**31 - 1)),
    (f.Convert(INT32), DOUBLE, (-(2.0**31) - 1, 0.0), UNKNOWN),
    (f.Convert(INT32), DOUBLE, (0.0, 2.0**31), UNKNOWN),
    (f.Convert(INT8), NARROW, (Decimal("-128.99"), Decimal("127.99")), (-128, 127)),
    (f.Convert(INT8), NARROW, (Decimal("-129.00"), Decimal(0)), UNKNOWN),
    (f.Convert(INT8), NARROW, (Decimal(0), Decimal("128.00")), UNKNOWN),
    (f.Convert(WALL), DATE, (-53_375_995, 53_375_995), (-53_375_995 * DAY_US, 53_375_995 * DAY_US)),
    (f.Convert(WALL), DATE, (-53_375_996, 0), UNKNOWN),
    (f.Convert(WALL), DATE, (0, 2**31 - 1), UNKNOWN),
    (f.Convert(TEXT), DATE, (-719_162, 2_932_896), ("0001-01-01", "9999-12-31")),
    (f.Convert(TEXT), DATE, (-719_163, 0), UNKNOWN),
    (f.Convert(TEXT), DATE, (0, 2_932_897), UNKNOWN),
    (f.Rounded(INT8, Rounding.HALF_UP, -1), INT8, (-123, 122), (-128, 127)),
    (f.Rounded(INT8, Rounding.HALF_UP, -1), INT8, (-124, 0), UNKNOWN),
    (f.Rounded(INT8, Rounding.HALF_UP, -1), INT8, (0, 123), UNKNOWN),
    (f.Rounded(INT8, Rounding.HALF_UP, -3), INT8, (-128, 127), UNKNOWN),
    (f.Rounded(INT64, Rounding.HALF_UP, -18), INT64, (0, 1), (-5 * 10**17, 5 * 10**17 + 1)),
    (f.Plus(INT8, 1), INT8, (-128, 126), (-127, 127)),
    (f.Plus(INT8, 1), INT8, (0, 127), UNKNOWN),
    (f.Plus(INT8, -1), INT8, (-127, 127), (-128, 126)),
    (f.Plus(INT8, -1), INT8, (-128, 0), UNKNOWN),
    (f.Plus(INT64, 2**63), INT64, (-(2**63), -1), (0, 2**63 - 1)),
    (f.Plus(INT64, 2**63), INT64, (-5, 0), UNKNOWN),
    (f.Plus(INT64, -(2**63)), INT64, (0, 5), (-(2**63), 5 - 2**63)),
    (f.Plus(INT64, -(2**63)), INT64, (-1, 5), UNKNOWN),
    (f.Times(INT8, 3), INT8, (-42, 42), (-126, 126)),
    (f.Times(INT8, 3), INT8, (-43, 0), UNKNOWN),
    (f.Times(INT8, 3), INT8, (0, 43), UNKNOWN),
    (f.Times(INT8, -3), INT8, (-42, 41), (-123, 126)),
    (f.Times(INT8, -3), INT8, (-43, 0), UNKNOWN),
    (f.Times(INT8, -3), INT8, (0, 43), UNKNOWN),
    (f.Negate(INT64), INT64, (1 - 2**63, 2**63 - 1), (1 - 2**63, 2**63 - 1)),
    (f.Negate(INT64), INT64, (-(2**63), 0), UNKNOWN),
    (f.Over(INT8, -1), INT8, (-127, 127), (-127, 127)),
    (f.Over(INT8, -1), INT8, (-128, 0), UNKNOWN),
    (f.Over(INT32, 7), INT32, (-15, 13), (-2, 1)),
    (f.Over(INT64, 2**63 - 1), INT64, (0, 2**63 - 1), (0, 1)),
    (f.Over(INT64, -(2**63)), INT64, (1 - 2**63, 2**63 - 1), (0, 0)),
    (f.Absolute(INT8), INT8, (-127, 5), (0, 127)),
    (f.Absolute(INT8), INT8, (-128, 5), UNKNOWN),
    (f.Absolute(INT8), INT8, (-128, -5), UNKNOWN),
    (f.FromTicks(INSTANT, 1_000_000), INT64, (0, (2**63 - 1) // 1_000_000), (0, (2**63 - 1) // 1_000_000 * 1_000_000)),
    (f.FromTicks(INSTANT, 1_000_000), INT64, (0, (2**63 - 1) // 1_000_000 + 1), UNKNOWN),
    (f.PlusMonths(DATE, 1_200_000), DATE, (0, 0), (36_524_250, 36_524_250)),
]


@pytest.mark.parametrize(("function", "kind", "ends", "expected"), ENDS, ids=str)
def test_what_is_known_reaches_to_the_last_value_that_does_not_overflow(
    function: Function, kind: pa.DataType, ends: tuple[Any, Any], expected: tuple[Any, Any]
) -> None:
    assert bounds_of(propagate(function, one_file(kind, *ends))) == expected


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (f.Prefix(TEXT, 0), TEXT),
        (f.Prefix(BYTES, 1), BYTES),
        (f.Prepended(TEXT, pa.scalar("x")), BYTES),
        (f.FoldedCase(TEXT, True), BYTES),
        (f.Convert(NARROW), BOOL),
        (f.Convert(DATE), INSTANT),
        (f.Convert(INSTANT), DATE),
        (f.Convert(TEXT), WALL),
        (f.Convert(INT32), TEXT),
        (f.Rounded(INT64, Rounding.HALF_UP, 0), DOUBLE),
        (f.Rounded(INT64, Rounding.FLOOR, 1), DOUBLE),
        (f.Rounded(INT64, Rounding.HALF_UP, 1), DOUBLE),
        (f.Rounded(INT64, Rounding.FLOOR, 0), NARROW),
        (f.Rounded(NARROW, Rounding.FLOOR, 0), DOUBLE),
        (f.Rounded(DOUBLE, Rounding.FLOOR, 1), DOUBLE),
        (f.Rounded(INT64, Rounding.HALF_UP, -19), INT64),
        (f.Plus(INT64, 1), INT32),
        (f.Plus(DOUBLE, 1.0), FLOAT),
        (f.Times(INT64, 1), INT32),
        (f.Times(INT64, 0), INT64),
        (f.Over(INT64, 1), INT32),
        (f.Over(INT64, 0), INT64),
        (f.Over(DOUBLE, 1.0), FLOAT),
        (f.Over(DOUBLE, 1.0), INT64),
        (f.Over(NARROW, Decimal(1)), NARROW),
        (f.Negate(INT64), INT32),
        (f.Negate(TEXT), TEXT),
        (f.Absolute(INT64), INT32),
        (f.Remainder(INT64, 7, True), INT32),
        (f.Remainder(DOUBLE, 7, True), DOUBLE),
        (f.Remainder(INT64, 0, True), INT64),
        (f.Remainder(INT8, 128, True), INT8),
        (f.Truncated(DATE, TimeUnit.HOUR), DATE),
        (f.Truncated(DATE, TimeUnit.MONTH), WALL),
        (f.Truncated(INSTANT, TimeUnit.MONTH), INSTANT),
        (f.PartOf(INT32, CalendarPart.YEAR), WALL),
        (f.PartOf(INT32, CalendarPart.MONTH), WALL),
        (f.PartOf(INT32, CalendarPart.HOUR), DATE),
        (f.PartOf(INT32, CalendarPart.HOUR), INSTANT),
        (f.PlusMonths(WALL, 1), DATE),
        (f.PlusMonths(INSTANT, 1), INSTANT),
        (f.PlusMonths(DATE, 1_200_001), DATE),
        (f.LastDay(DATE), WALL),
        (f.Ticks(INT64, 1), INT64),
        (f.FromTicks(INSTANT, 1), DOUBLE),
        (f.FromTicks(DATE, DAY_US), INT64),
    ],
    ids=str,
)
def test_a_function_without_a_rule_for_a_type_says_nothing(function: Function, kind: pa.DataType) -> None:
    assert propagate(function, one_file(kind, None, None)) is None


@pytest.mark.parametrize(
    ("function", "kind", "low", "high", "falls"),
    [
        (f.Plus(INT32, 1), INT32, 3, 7, False),
        (f.Remainder(INT32, 10, True), INT32, 3, 7, False),
        (f.Absolute(INT32), INT32, 3, 7, False),
        (f.Absolute(INT32), INT32, -7, -3, True),
        (f.PartOf(INT32, CalendarPart.MONTH), DATE, 3, 7, False),
        (f.PlusMonths(WALL, 1), WALL, 3, 7, False),
        (f.LocalTime(WALL, Zone.fixed("+00:00", 0)), INSTANT, 3, 7, False),
        (f.InstantOf(INSTANT, Zone.fixed("+00:00", 0)), WALL, 3, 7, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("exact", [(True, False), (False, True)])
def test_each_bound_is_a_value_of_the_file_where_the_one_that_it_comes_from_was(
    function: Function, kind: pa.DataType, low: int, high: int, falls: bool, exact: tuple[bool, bool]
) -> None:
    facts = one_file(kind, low, high)
    found = propagate(function, replace(facts, minimum_exact=np.array(exact[:1]), maximum_exact=np.array(exact[1:])))
    assert (found.minimum_exact[0], found.maximum_exact[0]) == (exact[::-1] if falls else exact)


@pytest.mark.parametrize(
    ("low", "high", "exact", "expected"),
    [
        (-7, 3, (True, False), (False, True)),
        (-7, 3, (False, True), (False, False)),
        (-3, 7, (False, True), (False, True)),
        (-3, 7, (True, False), (False, False)),
        (-7, 7, (True, False), (False, True)),
    ],
)
def test_the_farther_end_from_zero_is_a_value_of_the_file_if_it_was(
    low: int, high: int, exact: tuple[bool, bool], expected: tuple[bool, bool]
) -> None:
    facts = one_file(INT32, low, high)
    found = propagate(
        f.Absolute(INT32), replace(facts, minimum_exact=np.array(exact[:1]), maximum_exact=np.array(exact[1:]))
    )
    assert (found.minimum_exact[0], found.maximum_exact[0]) == expected


@pytest.mark.parametrize(
    ("part", "kind", "first", "last", "within", "anything"),
    [
        # 2 January, 1 February or 1 April 2021, up to the end of that January or that year
        (CalendarPart.QUARTER, DATE, 18_718, 18_992, (2, 4), (1, 4)),
        (CalendarPart.MONTH, DATE, 18_659, 18_992, (2, 12), (1, 12)),
        (CalendarPart.DAY_OF_YEAR, DATE, 18_629, 18_992, (2, 365), (1, 366)),
        (CalendarPart.DAY_OF_MONTH, DATE, 18_629, 18_658, (2, 31), (1, 31)),
        # Monday 5 January 1970 to Saturday, Tuesday to Sunday
        (CalendarPart.DAY_OF_WEEK, DATE, 4, 9, (2, 7), (1, 7)),
        (CalendarPart.WEEKDAY, DATE, 5, 10, (1, 6), (0, 6)),
        (CalendarPart.HOUR, WALL, HOUR_US, DAY_US - 1, (1, 23), (0, 23)),
        (CalendarPart.MINUTE, WALL, 60_000_000, HOUR_US - 1, (1, 59), (0, 59)),
        (CalendarPart.SECOND, WALL, 1_000_000, 60_000_000 - 1, (1, 59), (0, 59)),
    ],
)
def test_a_part_of_the_calendar_rises_to_the_end_of_its_cycle(
    part: CalendarPart, kind: pa.DataType, first: int, last: int, within: tuple[int, int], anything: tuple[int, int]
) -> None:
    function = f.PartOf(INT32, part)
    rises = propagate(function, one_file(kind, first, last))
    assert bounds_of(rises) == within
    assert rises.minimum_exact[0]
    assert rises.maximum_exact[0]
    for low, high in ((first, last + 1), (None, last), (first, None)):
        goes_round = propagate(function, one_file(kind, low, high))
        assert bounds_of(goes_round) == anything
        assert not goes_round.minimum_exact[0]
        assert not goes_round.maximum_exact[0]


@pytest.mark.parametrize(
    ("never_negative", "low", "high", "expected"),
    [
        (False, 12, 18, (2, 8)),
        (False, 0, 9, (0, 9)),
        (False, 0, 5, (0, 5)),
        (False, 0, 12, (0, 9)),
        (False, 12, 21, (0, 9)),
        (False, 12, None, (0, 9)),
        (False, None, 18, (-9, 9)),
        (False, 5, None, (0, 9)),
        (False, None, 5, (-9, 9)),
        (False, None, None, (-9, 9)),
        (False, -8, -2, (-9, 9)),
        (False, -1, 3, (-9, 9)),
        (True, -8, -2, (2, 8)),
        (True, -1, 3, (0, 9)),
        (True, 5, None, (0, 9)),
        (True, None, 5, (0, 9)),
        (True, None, None, (0, 9)),
    ],
)
def test_a_remainder_rises_between_two_multiples(
    never_negative: bool, low: int | None, high: int | None, expected: tuple[int, int]
) -> None:
    assert bounds_of(propagate(f.Remainder(INT32, 10, never_negative), one_file(INT32, low, high))) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (3, 7, (3, 7)),
        (0, 7, (0, 7)),
        (-7, -3, (3, 7)),
        (-7, 0, (0, 7)),
        (-7, 3, (0, 7)),
        (-3, 7, (0, 7)),
        (3, None, (3, None)),
        (0, None, (0, None)),
        (None, -3, (3, None)),
        (None, 0, (0, None)),
        (None, 3, (None, None)),
        (-3, None, (None, None)),
        (None, None, (None, None)),
    ],
)
def test_an_absolute_value_lies_as_far_from_zero_as_the_farther_end(
    low: float | None, high: float | None, expected: tuple[float | None, float | None]
) -> None:
    found = propagate(f.Absolute(DOUBLE), one_file(DOUBLE, low, high))
    assert bounds_of(found) == expected
    assert not found.may_be_null[0]


def test_the_least_integer_has_no_absolute_value_and_is_absent_where_no_value_is_below_zero() -> None:
    found = propagate(f.Absolute(INT32), files(INT32, [3, 3, -3, None, -(2**31)], [7, None, None, -3, -3]))
    assert all_bounds_of(found) == [(3, 7), (3, None), UNKNOWN, UNKNOWN, UNKNOWN]
    assert found.may_be_null.tolist() == [False, False, True, True, True]
    assert found.informed.tolist() == [True, True, False, False, False]
    empty = replace(one_file(INT32, None, None), may_have_value=np.array([False]))
    assert not propagate(f.Absolute(INT32), empty).may_be_null[0]


@pytest.mark.parametrize(
    ("function", "kind", "low", "high", "room"),
    [
        (f.Rounded(DOUBLE, Rounding.HALF_UP, 1), DOUBLE, 1.0, 2.0, 0.05),
        (f.Rounded(FLOAT, Rounding.HALF_EVEN, -1), FLOAT, 10.0, 20.0, 5),
        (f.Rounded(INT32, Rounding.HALF_UP, -1), INT32, 10, 20, 5),
        (f.Convert(DOUBLE), NARROW, Decimal("1.25"), Decimal("2.50"), 0),
    ],
    ids=str,
)
def test_what_is_not_computed_as_spark_does_is_bounded_closely(
    function: Function, kind: pa.DataType, low: Any, high: Any, room: float
) -> None:
    both = propagate(function, one_file(kind, low, high))
    assert bounds_of(both) == pytest.approx((float(low) - room, float(high) + room), rel=1e-6)
    assert not both.minimum_exact[0]
    assert not both.maximum_exact[0]


@pytest.mark.parametrize(
    ("function", "kind", "x", "room"),
    [
        (f.Convert(DOUBLE), NARROW, Decimal(1), 0),
        (f.Rounded(DOUBLE, Rounding.HALF_UP, 1), DOUBLE, 1.0, 0.05),
    ],
    ids=str,
)
def test_what_is_bounded_closely_is_so_on_the_side_that_is_known(
    function: Function, kind: pa.DataType, x: Any, room: float
) -> None:
    above, nothing = bounds_of(propagate(function, one_file(kind, x, None)))
    neither, below = bounds_of(propagate(function, one_file(kind, None, x)))
    assert nothing is neither is None
    assert (above, below) == pytest.approx((1 - room, 1 + room), rel=1e-6)


@pytest.mark.parametrize(
    ("january", "months", "last"),
    [(18_657, 1, 18_686), (18_657 + 280 * 146_097, 1_199_989, 18_321 + 530 * 146_097)],
)
def test_times_moved_to_the_end_of_a_month_are_bounded_by_its_day_however_far(
    january: int, months: int, last: int
) -> None:
    # The 30th at 23 o'clock and the 31st at 1: on their common last day of February the second comes first.
    low, high = january * DAY_US + 23 * HOUR_US, (january + 1) * DAY_US + HOUR_US
    found = propagate(f.PlusMonths(WALL, months), one_file(WALL, low, high))
    assert bounds_of(found) == (last * DAY_US, last * DAY_US + DAY_US - 1)
    assert not found.minimum_exact[0]
    assert not found.maximum_exact[0]
    day_before = propagate(f.PlusMonths(WALL, months), one_file(WALL, low - 3 * DAY_US, low - 3 * DAY_US))
    assert day_before.minimum_exact[0]
    assert day_before.maximum_exact[0]


@pytest.mark.parametrize(
    ("upper", "text", "low", "high"),
    [
        (True, "`az{AZ@[", "`AZ{AZ@[", "`AZ{AZ@\\"),
        (False, "`az{AZ@[", "`az{az@[", "`az{az@\\"),
        (True, "ab~\x7fc", "AB~", "AB\x7f"),
        (True, "\x7f", None, None),
        (True, "\x00", None, None),
        (True, "ai", "A", "B"),
        (True, "aé", "A", "B"),
        (True, "0123456789abcdefghi", "0123456789ABCDEF", "0123456789ABCDEG"),
    ],
    ids=ascii,
)
def test_letters_change_case_up_to_the_first_that_is_not_sure(
    upper: bool, text: str, low: str | None, high: str | None
) -> None:
    found = propagate(f.FoldedCase(TEXT, upper), files(TEXT, [text, text, None], [text, None, text]))
    assert all_bounds_of(found) == [(low, high), UNKNOWN, UNKNOWN]
    assert not found.minimum_exact.any()
    assert not found.maximum_exact.any()


def zone(*jumps: tuple[int, int], until: int | None = None) -> Zone:
    """Of jumps at some hour to an offset of so many hours, the first from ever; known until some microsecond."""
    hours, offsets = np.array(jumps, np.int64).T * HOUR_US
    return Zone(str((jumps, until)), hours[1:], offsets, until)


WEST, EAST, FORTH = zone((0, -7), (10, -8)), zone((0, 2), (10, 1)), zone((0, 1), (10, 2))
TWICE = zone((0, 0), (10, -3), (50, -10))
SOON = zone((0, 1), until=20 * HOUR_US)


@pytest.mark.parametrize(
    ("where", "low", "high", "expected", "exact"),
    [
        (WEST, 1, 9.5, (-6, 2.5), (True, True)),
        (WEST, 9.5, 10.25, (2, 3), (False, False)),
        (WEST, 9, 12, (2, 4), (True, True)),
        (WEST, 10, 11, (2, 3), (True, True)),
        (EAST, 9.5, 10.25, (11, 12), (False, False)),
        (EAST, 9.5, 10, (11, 12), (False, False)),
        (FORTH, 9.5, 10.25, (10.5, 12.25), (True, True)),
        (TWICE, 9, 60, (7, 50), (False, True)),
        (TWICE, 9, 55, (7, 47), (False, False)),
        (TWICE, 49, 51, (40, 47), (False, False)),
        (SOON, 5, 20, (6, 21), (True, True)),
        (SOON, 5, 20.5, (-13, 38.5), (False, False)),
        (SOON, None, 5, (None, 23), (False, False)),
        (SOON, 5, None, (-13, None), (False, False)),
    ],
)
def test_local_times_are_bounded_by_the_ends_of_a_file_and_by_what_the_clocks_show_at_jumps_between(
    where: Zone, low: float, high: float, expected: tuple[float, float], exact: tuple[bool, bool]
) -> None:
    found = propagate(f.LocalTime(WALL, where), one_file(INSTANT, in_micros(low), in_micros(high)))
    assert bounds_of(found) == tuple(map(in_micros, expected))
    assert (found.minimum_exact[0], found.maximum_exact[0]) == exact


def in_micros(hours: float | None) -> int | None:
    return None if hours is None else int(hours * HOUR_US)


def test_instants_are_bounded_by_the_offsets_of_all_jumps_within_18_hours() -> None:
    near = [-8 * HOUR_US, 0, 28 * HOUR_US]
    far = [-8 * HOUR_US - 1, 28 * HOUR_US + 1]
    found = propagate(f.InstantOf(INSTANT, WEST), files(WALL, [*near, *far], [*near, *far]))
    after = [7 * HOUR_US, 8 * HOUR_US]
    assert all_bounds_of(found) == [
        *((x + after[0], x + after[1]) for x in near),
        *((x + shift, x + shift) for x, shift in zip(far, after, strict=True)),
    ]
    assert found.minimum_exact.tolist() == found.maximum_exact.tolist() == [False] * 3 + [True] * 2
    often = zone((0, 0), (10, -2), (20, 3), (200, 5))
    found = propagate(f.InstantOf(INSTANT, often), files(WALL, [15 * HOUR_US, 300 * HOUR_US], [15 * HOUR_US, None]))
    assert all_bounds_of(found) == [(12 * HOUR_US, 17 * HOUR_US), (295 * HOUR_US, None)]


def test_instants_are_bounded_by_18_hours_where_a_jump_may_be_unknown() -> None:
    last = 2 * HOUR_US
    found = propagate(f.InstantOf(INSTANT, SOON), files(WALL, [last, last + 1], [last, last + 1]))
    assert all_bounds_of(found) == [(HOUR_US, HOUR_US), (last + 1 - 18 * HOUR_US, last + 1 + 18 * HOUR_US)]
    assert found.minimum_exact.tolist() == found.maximum_exact.tolist() == [True, False]


@pytest.mark.parametrize(("make", "kind", "result"), [(f.LocalTime, INSTANT, WALL), (f.InstantOf, WALL, INSTANT)])
def test_a_time_too_far_for_an_offset_more_leaves_the_other_end_known(
    make: Any, kind: pa.DataType, result: pa.DataType
) -> None:
    function, far = make(result, zone((0, 0))), FARTHEST_US
    found = propagate(function, files(kind, [-far - 1, 0, -far], [0, far + 1, far]))
    (left, right, both) = all_bounds_of(found)
    room = 18 * HOUR_US if kind == INSTANT else 0
    assert (left, right, both) == ((None, room), (-room, None), (-far, far))
    assert found.minimum_exact.tolist() == [False, not room, True]
    assert found.maximum_exact.tolist() == [not room, False, True]
    assert propagate(function, one_file(result, 0, 0)) is None
