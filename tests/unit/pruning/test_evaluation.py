"""Conditions on functions of a column: what they skip, what stays unknown, and each conjunct for itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.predicate import functions as f
from dbt.adapters.zlayout.predicate.expr import (
    And,
    Call,
    Column,
    ColumnPath,
    Compare,
    Expr,
    Function,
    IsNotTrue,
    IsNull,
    IsTrue,
    Not,
    Op,
    Or,
    StartsWith,
    Term,
    Unknown,
    Value,
    columns_of,
    if_else,
)
from dbt.adapters.zlayout.predicate.functions import CalendarPart, Rounding, TimeUnit, Zone
from dbt.adapters.zlayout.pruning.evaluation import verdicts
from dbt.adapters.zlayout.pruning.reasons import explained_verdicts
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict

SKIP, READ, ALL_ROWS = Verdict
INT, LONG, DOUBLE, DATE, TEXT = pa.int32(), pa.int64(), pa.float64(), pa.date32(), pa.string()
WALL, INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")
HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000


@dataclass
class OneFile:
    """Statistics of one file of ten rows."""

    columns: Mapping[ColumnPath, ColumnBounds] = field(default_factory=dict)
    row_count: pa.Array = field(default_factory=lambda: pa.array([10], LONG))

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        return self.columns.get(path)


def bounds(kind: pa.DataType, low: Any, high: Any, *, nulls: int | None = 0, nans: int | None = 0) -> ColumnBounds:
    exact, width = pa.array([True]), {DATE: INT, WALL: LONG, INSTANT: LONG}.get(kind, kind)
    ends = (pa.array([each], width).cast(kind) for each in (low, high))
    return ColumnBounds(kind, *ends, exact, exact, pa.array([nulls], LONG), pa.array([nans], LONG))


def of(kind: pa.DataType, *functions: Function) -> Term:
    term: Term = Column(("x",), kind)
    for each in functions:
        term = Call(each, term)
    return term


def compare(term: Term, op: Op, value: Any) -> Compare:
    width = {DATE: INT, WALL: LONG, INSTANT: LONG}.get(term.type, term.type)
    return Compare(op, term, pa.scalar(value, width).cast(term.type))


def verdict(expr: Expr, **columns: ColumnBounds) -> Verdict:
    statistics = OneFile({(name,): each for name, each in columns.items()})
    return Verdict(int(verdicts(expr, statistics)[0]))


YEAR = of(DATE, f.PartOf(INT, CalendarPart.YEAR))


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        (Op.EQ, 2021, ALL_ROWS),
        (Op.EQ, 2020, SKIP),
        (Op.LT, 2021, SKIP),
        (Op.GT, 2020, ALL_ROWS),
        (Op.NE, 2021, SKIP),
        (Op.NE, 2022, ALL_ROWS),
    ],
)
def test_the_year_of_a_file_within_one_year_decides(op: Op, value: int, expected: Verdict) -> None:
    assert verdict(compare(YEAR, op, value), x=bounds(DATE, 18_700, 18_800)) is expected


def test_a_function_that_falls_swaps_the_bounds() -> None:
    negative = of(INT, f.Negate(INT))
    assert verdict(compare(negative, Op.LT, -5), x=bounds(INT, 1, 5)) is SKIP
    assert verdict(compare(negative, Op.LE, -5), x=bounds(INT, 1, 5)) is READ
    assert verdict(compare(negative, Op.LE, -1), x=bounds(INT, 1, 5)) is ALL_ROWS
    assert verdict(compare(negative, Op.GT, -1), x=bounds(INT, 1, 5)) is SKIP


@pytest.mark.parametrize(("low", "high"), [(5, 2**31 - 1), (None, 5), (-(2**31), 5)])
def test_a_file_in_which_something_may_overflow_is_read(low: int | None, high: int) -> None:
    step = f.Plus(INT, 1) if high > 5 else f.Plus(INT, -1)
    for op, value in ((Op.EQ, 77), (Op.LT, -(2**31)), (Op.GT, 2**31 - 1)):
        assert verdict(compare(of(INT, step), op, value), x=bounds(INT, low, high)) is READ
    assert verdict(IsNull(of(INT, step)), x=bounds(INT, low, high)) is READ


def test_a_total_function_maps_one_bound_without_the_other() -> None:
    assert verdict(compare(YEAR, Op.LT, 2021), x=bounds(DATE, 18_700, None)) is SKIP
    assert verdict(compare(YEAR, Op.GT, 2021), x=bounds(DATE, None, 18_700)) is SKIP
    assert verdict(compare(YEAR, Op.LT, 2021), x=bounds(DATE, None, 18_700)) is READ


@pytest.mark.parametrize("nans", [None, 1])
def test_a_nan_that_becomes_a_number_keeps_the_file(nans: int | None) -> None:
    floor = of(DOUBLE, f.Rounded(LONG, Rounding.FLOOR, 0))
    assert verdict(compare(floor, Op.EQ, 0), x=bounds(DOUBLE, 5.5, 6.5, nans=nans)) is READ
    assert verdict(compare(floor, Op.EQ, 0), x=bounds(DOUBLE, 5.5, 6.5)) is SKIP
    plus = of(DOUBLE, f.Plus(DOUBLE, 1.0))
    assert verdict(compare(plus, Op.GT, 100.0), x=bounds(DOUBLE, 5.5, 6.5, nans=nans)) is READ
    assert verdict(compare(plus, Op.LT, 6.0), x=bounds(DOUBLE, 5.5, 6.5, nans=nans)) is SKIP


def test_a_month_counts_within_one_year_only() -> None:
    month = of(DATE, f.PartOf(INT, CalendarPart.MONTH))
    march, january_to_january = bounds(DATE, 18_687, 18_717), bounds(DATE, 18_628, 18_993)
    assert verdict(compare(month, Op.EQ, 3), x=march) is ALL_ROWS
    assert verdict(compare(month, Op.EQ, 1), x=march) is SKIP
    assert verdict(compare(month, Op.EQ, 6), x=january_to_january) is READ
    assert verdict(compare(month, Op.GT, 12), x=january_to_january) is SKIP


def test_an_hour_that_the_clocks_show_twice_is_judged_by_both() -> None:
    # Local time goes from 3 o'clock back to 2 at the tenth hour.
    zone = Zone("Test/Back", np.array([10 * HOUR_US]), np.array([-7 * HOUR_US, -8 * HOUR_US]), None)
    hour = of(INSTANT, f.LocalTime(WALL, zone), f.PartOf(INT, CalendarPart.HOUR))
    spans = bounds(INSTANT, 9 * HOUR_US + HOUR_US // 2, 10 * HOUR_US + HOUR_US // 4)
    assert verdict(compare(hour, Op.EQ, 2), x=spans) is READ
    assert verdict(compare(hour, Op.LT, 2), x=spans) is SKIP
    assert verdict(compare(hour, Op.EQ, 3), x=bounds(INSTANT, 11 * HOUR_US, 11 * HOUR_US)) is ALL_ROWS
    begin = of(INSTANT, f.LocalTime(WALL, zone))
    assert verdict(compare(begin, Op.LT, 2 * HOUR_US + HOUR_US // 2), x=spans) is READ
    assert verdict(compare(begin, Op.LT, 2 * HOUR_US), x=spans) is SKIP


@pytest.mark.parametrize(("high", "known_until"), [(None, None), (30 * HOUR_US, 5 * HOUR_US)])
def test_a_jump_that_may_lie_ahead_moves_the_bounds_of_local_times_out(
    high: int | None, known_until: int | None
) -> None:
    jumps = np.array([10 * HOUR_US]) if known_until is None else np.empty(0, np.int64)
    zone = Zone(f"Test/{known_until}", jumps, np.array([0, -HOUR_US])[: len(jumps) + 1], known_until)
    local = of(INSTANT, f.LocalTime(WALL, zone))
    later = bounds(INSTANT, 10 * HOUR_US - 1, high)
    assert verdict(compare(local, Op.LT, 10 * HOUR_US - 1), x=later) is READ
    assert verdict(compare(local, Op.LT, -8 * HOUR_US - 1), x=later) is SKIP


def test_a_date_may_be_too_far_for_a_timestamp_where_one_end_is_unknown() -> None:
    wall = of(DATE, f.Convert(WALL))
    assert verdict(compare(wall, Op.GT, 10**15), x=bounds(DATE, None, 10)) is READ
    assert verdict(compare(wall, Op.GT, 10**15), x=bounds(DATE, -10, 10)) is SKIP


def test_lower_case_is_bounded_by_what_the_texts_begin_with() -> None:
    lower = of(TEXT, f.FoldedCase(TEXT, upper=False))
    names = bounds(TEXT, "Berlin", "Bern")
    assert verdict(compare(lower, Op.EQ, "berlin"), x=names) is READ
    assert verdict(compare(lower, Op.EQ, "paris"), x=names) is SKIP
    assert verdict(StartsWith(lower, pa.scalar("bo")), x=names) is SKIP
    assert verdict(compare(lower, Op.EQ, "ISTANBUL"), x=bounds(TEXT, "Istanbul", "Istanbul")) is READ
    assert verdict(compare(lower, Op.EQ, "a"), x=bounds(TEXT, "B", "a")) is READ


def test_branches_count_as_far_as_they_are_understood() -> None:
    x, y = Column(("x",), INT), Column(("y",), INT)
    low = compare(x, Op.LT, 5)
    chosen = if_else(low, compare(y, Op.EQ, 1), Unknown("f(x)", "no rule"))
    assert verdict(chosen, x=bounds(INT, 1, 4), y=bounds(INT, 7, 9)) is SKIP
    assert verdict(chosen, x=bounds(INT, 1, 4), y=bounds(INT, 1, 1)) is ALL_ROWS
    assert verdict(chosen, x=bounds(INT, 6, 9), y=bounds(INT, 7, 9)) is READ
    assert verdict(chosen, x=bounds(INT, None, None, nulls=10), y=bounds(INT, 1, 1)) is READ
    assert verdict(Not(chosen), x=bounds(INT, 1, 4), y=bounds(INT, 1, 1)) is SKIP


def test_is_true_and_is_not_true_know_nulls() -> None:
    positive = compare(Column(("x",), INT), Op.GT, 0)
    for nulls, expected in ((0, (ALL_ROWS, SKIP)), (3, (READ, READ)), (None, (READ, READ))):
        found = tuple(verdict(each(positive), x=bounds(INT, 1, 5, nulls=nulls)) for each in (IsTrue, IsNotTrue))
        assert found == expected
    assert verdict(IsNotTrue(positive), x=bounds(INT, None, None, nulls=10)) is ALL_ROWS


def test_a_constant_is_a_term_too() -> None:
    five = Value(pa.scalar(5, INT))
    assert verdict(compare(five, Op.EQ, 5)) is ALL_ROWS
    assert verdict(compare(five, Op.GT, 5)) is SKIP
    assert verdict(IsNull(Value(pa.scalar(None, INT)))) is ALL_ROWS
    assert verdict(compare(Value(pa.scalar(None, INT)), Op.NE, 5)) is SKIP
    assert verdict(compare(Value(pa.scalar(float("nan"))), Op.GT, 5.0)) is ALL_ROWS
    assert columns_of(And((compare(five, Op.EQ, 5), compare(YEAR, Op.EQ, 1)))) == {("x",)}


def test_hudi_19445_a_cast_that_wraps_loses_no_file() -> None:
    # The reported case: 2^32 + 1 becomes 1, and 2^31 - 1 between the two stays what it is.
    narrowed = of(LONG, f.Convert(INT))
    wrapping = bounds(LONG, 1, 4_294_967_297)
    assert verdict(compare(narrowed, Op.GT, 100), x=wrapping) is READ
    assert verdict(compare(narrowed, Op.EQ, 2_147_483_647), x=wrapping) is READ
    assert verdict(compare(narrowed, Op.LT, 0), x=wrapping) is READ
    assert verdict(compare(narrowed, Op.GT, 100), x=bounds(LONG, 1, 100)) is SKIP
    assert verdict(compare(narrowed, Op.GT, 100), x=bounds(LONG, 101, 2_147_483_647)) is ALL_ROWS


def test_hudi_19445_a_negative_factor_swaps_the_bounds() -> None:
    times = of(INT, f.Times(INT, -1))
    assert verdict(compare(times, Op.LT, 5), x=bounds(INT, -10, 0)) is READ
    assert verdict(compare(times, Op.LT, 0), x=bounds(INT, -10, 0)) is SKIP


def test_hudi_19645_a_file_without_a_statistic_may_hold_nulls() -> None:
    column, negated = Column(("x",), INT), Not(IsNull(Column(("x",), INT)))
    unknown = bounds(INT, None, None, nulls=None)
    assert verdict(IsNull(column)) is READ
    assert verdict(IsNull(column), x=unknown) is READ
    assert verdict(Compare(Op.EQ_NULL_SAFE, column, pa.scalar(None, INT)), x=unknown) is READ
    assert verdict(negated, x=unknown) is READ
    assert verdict(IsNull(column), x=bounds(INT, None, None, nulls=10)) is ALL_ROWS


def test_delta_6755_a_missing_statistic_spoils_its_own_conjunct_only() -> None:
    known, missing = compare(Column(("x",), INT), Op.GT, 50), compare(Column(("y",), INT), Op.EQ, 3)
    here = bounds(INT, 1, 5)
    assert verdict(And((missing, known)), x=here) is SKIP
    assert verdict(And((known, And((missing, Unknown("f()", "?"))))), x=here) is SKIP
    assert verdict(Or((And((missing, known)), compare(Column(("x",), INT), Op.LT, 0))), x=here) is SKIP
    assert verdict(Or((missing, known)), x=here) is READ
    assert verdict(And((compare(YEAR, Op.EQ, 2020), missing)), x=bounds(DATE, 18_700, 18_800)) is SKIP
    assert verdict(And((known, missing)), x=here, y=bounds(INT, None, None, nulls=None)) is SKIP
    report = explained_verdicts(And((missing, known)), OneFile({("x",): here})).conjuncts
    assert [(each.usable, each.skips) for each in report] == [(False, 0), (True, 1)]


def test_the_last_day_of_a_month_is_a_step() -> None:
    last = of(DATE, f.LastDay(DATE))
    assert verdict(compare(last, Op.EQ, 18_658), x=bounds(DATE, 18_632, 18_647)) is ALL_ROWS
    assert verdict(compare(last, Op.EQ, 18_659), x=bounds(DATE, 18_632, 18_647)) is SKIP
    assert verdict(compare(last, Op.GT, 18_658), x=bounds(DATE, 18_632, 2**31 - 32)) is READ
    assert verdict(compare(of(WALL, f.LastDay(DATE)), Op.EQ, 18_659), x=bounds(WALL, 0, 1)) is READ


@pytest.mark.parametrize(("toward_zero", "low", "high"), [(True, -1, 0), (False, -2, -1)])
def test_seconds_since_1970_are_cut_off_toward_zero_or_downward(toward_zero: bool, low: int, high: int) -> None:
    seconds = of(INSTANT, f.Ticks(LONG, 1_000_000, toward_zero))
    here = bounds(INSTANT, -1_500_000, -500_000)
    assert [verdict(compare(seconds, Op.EQ, each), x=here) for each in (low - 1, low, high, high + 1)] == [
        SKIP, READ, READ, SKIP,
    ]  # fmt: skip
    assert verdict(compare(seconds, Op.EQ, -1), x=bounds(INSTANT, -1_000_000, -1_000_000)) is ALL_ROWS
    assert verdict(compare(seconds, Op.EQ, 1), x=bounds(INSTANT, 1_000_000, 1_999_999)) is ALL_ROWS
    days = of(DATE, f.Ticks(INT, DAY_US, toward_zero))
    assert verdict(compare(days, Op.EQ, 7), x=bounds(DATE, 7, 7)) is ALL_ROWS
    assert verdict(compare(of(LONG, f.Ticks(LONG, 1, toward_zero)), Op.EQ, 7), x=bounds(LONG, 8, 8)) is READ


def test_a_time_of_seconds_is_known_until_it_overflows() -> None:
    limit = (2**63 - 1) // 1_000_000
    time = of(LONG, f.FromTicks(INSTANT, 1_000_000))
    assert verdict(compare(time, Op.EQ, 5_000_000), x=bounds(LONG, 5, 5)) is ALL_ROWS
    assert verdict(compare(time, Op.LT, 5_000_000), x=bounds(LONG, 5, limit)) is SKIP
    assert verdict(compare(time, Op.GE, limit * 1_000_000), x=bounds(LONG, limit, limit)) is ALL_ROWS
    assert verdict(compare(time, Op.LT, 5), x=bounds(LONG, 5, limit + 1)) is READ
    assert verdict(compare(time, Op.LE, -limit * 1_000_000), x=bounds(LONG, -limit, -limit)) is ALL_ROWS
    assert verdict(compare(time, Op.GT, 5), x=bounds(LONG, -limit - 1, 0)) is READ
    assert verdict(compare(of(INT, f.FromTicks(DATE, DAY_US)), Op.EQ, 7), x=bounds(INT, 7, 7)) is ALL_ROWS
    assert verdict(compare(of(LONG, f.FromTicks(DATE, DAY_US)), Op.EQ, 7), x=bounds(LONG, 8, 8)) is READ
    assert verdict(compare(of(DOUBLE, f.FromTicks(INSTANT, 1_000_000)), Op.EQ, 7), x=bounds(DOUBLE, 8, 8)) is READ


def test_a_report_tells_a_function_without_a_rule_from_a_column_without_statistics() -> None:
    divided = compare(of(pa.decimal128(10, 2), f.Over(pa.decimal128(16, 6), 2)), Op.GT, 1)
    here = bounds(pa.decimal128(10, 2), 1, 5)
    (known,) = explained_verdicts(divided, OneFile({("x",): here})).conjuncts
    assert known.why_not == "no rule derives bounds of (x / 2) from those of its argument"
    (other,) = explained_verdicts(divided, OneFile({("x",): bounds(INT, 1, 5)})).conjuncts
    assert other.why_not == "statistics of column `x` are of type int32, the column of decimal128(10, 2)"


def test_a_report_says_why_a_function_is_of_no_use() -> None:
    overflowing = compare(of(INT, f.Plus(INT, 1)), Op.EQ, 5)
    report = explained_verdicts(overflowing, OneFile({("x",): bounds(INT, 1, 2**31 - 1)})).conjuncts[0]
    assert not report.usable
    assert report.why_not is not None
    assert "(x + 1) may overflow" in report.why_not
    assert report.sql == "(x + 1) = 5"
    missing = explained_verdicts(overflowing, OneFile()).conjuncts[0]
    assert missing.why_not == "no statistics for column `x`"


@pytest.mark.parametrize(
    ("term", "sql"),
    [
        (of(DATE, f.PartOf(INT, CalendarPart.YEAR)), "year(x)"),
        (of(DATE, f.Plus(DATE, 3)), "date_add(x, 3)"),
        (of(INT, f.Plus(INT, -3), f.Times(INT, 2)), "((x - 3) * 2)"),
        (of(LONG, f.Over(LONG, 2)), "(x div 2)"),
        (of(DOUBLE, f.Over(DOUBLE, 2.0)), "(x / 2.0)"),
        (of(LONG, f.Remainder(LONG, 7, never_negative=True)), "pmod(x, 7)"),
        (of(LONG, f.Convert(pa.decimal128(10, 2))), "CAST(x AS DECIMAL(10,2))"),
        (of(WALL, f.Truncated(WALL, TimeUnit.HOUR)), "date_trunc('HOUR', x)"),
        (of(DATE, f.Truncated(DATE, TimeUnit.MONTH)), "trunc(x, 'MONTH')"),
        (of(DOUBLE, f.Rounded(DOUBLE, Rounding.HALF_UP, 2)), "round(x, 2)"),
        (of(WALL, f.Plus(WALL, 90_000_000)), "(x + INTERVAL '90' SECOND)"),
        (of(INSTANT, f.Ticks(LONG, 1_000_000)), "unix_seconds(x)"),
        (of(INSTANT, f.Ticks(LONG, 1_000_000, toward_zero=True)), "unix_timestamp(x)"),
        (of(TEXT, f.Prefix(TEXT, 3), f.FoldedCase(TEXT, upper=True)), "upper(left(x, 3))"),
        (of(TEXT, f.Prepended(TEXT, pa.scalar("it's"))), "concat('it\\'s', x)"),
    ],
    ids=str,
)
def test_terms_read_as_sql(term: Term, sql: str) -> None:
    assert term.sql() == sql
