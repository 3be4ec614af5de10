"""State files beside the log: pending transactions with their heartbeat, and pending plans."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from dbt.adapters.zlayout.errors import ConfigError, CorruptError, FileMissingError, StoreError
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import Action, State
from dbt.adapters.zlayout.timeline.files.instant import create_at_next_instant, is_instant
from dbt.adapters.zlayout.timeline.files.json_file import from_json_bytes, read_fields, to_json_bytes
from dbt.adapters.zlayout.timeline.files.naming import TIMELINE_FOLDER
from dbt.adapters.zlayout.timeline.log.runtime import Runtime, Writer
from dbt.adapters.zlayout.timeline.timeline import Timeline

_STATE_FILE = re.compile(r"(\d{17})\.([a-z]+)\.(requested|inflight|abandoned|scheduled)")
# Transactions that are open in this process, by holder: two may briefly hold the same instant, until one of them sees
# the other. The second collection has the last transactions that ended and left no files, for threads that still look
# at their state files. An instant in neither that carries this process's identity was lost by a thread that died or by
# a rollback that failed.
_open_here: dict[object, tuple[str, str]] = {}
_ended_here: deque[tuple[str, str]] = deque(maxlen=1000)
_open_here_lock = threading.Lock()
_WORDS = {Action.REPLACECOMMIT: "clustering", Action.COMPACTION: "compaction"}


class Liveness(Enum):
    """What is known about the writer of a pending transaction."""

    LIVE = "live"
    GONE = "gone"  # certain: its process no longer exists
    SILENT = "silent"  # probable: it cannot be seen and has sent no heartbeat for a long time


@dataclass(frozen=True)
class StateContent:
    """The content of a requested or inflight file.

    Attributes:
        operation: What the user asked for.
        base_version: The oldest version that it needs: it starts from this one or (in a requested file, or for a
            rollback) from a newer one; None for the first version.
        writer: The process that runs it.
        heartbeat_ms: The writer's clock when it last wrote the file.
        committing: Whether it is a maintenance operation that is about to commit.
    """

    operation: str
    base_version: int | None
    writer: Writer
    heartbeat_ms: int
    committing: bool = False

    def to_json(self) -> bytes:
        """Returns the bytes of the state file."""
        return to_json_bytes(asdict(self))

    @classmethod
    def from_json(cls, data: bytes, path: str) -> StateContent:
        """Parses the bytes of a state file.

        Raises:
            CorruptError: They are not what `to_json` writes.
        """
        content = from_json_bytes(data, path)
        operation, base_version, heartbeat_ms, committing, writer = read_fields(
            content, path, operation=str, base_version=(int, type(None)), heartbeat_ms=int, committing=bool, writer=dict
        )
        host, machine, pid, started = read_fields(writer, path, host=str, machine=str, pid=int, started=str)
        if not 0 < pid < 2**31 or (base_version is not None and base_version < 0):
            raise CorruptError(f"{path}: process {pid} or version {base_version} is impossible")
        return cls(operation, base_version, Writer(host, machine, pid, started), heartbeat_ms, committing)


@dataclass(frozen=True)
class Pending:
    """A transaction that has state files.

    Attributes:
        paths: Its state files; the inflight file last, if it exists.
        modified_ms: The latest modification time of the files in the store.
    """

    instant: str
    action: Action
    paths: tuple[str, ...]
    modified_ms: int

    def plan(self, store: Store) -> StateContent | None:
        """Reads the plan; None if the transaction has just ended or its file is damaged."""
        try:
            return StateContent.from_json(store.read(self.paths[-1]), self.paths[-1])
        except (FileMissingError, CorruptError):
            return None


def state_path(instant: str, action: Action, state: State) -> str:
    """Returns the path of a state file of a transaction."""
    return f"{TIMELINE_FOLDER}/{instant}.{action.value}.{state.value}"


@dataclass(frozen=True)
class StateFile:
    """A file that records the progress of a transaction.

    Attributes:
        instant: The instant of the transaction.
        action: The action of the transaction.
        state: Requested, inflight, abandoned or scheduled.
        modified_ms: Modification time of the file in the store.
    """

    instant: str
    action: Action
    state: State
    path: str
    modified_ms: int


def list_state_files(store: Store) -> list[StateFile]:
    """Returns the state files of all transactions, sorted by path; the instant of each is in use."""
    actions = {action.value: action for action in Action}
    found: list[StateFile] = []
    for file in store.list(TIMELINE_FOLDER):
        match = _STATE_FILE.fullmatch(file.path.rpartition("/")[2])
        if match is not None and match[2] in actions and is_instant(match[1]):
            action, state = actions[match[2]], State(match[3])
            if (action, state) == (Action.COMPACTION, State.REQUESTED) and _is_scheduled(store, file.path):
                state = State.SCHEDULED
            found.append(StateFile(match[1], action, state, file.path, file.modified_ms))
    return found


def _is_scheduled(store: Store, path: str) -> bool:
    """Returns whether a requested compaction is a pending plan of an earlier release, not a started transaction."""
    try:
        return "operations" in from_json_bytes(store.read(path), path)
    except (FileMissingError, CorruptError):
        return False


def list_pending(store: Store) -> list[Pending]:
    """Returns all pending transactions, oldest instant first."""
    return pending_in(list_state_files(store))


def pending_in(files: Sequence[StateFile]) -> list[Pending]:
    """Returns the pending transactions among state files, oldest instant first."""
    found: dict[tuple[str, Action], Pending] = {}
    # REQUESTED sorts after INFLIGHT by name, so the order is reversed: the inflight file comes last.
    for file in reversed(files):
        if file.state in (State.ABANDONED, State.SCHEDULED):
            continue
        before = found.get((file.instant, file.action))
        paths = (*before.paths, file.path) if before else (file.path,)
        modified_ms = max(before.modified_ms, file.modified_ms) if before else file.modified_ms
        found[file.instant, file.action] = Pending(file.instant, file.action, paths, modified_ms)
    return sorted(found.values(), key=lambda pending: (pending.instant, pending.action.value))


def abandon(store: Store, instant: str, action: Action) -> None:
    """Keeps the instant of a rolled-back transaction in use until the log has passed it.

    Whoever found the transaction dead may still be deleting files of this instant, so nobody may write under it.
    """
    store.put(state_path(instant, action, State.ABANDONED), to_json_bytes({}))


def mark_open(holder: object, store: Store, instant: str) -> None:
    """Records that this process works on an instant, until the holder is closed."""
    with _open_here_lock:
        _open_here[holder] = taken = (store.root_uri, instant)
        with suppress(ValueError):
            _ended_here.remove(taken)


def mark_closed(holder: object, *, left_nothing: bool) -> None:
    """Records that this holder no longer works on anything.

    Args:
        holder: As given to `mark_open`.
        left_nothing: Whether its state files are gone; otherwise the next writer finds them and treats it as lost.
    """
    with _open_here_lock:
        ended = _open_here.pop(holder, None)
        if left_nothing and ended is not None:
            _ended_here.append(ended)


def _is_lost_here(store: Store, instant: str) -> bool:
    with _open_here_lock:
        return (store.root_uri, instant) not in {*_open_here.values(), *_ended_here}


def liveness(pending: Pending, store: Store, runtime: Runtime) -> Liveness:
    """Returns what is known about the writer of a pending transaction."""
    plan = pending.plan(store)
    last_sign_ms = pending.modified_ms
    if plan is not None:
        lives = plan.writer.lives(runtime.writer)
        lost_here = plan.writer == runtime.writer and _is_lost_here(store, pending.instant)
        if lives is not None:
            return Liveness.GONE if lost_here or not lives else Liveness.LIVE
        if lost_here:
            return Liveness.GONE
        # Uses the later of two clocks: a writer whose own clock is slow must not look dead.
        last_sign_ms = max(last_sign_ms, plan.heartbeat_ms)
    silent_seconds = (runtime.now_ms() - last_sign_ms) / 1000
    return Liveness.SILENT if silent_seconds > runtime.dead_after_seconds else Liveness.LIVE


def is_running(timeline: Timeline, action: Action) -> bool:
    """Returns whether a transaction of an action is open, and its writer may be alive."""
    running = (each for each in list_pending(timeline.store) if each.action is action)
    return any(liveness(each, timeline.store, timeline.runtime) is Liveness.LIVE for each in running)


class Heartbeat:
    """A thread that rewrites the inflight file, so that other machines see that the writer is alive.

    Args:
        path: The inflight file.
        plan: Its content.
        every_seconds: The pause between two beats.
    """

    def __init__(self, timeline: Timeline, path: str, plan: StateContent, every_seconds: float) -> None:
        self._timeline = timeline
        self._path = path
        self._plan = plan
        self._every_seconds = every_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="zlayout-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the heartbeat; when this returns, no beat is in progress."""
        self._stopped.set()
        self._thread.join()

    def _beat(self) -> None:
        store = self._timeline.store
        while not self._stopped.wait(self._every_seconds):
            # The next beat makes up for a failed one; a file that was deleted must not be recreated.
            with suppress(StoreError):
                if store.exists(self._path):
                    plan = replace(self._plan, heartbeat_ms=self._timeline.runtime.now_ms())
                    store.put(self._path, plan.to_json())


