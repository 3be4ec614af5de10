"""Laws of bound propagation: what pruning concludes of f(column) holds for f of every row, by an f of plain Python."""

from __future__ import annotations

import calendar
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.predicate import functions as f
from dbt.adapters.zlayout.predicate.expr import Call, Column, Compare, Function, Op
from dbt.adapters.zlayout.predicate.functions import CalendarPart, Rounding, TimeUnit, Zone
from dbt.adapters.zlayout.pruning.evaluation import Evaluation
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds

OVERFLOW = object()
"""Spark raises an error, wraps around or gives null, as its mode says."""

INT8, INT16, INT32, INT64 = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE, DATE, TEXT = pa.float32(), pa.float64(), pa.date32(), pa.string()
WALL, INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")
MONEY, WIDE = pa.decimal128(10, 2), pa.decimal128(38, 4)
HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000

INFINITY, NAN = math.inf, math.nan
EPOCH = date(1970, 1, 1)


def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    ends = [low, low + 1, high - 1, high, -1, 0, 1, high // 2, low // 3]
    return st.sampled_from(ends) | st.integers(-130, 130).map(lambda v: max(low, min(high, v))) | st.integers(low, high)


def floats(width: int) -> st.SearchStrategy[float]:
    hard = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, INFINITY, -INFINITY, NAN, 2.0**62, -(2.0**63), 2.0**63]
    near = st.floats(-1000, 1000, width=32)
    return st.sampled_from(hard) | near | st.floats(width=32 if width == 32 else 64)


def decimals(kind: pa.DataType) -> st.SearchStrategy[Decimal]:
    limit = 10**kind.precision - 1
    unscaled = st.sampled_from([limit, -limit, 0, 5, -5, 50, 149, 150, limit // 2]) | st.integers(-limit, limit)
    return (unscaled | st.integers(-2000, 2000)).map(lambda v: Decimal(f"{v}E-{kind.scale}"))


DAYS = st.sampled_from([-719_162, 2_932_896, -141_427, -1, 0, 18_687, 19_782]) | st.integers(-719_162, 2_932_896)
NEAR_DAYS = st.integers(18_000, 18_800)
MICROS = st.builds(
    lambda day, rest: day * DAY_US + rest,
    DAYS | NEAR_DAYS,
    st.sampled_from([0, 1, DAY_US - 1, 2 * HOUR_US, 59 * 60_000_000 + 59_999_999]) | st.integers(0, DAY_US - 1),
)
TEXTS = st.text("aAbBiIzZ ßé日\U0010ffff\x00\x7f", max_size=6) | st.text(max_size=4).map(lambda t: "ber" + t)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    **{pa.__dict__[f"int{bits}"](): integers(bits) for bits in (8, 16, 32, 64)},
    FLOAT: floats(32),
    DOUBLE: floats(64),
    MONEY: decimals(MONEY),
    WIDE: decimals(WIDE),
    DATE: DAYS | NEAR_DAYS,
    WALL: MICROS,
    INSTANT: MICROS,
    TEXT: TEXTS.filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)),
    pa.bool_(): st.booleans(),
}


@dataclass(frozen=True)
class Case:
    """A function, the type of its argument, and the same in Python; dates and times are days and microseconds."""

    function: Function
    argument: pa.DataType
    oracle: Callable[[Any], Any]
    always: bool = True
    """The function has one direction over its type, so that something is always known of a file of numbers."""

    def __str__(self) -> str:
        return f"{self.function.sql('x')} of {self.argument}"


def fitting(value: int, kind: pa.DataType) -> Any:
    return value if -(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1) else OVERFLOW


