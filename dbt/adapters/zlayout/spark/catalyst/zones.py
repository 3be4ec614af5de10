"""Reads time zones from the JVM, because its time functions evaluate the queries."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from dbt.adapters.zlayout.predicate.functions import Zone

_LAST_YEAR = 2045
_OFFSET = r"(Z|[+-]\d\d:\d\d(?::\d\d)?)"
# Source: java.time.zone.ZoneOffsetTransition.toString, ZoneRules.toString.
_TRANSITION = re.compile(rf"(\d{{4}}-\d\d-\d\dT[\d:]+){_OFFSET} to {_OFFSET}")
_STANDARD = re.compile(rf"currentStandardOffset={_OFFSET}")

_lock = threading.Lock()
_known: dict[str, Zone] = {}


def zone_of(zone_id: Any) -> Zone:
    """Reads a ``java.time.ZoneId`` (Py4J object), once per process: listing its transitions takes dozens of calls.

    Transitions that follow from rules are listed up to the year 2045.
    """
    name = str(zone_id.getId())
    with _lock:
        if name not in _known:
            _known[name] = _read(name, zone_id.getRules())
        return _known[name]


def _read(name: str, rules: Any) -> Zone:
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
        raise ValueError(f"the JVM describes a time zone in words that are not known: {text}")
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
