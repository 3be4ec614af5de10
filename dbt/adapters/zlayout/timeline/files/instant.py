"""Instants: 17 digits of UTC time that identify every action and every file it writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone

from dbt.adapters.zlayout.errors import AlreadyExistsError, StoreError
from dbt.adapters.zlayout.store import Store

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_INSTANT = re.compile(r"[0-9]{17}")
INSTANT_DIGITS = 17
HOUR_MS = 3_600_000
_MOST_TRIES = 1_000
# The end of year 9998, so that later instants and the times of later work can still be represented.
LAST_MS = 253_370_764_799_999


def is_instant(text: str) -> bool:
    """Returns whether a text is an instant, yyyyMMddHHmmssSSS.

    >>> is_instant("20240229235959999"), is_instant("20230229235959999")
    (True, False)
    """
    if not _INSTANT.fullmatch(text):
        return False
    try:
        return 0 <= instant_ms(text) <= LAST_MS
    except ValueError:
        return False


def instant_of(time_ms: int) -> str:
    """Returns the instant of a time in milliseconds since the epoch.

    >>> instant_of(1_709_251_199_999)
    '20240229235959999'
    """
    moment = _EPOCH + timedelta(milliseconds=time_ms)
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}".zfill(INSTANT_DIGITS)


def instant_ms(instant: str) -> int:
    """Returns the time of an instant in milliseconds since the epoch.

    Raises:
        ValueError: The text is not an instant.
    """
    moment = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    return (moment - _EPOCH) // timedelta(milliseconds=1) + int(instant[14:])


def hours_before(instant: str, hours: float) -> str:
    """Returns the instant that is a number of hours before another one, but not before 1970.

    >>> hours_before("20240301000000000", 24)
    '20240229000000000'
    """
    return instant_of(max(0, instant_ms(instant) - int(hours * HOUR_MS)))


def next_instant(after: str | None, now_ms: int) -> str:
    """Returns the instant of the current time, or the first one after `after` if the clock is behind it.

    Args:
        after: The highest instant already in use; the result is greater.
        now_ms: The current time, milliseconds since the epoch.

    >>> next_instant("20240229235959999", now_ms=0)
    '20240301000000000'
    """
    now = instant_of(now_ms)
    if after is None or now > after:
        return now
    return instant_of(instant_ms(after) + 1)


def create_at_next_instant(
    store: Store, after: str | None, now_ms: Callable[[], int], path_of: Callable[[str], str], content: bytes
) -> tuple[str, str]:
    """Creates a file that is named by the next free instant.

    Args:
        after: The highest instant already in use; the new one is greater.
        now_ms: Returns the current time, milliseconds since the epoch.
        path_of: Returns the path for an instant.
        content: The file.

    Returns:
        The instant and the path.

    Raises:
        StoreError: The file cannot be created.
    """
    for _ in range(_MOST_TRIES):
        after = next_instant(after, now_ms())
        path = path_of(after)
        with suppress(AlreadyExistsError):
            store.create(path, content)
            return after, path
    raise StoreError(f"{path}: no free name in {_MOST_TRIES:,} tries; run this again later")
