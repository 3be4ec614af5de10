"""Which published versions readers may still be reading: those that were the newest at some time in the last hours."""

from __future__ import annotations

from collections.abc import Mapping


def oldest_seen(published_ms: Mapping[int, int], newest: int, since_ms: float) -> int:
    """Returns the number of the file that readers followed at a time, or the oldest one that is left.

    >>> oldest_seen({1: 100, 2: 200, 3: 300}, newest=3, since_ms=250)
    2

    Args:
        published_ms: When each version was published, by the number of its file.
        newest: The number that readers follow now.
        since_ms: The time; infinite for now.
    """
    number = newest
    while published_ms.get(number, 0) > since_ms and number - 1 in published_ms:
        number -= 1
    return number
