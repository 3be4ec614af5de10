"""Bound propagation for dates and times: truncation, fields, months, counts since 1970, and the clocks of zones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.functions import (
    CalendarPart,
    FromTicks,
    InstantOf,
    LastDay,
    LocalTime,
    PartOf,
    PlusMonths,
    Ticks,
    TimeUnit,
    Truncated,
    Zone,
)
from dbt.adapters.zlayout.pruning.propagation.monotone import (
    DAY_US,
    Bound,
    arrow,
    bound,
    kept,
    monotone,
    near,
    numbers,
    periodic,
)
from dbt.adapters.zlayout.pruning.statistics.validation import Facts, valid
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags

_MOST_OFFSET_US = 18 * 3_600_000_000
"""The largest offset from UTC of any zone (``java.time.ZoneOffset``)."""

Integers = npt.NDArray[np.int64]

_TICKS_US = {
    TimeUnit.HOUR: 3_600_000_000,
    TimeUnit.MINUTE: 60_000_000,
    TimeUnit.SECOND: 1_000_000,
    TimeUnit.MILLISECOND: 1_000,
    TimeUnit.MICROSECOND: 1,
}
_UNIT_MONTHS = {TimeUnit.YEAR: 12, TimeUnit.QUARTER: 3, TimeUnit.MONTH: 1}


def _days(side: pa.Array) -> Integers:
    found = numbers(side).astype(np.int64)
    return found if pa.types.is_date32(side.type) else found // DAY_US


def _micros(side: pa.Array) -> Integers:
    return numbers(side).astype(np.int64)


def _months(days: Integers) -> Integers:
    """Returns months since 1970-01 in the proleptic Gregorian calendar, as Spark and numpy use it."""
    result: Integers = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return result


def _day_of_month_start(months: Any) -> Integers:
    result: Integers = np.asarray(months, np.int64).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return result


def truncated(function: Truncated, facts: Facts) -> Facts | None:
    """The start of a unit is its greatest multiple up to x: an increasing step function."""
    kind, unit = facts.minimum.type, function.unit
    if kind != function.type or not (pa.types.is_date32(kind) or kind == pa.timestamp("us")):
        return None
    if unit in _TICKS_US:
        step = _TICKS_US[unit]
        if pa.types.is_date32(kind):
            return None
        return monotone(facts, lambda side: kept(arrow(numbers(side) // step * step, kind, side)), total=True)
    scale = 1 if pa.types.is_date32(kind) else DAY_US

    def start(side: pa.Array) -> Bound:
        days = _days(side)
        # The start of the first unit of a type may lie before the least value that the type can hold.
        return bound(_first_day(days, unit) * scale, kind, side, near(side))

    return monotone(facts, start, total=False)


def _first_day(days: Integers, unit: TimeUnit) -> Integers:
    if unit in _UNIT_MONTHS:
        width = _UNIT_MONTHS[unit]
        return _day_of_month_start(_months(days) // width * width)
    # 1970-01-01 was a Thursday, three days after the start of its week.
    return days - (days + 3) % 7 if unit is TimeUnit.WEEK else days


@dataclass(frozen=True)
class _Cycle:
    """A calendar field: how to read it, the cycle within which it increases, its least and greatest value."""

    read: Callable[[Integers], Integers]
    cycle: Callable[[Integers], Integers]
    least: int
    most: int


_CYCLES_OF_DAYS: Mapping[CalendarPart, _Cycle] = {
    CalendarPart.QUARTER: _Cycle(lambda days: _months(days) % 12 // 3 + 1, lambda days: _months(days) // 12, 1, 4),
    CalendarPart.MONTH: _Cycle(lambda days: _months(days) % 12 + 1, lambda days: _months(days) // 12, 1, 12),
    CalendarPart.DAY_OF_YEAR: _Cycle(
        lambda days: days - _day_of_month_start(_months(days) // 12 * 12) + 1, lambda days: _months(days) // 12, 1, 366
    ),
    CalendarPart.DAY_OF_MONTH: _Cycle(lambda days: days - _day_of_month_start(_months(days)) + 1, _months, 1, 31),
    # For dayofweek Spark's week starts with Sunday as 1, for weekday with Monday as 0.
    CalendarPart.DAY_OF_WEEK: _Cycle(lambda days: (days + 4) % 7 + 1, lambda days: (days + 4) // 7, 1, 7),
    CalendarPart.WEEKDAY: _Cycle(lambda days: (days + 3) % 7, lambda days: (days + 3) // 7, 0, 6),
}


_CYCLES_OF_MICROS: Mapping[CalendarPart, _Cycle] = {
    CalendarPart.HOUR: _Cycle(lambda us: us // 3_600_000_000 % 24, lambda us: us // DAY_US, 0, 23),
    CalendarPart.MINUTE: _Cycle(lambda us: us // 60_000_000 % 60, lambda us: us // 3_600_000_000, 0, 59),
    CalendarPart.SECOND: _Cycle(lambda us: us // 1_000_000 % 60, lambda us: us // 60_000_000, 0, 59),
}


def part_of(function: PartOf, facts: Facts) -> Facts | None:
    """The year is increasing, other fields are periodic.

    Within one cycle (a month within its year) they increase; over more than one they may be any value of their range.
    """
    kind, part = facts.minimum.type, function.part
    if part is CalendarPart.YEAR and pa.types.is_date32(kind):
        return monotone(
            facts, lambda side: kept(arrow(1970 + _months(_days(side)) // 12, function.type, side)), total=True
        )
    if part in _CYCLES_OF_DAYS and pa.types.is_date32(kind):
        cycle, read = _CYCLES_OF_DAYS[part], _days
    elif part in _CYCLES_OF_MICROS and kind == pa.timestamp("us"):
        cycle, read = _CYCLES_OF_MICROS[part], _micros
    else:
        return None
    low, high = read(facts.minimum), read(facts.maximum)
    same = valid(facts.minimum) & valid(facts.maximum) & (cycle.cycle(low) == cycle.cycle(high))
    least, most = np.where(same, cycle.read(low), cycle.least), np.where(same, cycle.read(high), cycle.most)
    return periodic(facts, function.type, least, most, same)


def plus_months(function: PlusMonths, facts: Facts) -> Facts | None:
    """Increasing for dates: of two dates in a month the later one stays later, or both become the month's last day.

    Times keep the time of day, so if two days are moved to the same last day, the later one may get the earlier time.
    There the bounds are widened to the whole day.
    """
    kind = facts.minimum.type
    if kind != function.type or not (pa.types.is_date32(kind) or kind == pa.timestamp("us")):
        return None
    # Few enough that dates which `near` accepts do not overflow.
    if abs(function.months) > 1_200_000:
        return None
    scale = 1 if pa.types.is_date32(kind) else DAY_US

    def moved(side: pa.Array) -> Bound:
        days = _days(side)
        months = _months(days)
        target = months + function.months
        length = _day_of_month_start(target + 1) - _day_of_month_start(target)
        day = np.minimum(days - _day_of_month_start(months), length - 1)
        rest = numbers(side).astype(np.int64) % scale
        return bound((_day_of_month_start(target) + day) * scale + rest, kind, side, near(side))

    mapped = monotone(facts, moved, total=False)
    return mapped if scale == 1 else _by_whole_last_days(mapped)


def _by_whole_last_days(facts: Facts) -> Facts:
    """Widens bounds of times to the whole day if that day is the last of its month."""
    sides = []
    for side, time_of_day in ((facts.minimum, 0), (facts.maximum, DAY_US - 1)):
        days = _days(side)
        is_last = _months(days + 1) != _months(days)
        whole_day = arrow(days * DAY_US + time_of_day, side.type, side)
        sides.append((pc.if_else(pa.array(is_last), whole_day, side), is_last))
    (low, low_is_last), (high, high_is_last) = sides
    return replace(
        facts,
        minimum=low,
        maximum=high,
        minimum_exact=facts.minimum_exact & ~low_is_last,
        maximum_exact=facts.maximum_exact & ~high_is_last,
    )


def last_day(function: LastDay, facts: Facts) -> Facts | None:
    """The day before the first of the next month: an increasing step function."""
    kind = facts.minimum.type
    if not pa.types.is_date32(kind):
        return None

    def end(side: pa.Array) -> Bound:
        return bound(_day_of_month_start(_months(_days(side)) + 1) - 1, function.type, side, near(side))

    return monotone(facts, end, total=False)


def ticks(function: Ticks, facts: Facts) -> Facts | None:
    """Whole units up to x, or toward zero: both are increasing step functions."""
    kind = facts.minimum.type
    if pa.types.is_date32(kind):
        return monotone(facts, lambda side: kept(arrow(numbers(side), function.type, side)), total=True)
    if not pa.types.is_timestamp(kind):
        return None

    def whole(side: pa.Array) -> pa.Array:
        micros = numbers(side)
        units = micros // function.unit_us
        if function.toward_zero:
            units = units + ((micros < 0) & (micros % function.unit_us != 0))
        return arrow(units, function.type, side)

    return monotone(facts, lambda side: kept(whole(side)), total=True)


def from_ticks(function: FromTicks, facts: Facts) -> Facts | None:
    """A multiple of x: increasing as long as it does not overflow."""
    kind, target = facts.minimum.type, function.type
    if not pa.types.is_integer(kind):
        return None
    if pa.types.is_date32(target):
        if kind != pa.int32():
            return None
        return monotone(facts, lambda side: kept(arrow(numbers(side), target, side)), total=True)
    limit = (2**63 - 1) // function.unit_us

    def scaled(side: pa.Array) -> Bound:
        found = numbers(side).astype(np.int64)
        known = (found >= -limit) & (found <= limit)
        return bound(np.where(known, found, 0) * function.unit_us, target, side, known)

    return monotone(facts, scaled, total=False)


def local_time(function: LocalTime, facts: Facts) -> Facts | None:
    """Bounds wall-clock times over an interval of instants.

    Between jumps local time increases with the instant. Over [a, b] its least value is therefore local(a) or the value
    right after a jump in (a, b], and its greatest is local(b) or the value right before one. The values at jumps are
    accumulated once over all later (earlier) jumps, which can only loosen the bound. Where not all jumps are known,
    local time is within 18 hours of UTC.
    """
    if facts.minimum.type != pa.timestamp("us", "UTC"):
        return None
    zone, jumps = function.zone, function.zone.jumps_us
    low, high = numbers(facts.minimum), numbers(facts.maximum)
    usable = near(facts.minimum), near(facts.maximum)
    first, last = np.searchsorted(jumps, low, "right"), np.searchsorted(jumps, high, "right")
    after_jump, before_jump = jumps + zone.offsets_us[1:], jumps + zone.offsets_us[:-1]
    least_later = np.append(np.minimum.accumulate(after_jump[::-1])[::-1], np.iinfo(np.int64).max)
    most_earlier = np.insert(np.maximum.accumulate(before_jump), 0, np.iinfo(np.int64).min)
    known = valid(facts.minimum) & valid(facts.maximum) & usable[0] & usable[1] & ~_beyond(zone, high)
    crossed = first != last
    low, high = (np.where(each, side, 0) for each, side in zip(usable, (low, high), strict=True))
    straight_low, straight_high = low + zone.offsets_us[first], high + zone.offsets_us[last]
    local_low = np.where(crossed, np.minimum(straight_low, least_later[first]), straight_low)
    local_high = np.where(crossed, np.maximum(straight_high, most_earlier[last]), straight_high)
    return _with_bounds(
        facts,
        function.type,
        np.where(known, local_low, low - _MOST_OFFSET_US),
        np.where(known, local_high, high + _MOST_OFFSET_US),
        usable,
        exact=(known & (local_low == straight_low), known & (local_high == straight_high)),
    )


def instant_of(function: InstantOf, facts: Facts) -> Facts | None:
    """Bounds instants over an interval of wall-clock times.

    The instant of L is L minus an offset that is in force, or that starts or ends, within 18 hours of L read as UTC,
    however the engine resolves a time that occurs twice or never. Without a jump that near, the result is exact.
    Otherwise the least instant of all times from L on is L minus the greatest of these offsets: a later offset starts
    after L + 18 hours, and an earlier one ended before L - 18 hours, when its clocks showed less than L. The greatest
    instant of all times up to L follows in the same way.
    """
    if facts.minimum.type != pa.timestamp("us"):
        return None
    zone, usable = function.zone, (near(facts.minimum), near(facts.maximum))
    low, high = (
        np.where(each, numbers(side), 0) for each, side in zip(usable, (facts.minimum, facts.maximum), strict=True)
    )
    _, greatest, low_exact = _offsets_near(zone, low)
    least, _, high_exact = _offsets_near(zone, high)
    return _with_bounds(facts, function.type, low - greatest, high - least, usable, exact=(low_exact, high_exact))


def _offsets_near(zone: Zone, local: Integers) -> tuple[Integers, Integers, Flags]:
    """Returns the least and greatest offset within 18 hours of wall-clock times, and whether there is only one."""
    first = np.searchsorted(zone.jumps_us, local - _MOST_OFFSET_US, "left")
    last = np.searchsorted(zone.jumps_us, local + _MOST_OFFSET_US, "right")
    least, greatest = zone.offsets_us[first], zone.offsets_us[first]
    for step in range(1, int(np.max(last - first, initial=0)) + 1):
        offset = zone.offsets_us[np.minimum(first + step, last)]
        least, greatest = np.minimum(least, offset), np.maximum(greatest, offset)
    beyond = _beyond(zone, local + _MOST_OFFSET_US)
    least, greatest = np.where(beyond, -_MOST_OFFSET_US, least), np.where(beyond, _MOST_OFFSET_US, greatest)
    return least, greatest, (first == last) & ~beyond


def _beyond(zone: Zone, instants: Integers) -> Flags:
    if zone.known_until_us is None:
        return np.zeros(len(instants), dtype=np.bool_)
    result: Flags = instants > zone.known_until_us
    return result


def _with_bounds(
    facts: Facts,
    kind: pa.DataType,
    low: Integers,
    high: Integers,
    usable: tuple[Flags, Flags],
    *,
    exact: tuple[Flags, Flags],
) -> Facts:
    """Returns facts with new bounds: unknown where not usable, and exact only where x was exact too."""
    nothing = pa.scalar(None, kind)
    minimum, maximum = (
        pc.if_else(pa.array(each), arrow(values, kind, side), nothing)
        for each, values, side in zip(usable, (low, high), (facts.minimum, facts.maximum), strict=True)
    )
    return replace(
        facts,
        minimum=minimum,
        maximum=maximum,
        minimum_exact=facts.minimum_exact & exact[0] & usable[0],
        maximum_exact=facts.maximum_exact & exact[1] & usable[1],
    )
