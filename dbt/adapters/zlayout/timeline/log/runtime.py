"""Runtime: what a timeline needs besides its store: clock, pause, heartbeat and the identity of this process.

The identity distinguishes a dead writer from a live one.
"""

from __future__ import annotations

import math
import os
import platform
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from dbt.adapters.zlayout.errors import ConfigError

HEARTBEAT_VARIABLE = "ZLAYOUT_HEARTBEAT_SECONDS"
DEAD_AFTER_VARIABLE = "ZLAYOUT_DEAD_AFTER_SECONDS"
# Fewer missed beats than this may just be a slow store.
_BEATS_BEFORE_DEAD = 3


@dataclass(frozen=True)
class Writer:
    """A process on a machine.

    Attributes:
        host: Name of the machine, for messages.
        machine: The machine since its last boot, and the container on it: the scope in which process ids are valid.
        pid: Process id.
        started: Start time of the process, as reported by the system; differs if a pid is reused.
    """

    host: str
    machine: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> Writer:
        """Returns the identity of this process."""
        pid = os.getpid()
        return cls(platform.node(), _machine(), pid, process_start(pid) or "")

    def lives(self, observer: Writer) -> bool | None:
        """Returns whether the process is still alive; None if the observer cannot see it."""
        if self.machine != observer.machine or not self.started:
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass  # the process belongs to another user: it is alive, if it is still the same one
        started = process_start(self.pid)
        return None if started is None else started == self.started


def process_start(pid: int) -> str | None:
    """Returns the start time of a process on this machine, or None if it cannot be determined."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None if Path("/proc/self/stat").exists() else _start_from_ps(pid)
    # The command name, in parentheses, may contain spaces and parentheses.
    state, *fields = status.rpartition(")")[2].split()
    # A zombie writes nothing any more; its parent has just not collected its exit code.
    return "ended" if state in {"Z", "X"} else fields[18]


def _start_from_ps(pid: int) -> str | None:
    try:
        answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return answer.stdout.strip() or None


@cache
def _machine() -> str:
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        # Two containers may share host name and kernel, but not the namespace of their process ids.
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


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

    def with_least_patience(self) -> Runtime:
        """Returns a runtime in which a silent writer is dead as early as its heartbeats allow."""
        least = _BEATS_BEFORE_DEAD * (self.heartbeat_seconds or 60.0)
        return replace(self, dead_after_seconds=min(self.dead_after_seconds, least))
