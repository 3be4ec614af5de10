"""Writer identity: identifies a process exactly enough to tell a dead writer from a live one."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path


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
        """Return the identity of this process."""
        pid = os.getpid()
        return cls(platform.node(), _machine(), pid, process_start(pid) or "")

    def lives(self, observer: Writer) -> bool | None:
        """Return whether the process is still alive; None if the observer cannot see it."""
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
    """Return the start time of a process on this machine, or None if it cannot be determined."""
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
