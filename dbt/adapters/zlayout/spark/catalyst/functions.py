"""Maps Catalyst's functions to chains of our functions, innermost first; each entry reads one Catalyst class.

Time zones are read from the JVM, because its time functions evaluate the queries.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.predicate import functions as f
from dbt.adapters.zlayout.predicate.expr import Function
from dbt.adapters.zlayout.predicate.functions import CalendarPart, Rounding, TimeUnit, Zone
from dbt.adapters.zlayout.predicate.literals import type_name
from dbt.adapters.zlayout.predicate.remedies import Remedy
from dbt.adapters.zlayout.spark.catalyst.tree import Node, NotUnderstoodError, integer_of, scalar_of

_LAST_YEAR = 2045
_OFFSET = r"(Z|[+-]\d\d:\d\d(?::\d\d)?)"
# Source: java.time.zone.ZoneOffsetTransition.toString, ZoneRules.toString.
_TRANSITION = re.compile(rf"(\d{{4}}-\d\d-\d\dT[\d:]+){_OFFSET} to {_OFFSET}")
_STANDARD = re.compile(rf"currentStandardOffset={_OFFSET}")
_LOCK = threading.Lock()
_ZONES: dict[str, Zone] = {}
Chain = Sequence[Function]
"""Functions to apply in order."""
Reading = tuple[Node, Chain]
"""The argument of a Catalyst function, and the functions to apply to it."""
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
_INTERVAL_UNITS = ("day", "hour", "minute", "second")
_DATE_FORMATS = {"yyyy-MM-dd": 10, "yyyy-MM": 7, "yyyy": 4}


def zone_of(zone_id: Any) -> Zone:
    """Reads a ``java.time.ZoneId`` (Py4J object), once per process: listing its transitions takes dozens of calls.

    Transitions that follow from rules are listed up to the year 2045.
    """
    name = str(zone_id.getId())
    with _LOCK:
        if name not in _ZONES:
            _ZONES[name] = _zone_by_rules(name, zone_id.getRules())
        return _ZONES[name]


def _zone_by_rules(name: str, rules: Any) -> Zone:
    if rules.isFixedOffset():
        return Zone.fixed(name, _seconds(_found(_STANDARD, str(rules.toString()))[0]) * 1_000_000)
    text = str(rules.getTransitions().toString())
    yearly = rules.getTransitionRules()
    count = int(yearly.size())
    listed = [_jump(each) for each in _TRANSITION.findall(text)]
    last = listed[-1][0] if listed else None
    first_year = int(str(np.datetime64(last, "s"))[:4]) if last is not None else 1900
    foretold = [
        _jump(_found(_TRANSITION, str(yearly.get(number).createTransition(year).toString())))
        for year in range(first_year, _LAST_YEAR + 1)
        for number in range(count)
    ]
    # Rules apply only after the last listed transition.
    jumps = listed + sorted(each for each in foretold if last is None or each[0] > last)
    instants, offsets = [each[0] for each in jumps], [jumps[0][1], *(each[2] for each in jumps)]
    until = int(np.datetime64(f"{_LAST_YEAR + 1}-01-01", "s").astype(np.int64)) - 86_400 if count else None
    return Zone(
        name,
        np.array(instants, np.int64) * 1_000_000,
        np.array(offsets, np.int64) * 1_000_000,
        None if until is None else until * 1_000_000,
    )


def _found(pattern: re.Pattern[str], text: str) -> Sequence[str]:
    found = pattern.search(text)
    if found is None:
        raise ValueError(f"cannot read the JVM's description of a time zone: {text}")
    return found.groups()


def _jump(found: Sequence[str]) -> tuple[int, int, int]:
    """Returns a transition's instant, offset before and offset after, in seconds."""
    local, before, after = found
    return int(np.datetime64(local, "s").astype(np.int64)) - _seconds(before), _seconds(before), _seconds(after)


def _seconds(offset: str) -> int:
    if offset == "Z":
        return 0
    hours, minutes, seconds = (int(each) for each in f"{offset[1:]}:00".split(":")[:3])
    total = hours * 3600 + minutes * 60 + seconds
    return -total if offset[0] == "-" else total