def truncated_quotient(x: int, k: int) -> int:
    return (1 if (x < 0) == (k < 0) else -1) * (abs(x) // abs(k))


def java_remainder(x: int, k: int) -> int:
    return x - k * truncated_quotient(x, k)


def fitted(value: Decimal, kind: pa.DataType, mode: str = ROUND_HALF_UP) -> Any:
    with localcontext(prec=100):
        found = value.quantize(Decimal(1).scaleb(-kind.scale), mode)
    return found if abs(found) < Decimal(10) ** (kind.precision - kind.scale) else OVERFLOW


def exactly(operation: Callable[[Decimal], Decimal], kind: pa.DataType) -> Callable[[Decimal], Any]:
    def oracle(x: Decimal) -> Any:
        with localcontext(prec=100):
            return fitted(operation(x), kind)

    return oracle


def to_integer(kind: pa.DataType, step: Callable[[float], int]) -> Callable[[float], Any]:
    return lambda x: fitting(step(x), kind) if math.isfinite(x) else OVERFLOW


def in_float(kind: Any, operation: Callable[[Any], Any]) -> Callable[[float], float]:
    def oracle(x: float) -> float:
        with np.errstate(all="ignore"):
            return float(operation(kind(x)))

    return oracle


def as_date(days: int) -> date:
    return EPOCH + timedelta(days)


def days_of(day: date) -> int:
    return (day - EPOCH).days


def start_of(unit: TimeUnit, day: date) -> date:
    if unit is TimeUnit.WEEK:
        return day - timedelta(day.weekday())  # the first day of all is a Monday
    month = {TimeUnit.YEAR: 1, TimeUnit.QUARTER: (day.month - 1) // 3 * 3 + 1}.get(unit, day.month)
    return day if unit is TimeUnit.DAY else date(day.year, month, 1)


def start_of_time(unit: TimeUnit) -> Callable[[int], int]:
    steps = {
        TimeUnit.HOUR: HOUR_US,
        TimeUnit.MINUTE: 60_000_000,
        TimeUnit.SECOND: 1_000_000,
        TimeUnit.MILLISECOND: 1000,
        TimeUnit.MICROSECOND: 1,
    }
    if unit in steps:
        return lambda x: x - x % steps[unit]
    return lambda x: days_of(start_of(unit, as_date(x // DAY_US))) * DAY_US


PARTS_OF_DAYS: dict[CalendarPart, Callable[[date], int]] = {
    CalendarPart.YEAR: lambda d: d.year,
    CalendarPart.QUARTER: lambda d: (d.month + 2) // 3,
    CalendarPart.MONTH: lambda d: d.month,
    CalendarPart.DAY_OF_YEAR: lambda d: d.timetuple().tm_yday,
    CalendarPart.DAY_OF_MONTH: lambda d: d.day,
    CalendarPart.DAY_OF_WEEK: lambda d: d.isoweekday() % 7 + 1,
    CalendarPart.WEEKDAY: lambda d: d.weekday(),
}
PARTS_OF_TIMES: dict[CalendarPart, Callable[[int], int]] = {
    CalendarPart.HOUR: lambda us: us % DAY_US // HOUR_US,
    CalendarPart.MINUTE: lambda us: us % HOUR_US // 60_000_000,
    CalendarPart.SECOND: lambda us: us % 60_000_000 // 1_000_000,
}


def plus_months(day: date, months: int) -> Any:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def plus_months_days(months: int) -> Callable[[int], Any]:
    def oracle(x: int) -> Any:
        found = plus_months(as_date(x), months)
        return OVERFLOW if found is None else days_of(found)

    return oracle


def last_day(x: int) -> int:
    day = as_date(x)
    return days_of(day.replace(day=calendar.monthrange(day.year, day.month)[1]))


def arithmetic() -> list[Case]:
    found = []
    for kind in (INT8, INT16, INT32, INT64):
        for k in (1, -7, 100):
            found += [
                Case(f.Plus(kind, k), kind, lambda x, k=k, t=kind: fitting(x + k, t), False),
                Case(f.Times(kind, k), kind, lambda x, k=k, t=kind: fitting(x * k, t), False),
                Case(f.Over(kind, k), kind, lambda x, k=k, t=kind: fitting(truncated_quotient(x, k), t), False),
            ]
        found += [
            Case(f.Over(kind, -1), kind, lambda x, t=kind: fitting(-x, t), False),
            Case(f.Negate(kind), kind, lambda x, t=kind: fitting(-x, t), False),
            Case(f.Absolute(kind), kind, lambda x, t=kind: fitting(abs(x), t), False),
            Case(f.Remainder(kind, 10, False), kind, lambda x: java_remainder(x, 10)),
            Case(f.Remainder(kind, 7, True), kind, lambda x: x % 7),
        ]
    for kind, make in ((FLOAT, np.float32), (DOUBLE, np.float64)):
        found += [
            Case(f.Plus(kind, 0.1), kind, in_float(make, lambda x, m=make: x + m(0.1))),
            Case(f.Plus(kind, -3.5), kind, in_float(make, lambda x, m=make: x - m(3.5))),
            Case(f.Times(kind, 3.0), kind, in_float(make, lambda x, m=make: x * m(3))),
            Case(f.Times(kind, -0.1), kind, in_float(make, lambda x, m=make: x * m(-0.1))),
            Case(f.Over(kind, 7.0), kind, in_float(make, lambda x, m=make: x / m(7))),
            Case(f.Over(kind, -0.3), kind, in_float(make, lambda x, m=make: x / m(-0.3))),
            Case(f.Negate(kind), kind, lambda x: -x),
            Case(f.Absolute(kind), kind, abs),
        ]
    for kind, result in ((MONEY, pa.decimal128(13, 3)), (WIDE, WIDE)):
        found += [
            Case(f.Plus(result, Decimal("1.125")), kind, exactly(lambda x: x + Decimal("1.125"), result), False),
            Case(f.Times(result, Decimal("-1.5")), kind, exactly(lambda x: x * Decimal("-1.5"), result), False),
            Case(f.Negate(kind), kind, exactly(lambda x: -x, kind)),
            Case(f.Absolute(kind), kind, exactly(abs, kind)),
        ]
    return found


def conversions() -> list[Case]:
    found = []
    signed = (INT8, INT16, INT32, INT64)
    for source in signed:
        for target in signed:
            wider = target.bit_width >= source.bit_width
            found.append(Case(f.Convert(target), source, lambda x, t=target: fitting(x, t), wider))
        found += [
            Case(f.Convert(FLOAT), source, in_float(np.int64, np.float32)),
            Case(f.Convert(DOUBLE), source, in_float(np.int64, np.float64)),
            Case(f.Convert(MONEY), source, exactly(Decimal, MONEY), False),
            Case(f.Rounded(source, Rounding.FLOOR, 0), source, lambda x: x),
        ]
    for source in (FLOAT, DOUBLE):
        found += [
            Case(f.Convert(INT16), source, to_integer(INT16, math.trunc), False),
            Case(f.Convert(INT64), source, to_integer(INT64, math.trunc), False),
            Case(f.Convert(FLOAT), source, in_float(np.float64, np.float32)),
            Case(f.Convert(DOUBLE), source, float),
            Case(f.Rounded(INT64, Rounding.FLOOR, 0), source, to_integer(INT64, math.floor), False),
            Case(f.Rounded(INT64, Rounding.CEILING, 0), source, to_integer(INT64, math.ceil), False),
        ]
    for source in (MONEY, WIDE):
        whole = pa.decimal128(38, 0)
        found += [
            Case(f.Convert(INT8), source, lambda x: fitting(int(x), INT8), False),
            Case(f.Convert(INT64), source, lambda x: fitting(int(x), INT64), False),
            Case(f.Convert(DOUBLE), source, float),
            Case(f.Convert(pa.decimal128(8, 1)), source, exactly(lambda x: x, pa.decimal128(8, 1)), False),
            Case(f.Convert(pa.decimal128(12, 4)), source, exactly(lambda x: x, pa.decimal128(12, 4)), False),
            *(
                Case(f.Rounded(whole, way, 0), source, lambda x, m=mode, t=whole: fitted(x, t, m))
                for way, mode in (
                    (Rounding.FLOOR, ROUND_FLOOR),
                    (Rounding.CEILING, ROUND_CEILING),
                    (Rounding.HALF_UP, ROUND_HALF_UP),
                    (Rounding.HALF_EVEN, ROUND_HALF_EVEN),
                )
            ),
        ]
    found += [
        Case(f.Rounded(DOUBLE, Rounding.HALF_UP, 1), DOUBLE, rounded_double(1)),
        Case(f.Rounded(DOUBLE, Rounding.HALF_EVEN, 0), DOUBLE, rounded_double(0, ROUND_HALF_EVEN)),
        Case(f.Rounded(INT32, Rounding.HALF_UP, -1), INT32, rounded_integer(INT32, 10), False),
        Case(f.Rounded(INT64, Rounding.HALF_UP, -3), INT64, rounded_integer(INT64, 1000), False),
        Case(f.Convert(INT32), pa.bool_(), int),
        Case(f.Convert(DOUBLE), pa.bool_(), float),
        Case(f.Convert(WALL), DATE, lambda x: x * DAY_US),
        Case(f.Convert(DATE), WALL, lambda x: x // DAY_US),
        Case(f.Convert(TEXT), DATE, lambda x: as_date(x).isoformat()),
        Case(f.Convert(pa.binary()), TEXT, str.encode),
    ]
    return found


def rounded_double(digits: int, mode: str = ROUND_HALF_UP) -> Callable[[float], float]:
    def oracle(x: float) -> float:
        if not math.isfinite(x):
            return x
        with localcontext(prec=800):
            return float(Decimal(repr(x)).quantize(Decimal(1).scaleb(-digits), mode))

    return oracle


def rounded_integer(kind: pa.DataType, step: int) -> Callable[[int], Any]:
    return lambda x: fitting((1 if x >= 0 else -1) * ((abs(x) + step // 2) // step * step), kind)


def calendars() -> list[Case]:
    found = [
        Case(f.Plus(DATE, 10), DATE, lambda x: fitting(x + 10, INT32)),
        Case(f.Plus(DATE, -(2**31)), DATE, lambda x: fitting(x - 2**31, INT32), False),
        Case(f.Plus(WALL, -90_000_000), WALL, lambda x: x - 90_000_000),
        Case(f.LastDay(DATE), DATE, last_day),
        Case(f.Ticks(INT32, DAY_US), DATE, lambda x: x),
        Case(f.FromTicks(DATE, DAY_US), INT32, lambda x: x),
        Case(f.Ticks(INT64, 1_000_000, toward_zero=True), INSTANT, lambda x: int(math.copysign(abs(x) // 10**6, x))),
        *(Case(f.Ticks(INT64, unit), INSTANT, lambda x, u=unit: x // u) for unit in (1, 1000, 1_000_000)),
        *(
            Case(f.FromTicks(INSTANT, unit), INT64, lambda x, u=unit: fitting(x * u, INT64), False)
            for unit in (1, 1000, 1_000_000)
        ),
        *(Case(f.PlusMonths(DATE, m), DATE, plus_months_days(m)) for m in (1, -13, 1200)),
        Case(
            f.PlusMonths(WALL, 1),
            WALL,
            lambda x: OVERFLOW if (d := plus_months_days(1)(x // DAY_US)) is OVERFLOW else d * DAY_US + x % DAY_US,
        ),
    ]
    found += [
        Case(f.Truncated(DATE, unit), DATE, lambda x, u=unit: days_of(start_of(u, as_date(x))))
        for unit in (TimeUnit.YEAR, TimeUnit.QUARTER, TimeUnit.MONTH, TimeUnit.WEEK)
    ]
    found += [Case(f.Truncated(WALL, unit), WALL, start_of_time(unit)) for unit in TimeUnit]
    found += [
        Case(f.PartOf(INT32, part), DATE, lambda x, r=read: r(as_date(x))) for part, read in PARTS_OF_DAYS.items()
    ]
    return found + [Case(f.PartOf(INT32, part), WALL, read) for part, read in PARTS_OF_TIMES.items()]


def texts() -> list[Case]:
    return [
        *(Case(f.Prefix(TEXT, n), TEXT, lambda x, n=n: x[:n]) for n in (1, 2, 5)),
        Case(f.Prepended(TEXT, pa.scalar("bé")), TEXT, lambda x: "bé" + x),
        Case(f.FoldedCase(TEXT, True), TEXT, str.upper, False),
        Case(f.FoldedCase(TEXT, False), TEXT, str.lower, False),
    ]


@dataclass(frozen=True)
class Known:
    """Statistics of one column."""

    row_count: pa.Array
    bounds: ColumnBounds

    def column(self, path: tuple[str, ...]) -> ColumnBounds | None:
        return self.bounds


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def typed(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array(values, kind)


def plain(array: pa.Array) -> list[Any]:
    if pa.types.is_date32(array.type):
        return array.cast(pa.int32()).to_pylist()
    return array.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(array.type) else array.to_pylist()


def order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def rounded_to(value: Any, kind: pa.DataType) -> Any:
    return float(np.float32(value)) if kind == FLOAT and value is not None else value


@st.composite
def files_of(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> list[list[Any]]:
    """Files of few values, often near each other as in clustered files."""
    files = []
    for _ in range(draw(st.integers(1, 3))):
        some = draw(st.lists(values | st.none(), min_size=1, max_size=4))
        files.append([draw(st.sampled_from(some)) for _ in range(draw(st.integers(1, 5)))])
    return files


@st.composite
def statistics_of(draw: st.DrawFn, files: Sequence[Sequence[Any]], kind: pa.DataType) -> Known:
    """Complete statistics, or some forgotten or loosened."""
    numbers = [[v for v in rows if v is not None and not is_nan(v)] for rows in files]
    low = [min(each, key=order, default=None) for each in numbers]
    high = [max(each, key=order, default=None) for each in numbers]
    exact = [[bool(each) for each in numbers] for _ in range(2)]
    nulls: list[int | None] = [list(rows).count(None) for rows in files]
    nans: list[int | None] = [sum(map(is_nan, rows)) for rows in files]
    if draw(st.booleans()):
        for i in range(len(files)):
            for known in (low, high, nulls, nans):
                if draw(st.integers(0, 3)) == 0:
                    known[i] = None
            # Bounds of others, further out, as bounds that were cut off are.
            others = [v for each in numbers for v in each]
            if low[i] is not None and draw(st.booleans()):
                low[i] = draw(st.sampled_from([v for v in others if order(v) <= order(low[i])]))
                exact[0][i] = False
            if high[i] is not None and draw(st.booleans()):
                high[i] = draw(st.sampled_from([v for v in others if order(v) >= order(high[i])]))
                exact[1][i] = False
    return Known(
        pa.array([len(rows) for rows in files], INT64),
        ColumnBounds(
            kind,
            typed(low, kind),
            typed(high, kind),
            pa.array(exact[0]),
            pa.array(exact[1]),
            pa.array(nulls, INT64),
            pa.array(nans, INT64),
        ),
    )


def assert_holds(function: Sequence[Function], known: Known, results: Sequence[Sequence[Any]]) -> Any:
    """The facts of f(x) hold for the results of every file; a result may be a tuple of all that it could be."""
    column: Any = Column(("x",), known.bounds.type)
    for each in function:
        column = Call(each, column)
    evaluation = Evaluation(Compare(Op.EQ, column, pa.scalar(None, column.type)), known)
    facts = evaluation.facts(column)
    assert facts is not None
    low, high = plain(facts.minimum), plain(facts.maximum)
    for i, values in enumerate(results):
        if OVERFLOW in values:
            assert low[i] is None
            assert high[i] is None
            assert not facts.minimum_exact[i]
            assert not facts.maximum_exact[i]
            assert facts.may_be_null[i]
            assert facts.may_have_value[i]
            continue
        if None in values:
            assert facts.may_be_null[i]
        if any(map(is_nan, values)):
            assert facts.may_be_nan[i]
        numbers = [order(v) for v in values if v is not None and not is_nan(v)]
        if numbers:
            assert facts.may_have_value[i]
            assert low[i] is None or order(low[i]) <= min(numbers), (low[i], min(numbers))
            assert high[i] is None or order(high[i]) >= max(numbers), (high[i], max(numbers))
        if facts.minimum_exact[i]:
            assert order(low[i]) in numbers
        if facts.maximum_exact[i]:
            assert order(high[i]) in numbers
    return facts


# 28 January to 1 February 2023: three of them are a month before the same day.
_LAST_DAYS = st.integers(19_385, 19_389)
CASES = [
    pytest.param(case, id=f"{made.__name__}: {case}")
    for made in (arithmetic, conversions, calendars, texts)
    for case in made()
]


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_is_known_of_a_function_holds_for_every_row(case: Case, data: st.DataObject) -> None:
    values = VALUES[case.argument]
    if isinstance(case.function, f.PlusMonths):
        unit = 1 if case.argument == DATE else DAY_US
        values = values.filter(lambda v: -682_000 < v // unit < 2_890_000)
        if case.argument == WALL:
            values = st.one_of(
                values, st.builds(lambda day, us: day * DAY_US + us, _LAST_DAYS, st.integers(0, DAY_US - 1))
            )
    files = data.draw(files_of(values.map(lambda v: rounded_to(v, case.argument))))
    results = [[None if x is None else rounded_to(case.oracle(x), case.function.type) for x in rows] for rows in files]
    assert_holds([case.function], data.draw(statistics_of(files, case.argument)), results)


@pytest.mark.parametrize("case", [case for case in CASES if case.values[0].always])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_something_is_known_wherever_nothing_overflows(case: Case, data: st.DataObject) -> None:
    ordinary = VALUES[case.argument].filter(lambda v: not isinstance(v, float) or math.isfinite(v))
    if isinstance(case.function, f.PlusMonths):
        unit = 1 if case.argument == DATE else DAY_US
        ordinary = ordinary.filter(lambda v: -682_000 < v // unit < 2_890_000)
    x = rounded_to(data.draw(ordinary), case.argument)
    known = data.draw(
        statistics_of([[x]], case.argument).filter(
            lambda s: s.bounds.minimum[0].is_valid and s.bounds.maximum[0].is_valid
        )
    )
    result = rounded_to(case.oracle(x), case.function.type)
    if result is OVERFLOW:
        return
    facts = assert_holds([case.function], known, [[result]])
    assert facts.minimum[0].is_valid
    assert facts.maximum[0].is_valid


# ------------------------------------------------------------------------------------------------------- time zones


@st.composite
def zones(draw: st.DrawFn) -> Zone:
    """Any zone whose jumps are at least two days apart, as of all zones that there are."""
    count = draw(st.integers(0, 5))
    gaps = draw(st.lists(st.integers(37, 24 * 30), min_size=count, max_size=count))
    offset = st.sampled_from([-12, -11, -3.5, -0.25, 0, 1, 2, 5.75, 10.5, 11, 13, 14]) | st.integers(-18, 18)
    offsets = [int(o * HOUR_US) for o in draw(st.lists(offset, min_size=count + 1, max_size=count + 1))]
    jumps = np.cumsum(np.array(gaps, np.int64)) * HOUR_US if count else np.empty(0, np.int64)
    until = draw(st.none() | st.integers(-50, 24 * 120).map(lambda h: h * HOUR_US))
    return Zone(f"zone {draw(st.integers(0, 10**9))}", jumps, np.array(offsets, np.int64), until)


def offset_at(zone: Zone, instant: int) -> int:
    return int(zone.offsets_us[int(np.searchsorted(zone.jumps_us, instant, "right"))])


def resolutions(zone: Zone, local: int) -> list[int]:
    """Every instant that some rule could mean by a wall-clock time: those that show it, and both sides of a gap."""
    found = {local - int(o) for o in zone.offsets_us if offset_at(zone, local - int(o)) == o}
    for jump, before, after in zip(zone.jumps_us, zone.offsets_us[:-1], zone.offsets_us[1:], strict=True):
        if jump + before <= local < jump + after:
            found |= {int(local - before), int(local - after), int(jump)}
    return sorted(found)


HOURS = st.integers(-60, 24 * 130).map(lambda h: h * HOUR_US)
MOMENTS = st.builds(
    lambda h, rest: h + rest, HOURS, st.sampled_from([0, 1, -1, HOUR_US // 2]) | st.integers(0, HOUR_US)
)


@st.composite
def near_moments(draw: st.DrawFn) -> list[list[int | None]]:
    center = draw(MOMENTS)
    spread = draw(st.sampled_from([0, HOUR_US, 3 * HOUR_US, 40 * HOUR_US, 900 * HOUR_US]))
    return [draw(st.lists(st.integers(center - spread, center + spread) | st.none(), min_size=1, max_size=5))]


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_local_times_of_any_zone_are_bounded(data: st.DataObject) -> None:
    zone, files = data.draw(zones()), data.draw(near_moments())
    known = data.draw(statistics_of(files, INSTANT))
    if zone.known_until_us is not None:
        # Nobody knows what the zone does after: the rows that tell must lie before.
        files = [[x for x in rows if x is None or x <= zone.known_until_us] for rows in files]
    local = [[None if x is None else x + offset_at(zone, x) for x in rows] for rows in files]
    assert_holds([f.LocalTime(WALL, zone)], known, local)
    hours = [[None if x is None else x - x % HOUR_US for x in rows] for rows in local]
    assert_holds([f.LocalTime(WALL, zone), f.Truncated(WALL, TimeUnit.HOUR)], known, hours)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_instants_of_any_zone_are_bounded_however_a_time_is_resolved(data: st.DataObject) -> None:
    zone, files = data.draw(zones()), data.draw(near_moments())
    if zone.known_until_us is not None:
        limit = zone.known_until_us
        files = [
            [x for x in rows if x is None or all(r <= limit for r in resolutions(zone, x))] or [None] for rows in files
        ]
    known = data.draw(statistics_of(files, WALL))
    choice = data.draw(st.integers(0, 2))
    instants = [
        [None if x is None else (found := resolutions(zone, x))[choice % len(found)] for x in rows] for rows in files
    ]
    assert_holds([f.InstantOf(INSTANT, zone)], known, instants)


def test_far_from_any_jump_bounds_of_local_times_stay_values_of_the_file() -> None:
    zone = Zone("one jump", np.array([1000 * HOUR_US]), np.array([HOUR_US, 2 * HOUR_US]), None)
    for at in (0, 2000 * HOUR_US):
        low, high = typed([at], INSTANT), typed([at + HOUR_US], INSTANT)
        true, none = pa.array([True]), pa.array([0])
        known = Known(pa.array([2]), ColumnBounds(INSTANT, low, high, true, true, none, none))
        chain = [f.LocalTime(WALL, zone), f.Truncated(WALL, TimeUnit.DAY), f.InstantOf(INSTANT, zone)]
        facts = assert_holds(chain, known, [[at - (at + offset_at(zone, at)) % DAY_US]])
        assert facts.minimum_exact[0]
        assert facts.maximum_exact[0]
