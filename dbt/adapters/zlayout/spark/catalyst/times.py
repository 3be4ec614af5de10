"""Maps Catalyst's date and time functions to chains of our functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pyarrow as pa

from dbt.adapters.zlayout.predicate import functions as f
from dbt.adapters.zlayout.predicate.functions import CalendarPart, TimeUnit, Zone
from dbt.adapters.zlayout.spark.catalyst.reading import Chain, Reading, sides_of, unary
from dbt.adapters.zlayout.spark.catalyst.tree import Node, NotUnderstoodError, integer_of, scalar_of
from dbt.adapters.zlayout.spark.catalyst.zones import zone_of

_DATE, _WALL, _INSTANT = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")
_LONG, _DOUBLE, _TEXT = pa.int64(), pa.float64(), pa.string()
_SECOND_US, _DAY_US = 1_000_000, 86_400_000_000
# Source: org.apache.spark.sql.catalyst.util.DateTimeUtils.parseTruncLevel.
_UNITS = {
    **{unit.value: unit for unit in TimeUnit},
    **dict.fromkeys(("YYYY", "YY"), TimeUnit.YEAR),
    **dict.fromkeys(("MON", "MM"), TimeUnit.MONTH),
    "DD": TimeUnit.DAY,
}
_UNITS_OF_DATES = (TimeUnit.YEAR, TimeUnit.QUARTER, TimeUnit.MONTH, TimeUnit.WEEK)
_DATE_FORMATS = {"yyyy-MM-dd": 10, "yyyy-MM": 7, "yyyy": 4}


def from_instant(target: pa.DataType, zone: Callable[[], Zone]) -> Chain:
    """Returns the functions that cast an instant. A cast to a date or wall-clock time uses the session's time zone."""
    if target == _DATE:
        return [f.LocalTime(_WALL, zone()), f.Convert(_DATE)]
    if target == _WALL:
        return [f.LocalTime(_WALL, zone())]
    if pa.types.is_integer(target):
        return [f.Ticks(_LONG, _SECOND_US), f.Convert(target)]
    if pa.types.is_floating(target):
        return [f.Ticks(_LONG, 1), f.Convert(_DOUBLE), f.Over(_DOUBLE, float(_SECOND_US)), f.Convert(target)]
    raise NotUnderstoodError(f"casting TIMESTAMP to {f.type_name(target)} has no rule")


def to_instant(source: pa.DataType, zone: Callable[[], Zone]) -> Chain:
    """Returns the functions that cast a number, date or wall-clock time to an instant."""
    if pa.types.is_integer(source):
        return [f.Convert(_LONG), f.FromTicks(_INSTANT, _SECOND_US)]
    if source in (_DATE, _WALL):
        return [f.Convert(_WALL), f.InstantOf(_INSTANT, zone())]
    raise NotUnderstoodError(f"casting {f.type_name(source)} to TIMESTAMP does not keep an order")


def zone_at(node: Node) -> Zone:
    """Returns the time zone of a node."""
    return zone_of(node.jvm().zoneId())


def _part(part: CalendarPart, *, of_time: bool = False) -> Callable[[Node], Reading]:
    def read(node: Node) -> Reading:
        child = node.children[0]
        to_wall: Chain = [f.LocalTime(_WALL, zone_at(node))] if of_time and child.type() == _INSTANT else []
        return child, [*to_wall, f.PartOf(node.type(), part)]

    return read


def _date_add(sign: int) -> Callable[[Node], Reading]:
    return lambda node: (node.children[0], [f.Plus(_DATE, sign * integer_of(node.children[1]))])


def _date_diff(node: Node) -> Reading:
    operand, constant, swapped = sides_of(node)
    days = int(scalar_of(constant, _DATE).value)
    count = f.Ticks(pa.int32(), _DAY_US)
    if not swapped:
        return operand, [count, f.Plus(pa.int32(), -days)]
    return operand, [count, f.Negate(pa.int32()), f.Plus(pa.int32(), days)]


def _plus_months(node: Node) -> Reading:
    operand, constant = node.children
    months = f.PlusMonths(operand.type(), integer_of(constant))
    if operand.type() != _INSTANT:
        return operand, [months]
    zone = zone_at(node)
    return operand, [f.LocalTime(_WALL, zone), f.PlusMonths(_WALL, months.months), f.InstantOf(_INSTANT, zone)]