@dataclass(frozen=True)
class PendingPlan:
    """A pending plan.

    Attributes:
        instant: The time at which it was made.
        content: What is to be done.
    """

    instant: str
    path: str
    content: Mapping[str, Any]


def schedule(
    timeline: Timeline, action: Action, content: Mapping[str, Any], *, replaces: Sequence[PendingPlan] = ()
) -> PendingPlan:
    """Writes a pending plan.

    Args:
        action: The planned action; a clustering is a replacecommit.
        content: What is to be done; a compaction has its ``operations``.
        replaces: Older plans that it replaces, because it takes them into account.
    """
    store = timeline.store
    taken = [timeline.snapshot().last_instant, *(file.instant for file in list_state_files(store))]
    instant, path = create_at_next_instant(
        store,
        max(taken),
        timeline.runtime.now_ms,
        lambda free: state_path(free, action, State.SCHEDULED),
        to_json_bytes(dict(content)),
    )
    withdraw_scheduled(store, replaces)
    return PendingPlan(instant, path, content)


def list_scheduled(store: Store, action: Action) -> list[PendingPlan]:
    """Returns all pending plans of an action, oldest first. A damaged plan has no content."""
    found = []
    for file in list_state_files(store):
        if (file.action, file.state) == (action, State.SCHEDULED):
            try:
                content = from_json_bytes(store.read(file.path), file.path)
            except FileMissingError:
                continue  # another session has just executed it
            except CorruptError:
                content = {}
            found.append(PendingPlan(file.instant, file.path, content))
    return sorted(found, key=lambda plan: plan.path)


def plans_to_execute(store: Store, action: Action, instant: str | None, table: str) -> list[PendingPlan]:
    """Returns the pending plans of an action, or only the one of an instant.

    Raises:
        ConfigError: No pending plan has the instant.
    """
    pending = list_scheduled(store, action)
    if instant is None:
        return pending
    chosen = [each for each in pending if each.instant == instant]
    if not chosen:
        listed = ", ".join(each.instant for each in pending) or "none"
        raise ConfigError(
            [f"plan: {instant!r} is not the instant of a pending {_WORDS[action]} plan; pending plans: {listed}"], table
        )
    return chosen


def unreadable_text(plan: PendingPlan) -> str:
    """Returns a message about a plan that cannot be read."""
    return f"plan {plan.instant} was deleted without being executed, because its file cannot be read; make a new plan"


def withdraw_scheduled(store: Store, plans: Iterable[PendingPlan]) -> None:
    """Deletes plans that have been or cannot be executed."""
    store.delete(each.path for each in plans)
