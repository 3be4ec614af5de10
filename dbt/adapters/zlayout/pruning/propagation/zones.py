"""Bound propagation between instants and wall-clock times of a zone with offset changes (jumps)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.functions import InstantOf, LocalTime, Zone
from dbt.adapters.zlayout.pruning.propagation.vectors import arrow, near, numbers
from dbt.adapters.zlayout.pruning.statistics.validation import Facts, valid
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags

MOST_OFFSET_US = 18 * 3_600_000_000
"""The largest offset from UTC of any zone (``java.time.ZoneOffset``)."""

Micros = npt.NDArray[np.int64]


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
    return _placed(
        facts,
        function.type,
        np.where(known, local_low, low - MOST_OFFSET_US),
        np.where(known, local_high, high + MOST_OFFSET_US),
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
    return _placed(facts, function.type, low - greatest, high - least, usable, exact=(low_exact, high_exact))


def _offsets_near(zone: Zone, local: Micros) -> tuple[Micros, Micros, Flags]:
    """Returns the least and greatest offset within 18 hours of wall-clock times, and whether there is only one."""
    first = np.searchsorted(zone.jumps_us, local - MOST_OFFSET_US, "left")
    last = np.searchsorted(zone.jumps_us, local + MOST_OFFSET_US, "right")
    least, greatest = zone.offsets_us[first], zone.offsets_us[first]
    for step in range(1, int(np.max(last - first, initial=0)) + 1):
        offset = zone.offsets_us[np.minimum(first + step, last)]
        least, greatest = np.minimum(least, offset), np.maximum(greatest, offset)
    beyond = _beyond(zone, local + MOST_OFFSET_US)
    least, greatest = np.where(beyond, -MOST_OFFSET_US, least), np.where(beyond, MOST_OFFSET_US, greatest)
    return least, greatest, (first == last) & ~beyond


def _beyond(zone: Zone, instants: Micros) -> Flags:
    if zone.known_until_us is None:
        return np.zeros(len(instants), dtype=np.bool_)
    result: Flags = instants > zone.known_until_us
    return result


def _placed(
    facts: Facts,
    kind: pa.DataType,
    low: Micros,
    high: Micros,
    usable: tuple[Flags, Flags],
    *,
    exact: tuple[Flags, Flags],
) -> Facts:
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