def _plus_interval(node: Node) -> Reading:
    """Adds whole days to the wall-clock time, and the rest to the instant."""
    operand, constant = node.children
    kind, micros = operand.type(), integer_of(constant)
    days_us = int(math.copysign(abs(micros) // _DAY_US, micros)) * _DAY_US
    if kind == _INSTANT and days_us:
        zone = zone_at(node)
        by_days = [f.LocalTime(_WALL, zone), f.Plus(_WALL, days_us), f.InstantOf(_INSTANT, zone)]
        return operand, [*by_days, f.Plus(_INSTANT, micros - days_us)]
    return operand, [f.Plus(kind, micros)]


def _unit(node: Node) -> TimeUnit:
    unit = _UNITS.get(str(node.raw.get("value")).upper()) if node.is_literal else None
    if unit is None:
        raise NotUnderstoodError("the unit is no constant that Spark knows")
    return unit


def _trunc_date(node: Node) -> Reading:
    operand, unit = node.children[0], _unit(node.children[1])
    if unit not in _UNITS_OF_DATES:
        raise NotUnderstoodError("a date is not cut to this unit")
    return operand, [f.Truncated(_DATE, unit)]


def _trunc_timestamp(node: Node) -> Reading:
    unit, operand = _unit(node.children[0]), node.children[1]
    if operand.type() != _INSTANT:
        return operand, [f.Truncated(operand.type(), unit)]
    zone = zone_at(node)
    return operand, [f.LocalTime(_WALL, zone), f.Truncated(_WALL, unit), f.InstantOf(_INSTANT, zone)]


def _unix_timestamp(node: Node) -> Reading:
    operand, seconds = node.children[0], f.Ticks(_LONG, _SECOND_US, toward_zero=True)
    if operand.type() == _DATE:
        return operand, [f.Convert(_WALL), f.InstantOf(_INSTANT, zone_at(node)), seconds]
    if operand.type() in (_WALL, _INSTANT):
        return operand, [seconds]
    raise NotUnderstoodError("texts are not read as times")


def _ticks(unit_us: int) -> Callable[[Node], Reading]:
    return lambda node: (node.children[0], [f.Ticks(node.type(), unit_us)])


def _from_ticks(unit_us: int) -> Callable[[Node], Reading]:
    return lambda node: (node.children[0], [f.FromTicks(node.type(), unit_us)])


def _date_format(node: Node) -> Reading:
    operand, pattern = node.children
    length = _DATE_FORMATS.get(str(pattern.raw.get("value"))) if pattern.is_literal else None
    if length is None or operand.type() != _INSTANT:
        raise NotUnderstoodError(f"only the formats {', '.join(_DATE_FORMATS)} keep the order")
    return operand, [f.LocalTime(_WALL, zone_at(node)), f.Convert(_DATE), f.Convert(_TEXT), f.Prefix(_TEXT, length)]


TIME_FUNCTIONS: Mapping[str, Callable[[Node], Reading]] = {
    "AddMonths": _plus_months,
    "DateAdd": _date_add(1),
    "DateAddYMInterval": _plus_months,
    "DateDiff": _date_diff,
    "DateFormatClass": _date_format,
    "DateFromUnixDate": _from_ticks(_DAY_US),
    "DateSub": _date_add(-1),
    "DayOfMonth": _part(CalendarPart.DAY_OF_MONTH),
    "DayOfWeek": _part(CalendarPart.DAY_OF_WEEK),
    "DayOfYear": _part(CalendarPart.DAY_OF_YEAR),
    "Hour": _part(CalendarPart.HOUR, of_time=True),
    "LastDay": unary(f.LastDay),
    "MicrosToTimestamp": _from_ticks(1),
    "MillisToTimestamp": _from_ticks(1_000),
    "Minute": _part(CalendarPart.MINUTE, of_time=True),
    "Month": _part(CalendarPart.MONTH),
    "Quarter": _part(CalendarPart.QUARTER),
    "Second": _part(CalendarPart.SECOND, of_time=True),
    "SecondsToTimestamp": _from_ticks(_SECOND_US),
    "TimeAdd": _plus_interval,
    "TimestampAddInterval": _plus_interval,
    "TimestampAddYMInterval": _plus_months,
    "ToUnixTimestamp": _unix_timestamp,
    "TruncDate": _trunc_date,
    "TruncTimestamp": _trunc_timestamp,
    "UnixDate": _ticks(_DAY_US),
    "UnixMicros": _ticks(1),
    "UnixMillis": _ticks(1_000),
    "UnixSeconds": _ticks(_SECOND_US),
    "UnixTimestamp": _unix_timestamp,
    "WeekDay": _part(CalendarPart.WEEKDAY),
    "Year": _part(CalendarPart.YEAR),
}
