"""Instants: 17 digits of UTC time that name every action and every file it writes."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_INSTANT = re.compile(r"[0-9]{17}")
INSTANT_DIGITS = 17
# The end of the year 9998: an instant after it, and the times of all that is done after that, can still be written.
LAST_MS = 253_370_764_799_999


def is_instant(text: str) -> bool:
    """Tell whether a text is an instant, yyyyMMddHHmmssSSS."""
    if not _INSTANT.fullmatch(text):
        return False
    try:
        return 0 <= instant_ms(text) <= LAST_MS
    except ValueError:
        return False


def instant_of(time_ms: int) -> str:
    """Return the instant of a time in milliseconds since the epoch."""
    moment = _EPOCH + timedelta(milliseconds=time_ms)
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}".zfill(INSTANT_DIGITS)


def instant_ms(instant: str) -> int:
    """Return the time of an instant in milliseconds since the epoch.

    Raises:
        ValueError: The text is no instant.
    """
    moment = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    return (moment - _EPOCH) // timedelta(milliseconds=1) + int(instant[14:])


def next_instant(after: str | None, now_ms: int) -> str:
    """Return the instant of now, or the first one after `after` where the clock is not past it.

    Args:
        after: The highest instant that is taken; the result is greater.
        now_ms: The clock, milliseconds since the epoch.
    """
    now = instant_of(now_ms)
    if after is None or now > after:
        return now
    return instant_of(instant_ms(after) + 1)