def _sides_of(node: Node) -> tuple[Node, Node, bool]:
    """Returns the operand, the constant, and whether the constant is on the left.

    Raises:
        NotUnderstoodError: Neither side is a constant.
    """
    left, right = node.children
    if right.is_literal:
        return left, right, False
    if left.is_literal:
        return right, left, True
    raise NotUnderstoodError("a function of two columns has no rule", Remedy.COMPARE_WITH_CONSTANT)


def _unary(function: Callable[[pa.DataType], Function]) -> Callable[[Node], Reading]:
    """Returns the reader of a function with one argument that only needs the type of its result."""
    return lambda node: (node.children[0], [function(node.type())])


def _from_instant(target: pa.DataType, zone: Callable[[], Zone]) -> Chain:
    """Returns the functions that cast an instant. A cast to a date or wall-clock time uses the session's time zone."""
    if target == _DATE:
        return [f.LocalTime(_WALL, zone()), f.Convert(_DATE)]
    if target == _WALL:
        return [f.LocalTime(_WALL, zone())]
    if pa.types.is_integer(target):
        return [f.Ticks(_LONG, _SECOND_US), f.Convert(target)]
    if pa.types.is_floating(target):
        return [f.Ticks(_LONG, 1), f.Convert(_DOUBLE), f.Over(_DOUBLE, float(_SECOND_US)), f.Convert(target)]
    raise NotUnderstoodError(f"casting TIMESTAMP to {type_name(target).upper()} has no rule")


def _to_instant(source: pa.DataType, zone: Callable[[], Zone]) -> Chain:
    """Returns the functions that cast a number, date or wall-clock time to an instant."""
    if pa.types.is_integer(source):
        return [f.Convert(_LONG), f.FromTicks(_INSTANT, _SECOND_US)]
    if source in (_DATE, _WALL):
        return [f.Convert(_WALL), f.InstantOf(_INSTANT, zone())]
    raise NotUnderstoodError(f"casting {type_name(source).upper()} to TIMESTAMP does not keep the order")


def _zone_at(node: Node) -> Zone:
    """Returns the time zone of a node."""
    return zone_of(node.jvm().zoneId())


def _part(part: CalendarPart, *, of_time: bool = False) -> Callable[[Node], Reading]:
    def read(node: Node) -> Reading:
        child = node.children[0]
        to_wall: Chain = [f.LocalTime(_WALL, _zone_at(node))] if of_time and child.type() == _INSTANT else []
        return child, [*to_wall, f.PartOf(node.type(), part)]

    return read


def _date_add(sign: int) -> Callable[[Node], Reading]:
    return lambda node: (node.children[0], [f.Plus(_DATE, sign * integer_of(node.children[1]))])


def _date_diff(node: Node) -> Reading:
    operand, constant, swapped = _sides_of(node)
    days = int(scalar_of(constant, _DATE).value)
    count = f.Ticks(pa.int32(), _DAY_US)
    if not swapped:
        return operand, [count, f.Plus(pa.int32(), -days)]
    return operand, [count, f.Negate(pa.int32()), f.Plus(pa.int32(), days)]


def _on_wall_clock(node: Node, operand: Node, function: Callable[[pa.DataType], Function]) -> Chain:
    """Returns a function of dates and wall-clock times; for an instant, with the way to its local time and back."""
    if operand.type() != _INSTANT:
        return [function(operand.type())]
    zone = _zone_at(node)
    return [f.LocalTime(_WALL, zone), function(_WALL), f.InstantOf(_INSTANT, zone)]


def _plus_months(node: Node) -> Reading:
    operand, months = node.children[0], integer_of(node.children[1])
    return operand, _on_wall_clock(node, operand, lambda kind: f.PlusMonths(kind, months))


