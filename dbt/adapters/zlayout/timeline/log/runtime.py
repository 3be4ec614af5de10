"""Runtime: what a timeline needs besides its store: clock, pause and the identity of this process."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.timeline.log.writer import Writer

HEARTBEAT_VARIABLE = "ZLAYOUT_HEARTBEAT_SECONDS"
DEAD_AFTER_VARIABLE = "ZLAYOUT_DEAD_AFTER_SECONDS"
# Fewer missed beats than this may just be a slow store.
_BEATS_BEFORE_DEAD = 3


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _heartbeat_seconds() -> float:
    return _seconds(HEARTBEAT_VARIABLE, 60.0)


def _dead_after_seconds() -> float:
    found = _seconds(DEAD_AFTER_VARIABLE, 600.0)
    least = _BEATS_BEFORE_DEAD * _heartbeat_seconds()
    if found < least:
        problem = (
            f"{DEAD_AFTER_VARIABLE} is {found:g}: a writer is dead after {_BEATS_BEFORE_DEAD} heartbeats at the "
            f"earliest; set it to at least {least:g}, or {HEARTBEAT_VARIABLE} to at most {found / _BEATS_BEFORE_DEAD:g}"
        )
        raise ConfigError([problem])
    return found


def _seconds(variable: str, default: float) -> float:
    text = os.environ.get(variable)
    if text is None:
        return default
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise ConfigError([f"{variable} is {text!r}; it must be a number of seconds above 0, such as {default:g}"])
    return found


@dataclass(frozen=True)
class Runtime:
    """Clock, pause and identity; tests replace them.

    Attributes:
        now_ms: Returns milliseconds since the epoch.
        sleep: Waits for a number of seconds.
        writer: This process.
        heartbeat_seconds: Interval at which a transaction signals that it is alive; None for never. From the
            environment variable ``ZLAYOUT_HEARTBEAT_SECONDS``, by default 60.
        dead_after_seconds: A writer that cannot be observed and is silent for this long counts as dead. From
            ``ZLAYOUT_DEAD_AFTER_SECONDS``, by default 600; must be the same on all machines that write a table.
    """

    now_ms: Callable[[], int] = _now_ms
    sleep: Callable[[float], None] = time.sleep
    writer: Writer = field(default_factory=Writer.current)
    heartbeat_seconds: float | None = field(default_factory=_heartbeat_seconds)
    dead_after_seconds: float = field(default_factory=_dead_after_seconds)
