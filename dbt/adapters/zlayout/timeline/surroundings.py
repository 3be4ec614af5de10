"""What a timeline takes from the world besides its store: clock, pause, and who it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dbt.adapters.zlayout.timeline.writer import Writer


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Surroundings:
    """Clock, pause and identity; a test replaces them.

    Attributes:
        now_ms: Returns milliseconds since the epoch.
        sleep: Waits so many seconds.
        writer: This process.
        heartbeat_seconds: How often a transaction shows that it lives; None for never.
        dead_after_seconds: A writer that cannot be seen and was silent so long counts as dead.
    """

    now_ms: Callable[[], int] = _now_ms
    sleep: Callable[[float], None] = time.sleep
    writer: Writer = field(default_factory=Writer.current)
    heartbeat_seconds: float | None = 60.0
    dead_after_seconds: float = 600.0
