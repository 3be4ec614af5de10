"""Work under way: the requested and inflight files beside the log, and whether their writer lives."""

from __future__ import annotations

import re
import threading
from dataclasses import asdict, dataclass
from enum import Enum

from dbt.adapters.zlayout.errors import CorruptError, FileMissingError
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.action import Action, State
from dbt.adapters.zlayout.timeline.json_file import from_json_bytes, read_fields, to_json_bytes
from dbt.adapters.zlayout.timeline.naming import TIMELINE_FOLDER
from dbt.adapters.zlayout.timeline.surroundings import Surroundings
from dbt.adapters.zlayout.timeline.writer import Writer

_STATE_FILE = re.compile(r"(\d{17})\.([a-z]+)\.(requested|inflight)")

# Transactions that are open in this process, by holder: for a moment two may hold the same instant, until one of them
# sees the other. An instant that is not here, yet carries this process's name, was lost by a thread that died or by a
# rollback that failed.
_open_here: dict[object, tuple[str, str]] = {}
_open_here_lock = threading.Lock()


class Liveness(Enum):
    """What is known of the writer of a pending transaction."""

    LIVE = "live"
    GONE = "gone"  # surely: its process exists no more
    SILENT = "silent"  # probably: it cannot be seen and gave no heartbeat for long


@dataclass(frozen=True)
class Plan:
    """The content of a requested or inflight file.

    Attributes:
        operation: What the user asked for.
        base_version: The version that it starts from; None (requested, or the first version) if it has none.
        writer: The process that works on it.
        heartbeat_ms: The writer's clock when it last wrote this.
    """

    operation: str
    base_version: int | None
    writer: Writer
    heartbeat_ms: int

    def to_json(self) -> bytes:
        """Return the bytes of the state file."""
        return to_json_bytes(
            {
                "operation": self.operation,
                "base_version": self.base_version,
                "heartbeat_ms": self.heartbeat_ms,
                "writer": asdict(self.writer),
            }
        )

    @classmethod
    def from_json(cls, data: bytes, path: str) -> Plan:
        """Parse the bytes of a state file.

        Raises:
            CorruptError: They are not what `to_json` writes.
        """
        content = from_json_bytes(data, path)
        operation, base_version, heartbeat_ms, writer = read_fields(
            content, path, operation=str, base_version=(int, type(None)), heartbeat_ms=int, writer=dict
        )
        host, machine, pid, started = read_fields(writer, path, host=str, machine=str, pid=int, started=str)
        return cls(operation, base_version, Writer(host, machine, pid, started), heartbeat_ms)


@dataclass(frozen=True)
class Pending:
    """A transaction that left its state files.

    Attributes:
        instant: Its instant.
        action: Its action.
        paths: Its state files; the inflight one last, if it is there.
        modified_ms: When the store last saw one of them change.
    """

    instant: str
    action: Action
    paths: tuple[str, ...]
    modified_ms: int

    def plan(self, store: Store) -> Plan | None:
        """Read what the transaction wants; None where it just ended or its file is damaged."""
        try:
            return Plan.from_json(store.read(self.paths[-1]), self.paths[-1])
        except (FileMissingError, CorruptError):
            return None


def state_path(instant: str, action: Action, state: State) -> str:
    """Return the state file of a transaction."""
    return f"{TIMELINE_FOLDER}/{instant}.{action.value}.{state.value}"


def list_pending(store: Store) -> list[Pending]:
    """Return all transactions with state files, oldest instant first."""
    found: dict[tuple[str, Action], Pending] = {}
    actions = {action.value: action for action in Action}
    # REQUESTED sorts after INFLIGHT by name, so the order is turned: the inflight file comes last.
    for file in sorted(store.list(TIMELINE_FOLDER), key=lambda file: file.path, reverse=True):
        match = _STATE_FILE.fullmatch(file.path.rpartition("/")[2])
        if match is None or match[2] not in actions:
            continue
        instant, action = match[1], actions[match[2]]
        before = found.get((instant, action))
        paths = (*before.paths, file.path) if before else (file.path,)
        modified_ms = max(before.modified_ms, file.modified_ms) if before else file.modified_ms
        found[instant, action] = Pending(instant, action, paths, modified_ms)
    return sorted(found.values(), key=lambda pending: (pending.instant, pending.action.value))


def mark_open(holder: object, store: Store, instant: str) -> None:
    """Remember that this process works on an instant, until the holder is closed."""
    with _open_here_lock:
        _open_here[holder] = (store.root_uri, instant)


def mark_closed(holder: object) -> None:
    """Remember that this holder works on nothing any more."""
    with _open_here_lock:
        _open_here.pop(holder, None)


def _is_open_here(store: Store, instant: str) -> bool:
    with _open_here_lock:
        return (store.root_uri, instant) in _open_here.values()


def liveness(pending: Pending, store: Store, surroundings: Surroundings) -> Liveness:
    """Judge the writer of a pending transaction."""
    plan = pending.plan(store)
    last_sign_ms = pending.modified_ms
    if plan is not None:
        if plan.writer.is_gone(surroundings.writer):
            return Liveness.GONE
        if plan.writer == surroundings.writer and not _is_open_here(store, pending.instant):
            return Liveness.GONE
        # The later of two clocks: a writer whose own clock is slow must not look dead.
        last_sign_ms = max(last_sign_ms, plan.heartbeat_ms)
    silent_seconds = (surroundings.now_ms() - last_sign_ms) / 1000
    return Liveness.SILENT if silent_seconds > surroundings.dead_after_seconds else Liveness.LIVE