def _plus_interval(node: Node) -> Reading:
    """Adds whole days to the wall-clock time, and the rest to the instant."""
    operand, constant = node.children
    kind, micros = operand.type(), integer_of(constant)
    days_us = int(math.copysign(abs(micros) // _DAY_US, micros)) * _DAY_US
    if kind == _INSTANT and days_us:
        by_days = _on_wall_clock(node, operand, lambda kind: f.Plus(kind, days_us))
        return operand, [*by_days, f.Plus(_INSTANT, micros - days_us)]
    return operand, [f.Plus(kind, micros)]


def _unit(node: Node) -> TimeUnit:
    unit = _UNITS.get(str(node.raw.get("value")).upper()) if node.is_literal else None
    if unit is None:
        raise NotUnderstoodError("the unit is not a constant that Spark knows", Remedy.WRITE_CONSTANTS)
    return unit


def _trunc_date(node: Node) -> Reading:
    operand, unit = node.children[0], _unit(node.children[1])
    if unit not in _UNITS_OF_DATES:
        raise NotUnderstoodError("Spark does not truncate dates to this unit")
    return operand, [f.Truncated(_DATE, unit)]


def _trunc_timestamp(node: Node) -> Reading:
    unit, operand = _unit(node.children[0]), node.children[1]
    return operand, _on_wall_clock(node, operand, lambda kind: f.Truncated(kind, unit))


def _unix_timestamp(node: Node) -> Reading:
    operand, seconds = node.children[0], f.Ticks(_LONG, _SECOND_US, toward_zero=True)
    if operand.type() == _DATE:
        return operand, [f.Convert(_WALL), f.InstantOf(_INSTANT, _zone_at(node)), seconds]
    if operand.type() in (_WALL, _INSTANT):
        return operand, [seconds]
    raise NotUnderstoodError("parsing a string as a time has no rule")


def _ticks(unit_us: int) -> Callable[[Node], Reading]:
    return lambda node: (node.children[0], [f.Ticks(node.type(), unit_us)])


def _from_ticks(unit_us: int) -> Callable[[Node], Reading]:
    return lambda node: (node.children[0], [f.FromTicks(node.type(), unit_us)])


def _date_format(node: Node) -> Reading:
    operand, pattern = node.children
    length = _DATE_FORMATS.get(str(pattern.raw.get("value"))) if pattern.is_literal else None
    if length is None or operand.type() != _INSTANT:
        raise NotUnderstoodError(f"only the formats {', '.join(_DATE_FORMATS)} keep the order")
    return operand, [f.LocalTime(_WALL, _zone_at(node)), f.Convert(_DATE), f.Convert(_TEXT), f.Prefix(_TEXT, length)]


_TIME_FUNCTIONS: Mapping[str, Callable[[Node], Reading]] = {
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
    "LastDay": _unary(f.LastDay),
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


def _cast(node: Node) -> Reading:
    child = node.children[0]
    source, target = child.type(), node.type()
    if (pa.types.is_time(source) or pa.types.is_duration(source)) and not _keeps_units(child, node):
        raise NotUnderstoodError(f"casting {type_name(source)} to {type_name(target)} has no rule")
    return child, _conversion(source, target, lambda: _zone_at(node))


def _keeps_units(source: Node, target: Node) -> bool:
    """Returns whether a cast from a time or an interval to another type of its kind cuts nothing off."""
    least, most = (_finest_unit(each.type_name()) for each in (source, target))
    return source.type() == target.type() and least is not None and most is not None and least <= most


def _finest_unit(name: str) -> int | None:
    if found := re.fullmatch(r"time\((\d)\)", name):
        return int(found[1])
    last = name.rsplit(maxsplit=1)[-1]
    return _INTERVAL_UNITS.index(last) if last in _INTERVAL_UNITS else None


def _conversion(source: pa.DataType, target: pa.DataType, zone: Callable[[], Zone]) -> Chain:
    kinds = pa.types
    if source == _INSTANT:
        return _from_instant(target, zone)
    if target == _INSTANT:
        return _to_instant(source, zone)
    from_text = kinds.is_string(source) and not kinds.is_binary(target)
    if kinds.is_boolean(target) or from_text or (kinds.is_string(target) and source != _DATE):
        raise NotUnderstoodError(
            f"casting {type_name(source).upper()} to {type_name(target).upper()} does not keep the order"
        )
    return [f.Convert(target)]


def _number(node: Node) -> f.Number:
    value: object = scalar_of(node, node.type()).as_py()
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise NotUnderstoodError("a constant that is not a number has no rule")
    if isinstance(value, float) and not math.isfinite(value):
        raise NotUnderstoodError("arithmetic with infinity or NaN has no rule")
    return value


def _factor(node: Node) -> f.Number:
    found = _number(node)
    if found == 0:
        raise NotUnderstoodError("a product with 0, or a quotient by it, has no rule")
    return found


def _add(node: Node) -> Reading:
    operand, constant, _ = _sides_of(node)
    return operand, [f.Plus(node.type(), _number(constant))]


def _subtract(node: Node) -> Reading:
    operand, constant, swapped = _sides_of(node)
    amount = _number(constant)
    if swapped:
        return operand, [f.Negate(operand.type()), f.Plus(node.type(), amount)]
    return operand, [f.Plus(node.type(), -amount)]


def _multiply(node: Node) -> Reading:
    operand, constant, _ = _sides_of(node)
    return operand, [f.Times(node.type(), _factor(constant))]


def _divide(node: Node) -> Reading:
    operand, constant, swapped = _sides_of(node)
    if swapped:
        raise NotUnderstoodError("a quotient by a column does not keep the order")
    return operand, [f.Over(node.type(), _factor(constant))]


def _modulo(node: Node) -> Reading:
    operand, constant, swapped = _sides_of(node)
    divisor = 0 if swapped else integer_of(constant)
    if divisor <= 0:
        raise NotUnderstoodError("a remainder by a column, or by a number that is not positive, has no rule")
    return operand, [f.Remainder(node.type(), divisor, node.kind == "Pmod")]


def _rounded(rounding: Rounding) -> Callable[[Node], Reading]:
    def read(node: Node) -> Reading:
        digits = integer_of(node.children[1]) if len(node.children) > 1 else 0
        return node.children[0], [f.Rounded(node.type(), rounding, digits)]

    return read


def _substring(node: Node) -> Reading:
    text, start, length = node.children
    if integer_of(start) not in (0, 1) or integer_of(length) < 1:
        raise NotUnderstoodError("only the beginning of a text keeps the order", Remedy.STORE_SEARCHED_TEXT)
    return text, [f.Prefix(node.type(), integer_of(length))]


def _case(upper: bool) -> Callable[[Node], Reading]:
    return lambda node: (node.children[0], [f.FoldedCase(node.type(), upper)])


def _concat(node: Node) -> Reading:
    if node.type() != _TEXT or len(node.children) != 2 or not node.children[0].is_literal:
        raise NotUnderstoodError("only a constant before a text keeps the order")
    head = scalar_of(node.children[0], _TEXT)
    if not head.is_valid:
        raise NotUnderstoodError("it is always null", remedy=None)
    return node.children[1], [f.Prepended(_TEXT, head)]


FUNCTIONS: Mapping[str, Callable[[Node], Reading]] = {
    **_TIME_FUNCTIONS,
    "Abs": _unary(f.Absolute),
    "Add": _add,
    "BRound": _rounded(Rounding.HALF_EVEN),
    "Cast": _cast,
    "Ceil": _rounded(Rounding.CEILING),
    "Concat": _concat,
    "Divide": _divide,
    "Floor": _rounded(Rounding.FLOOR),
    "IntegralDivide": _divide,
    "Lower": _case(upper=False),
    "Multiply": _multiply,
    "Pmod": _modulo,
    "Remainder": _modulo,
    "Round": _rounded(Rounding.HALF_UP),
    "RoundCeil": _rounded(Rounding.CEILING),
    "RoundFloor": _rounded(Rounding.FLOOR),
    "Substring": _substring,
    "Subtract": _subtract,
    "UnaryMinus": _unary(f.Negate),
    "Upper": _case(upper=True),
}
