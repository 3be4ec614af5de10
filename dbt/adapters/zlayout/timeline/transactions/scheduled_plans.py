"""Pending plans of clusterings and compactions. They are advice: whoever executes a plan skips its stale parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.zlayout.errors import AlreadyExistsError, ConfigError, CorruptError, FileMissingError
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import Action, State
from dbt.adapters.zlayout.timeline.files.instant import next_instant
from dbt.adapters.zlayout.timeline.files.json_file import from_json_bytes, to_json_bytes
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.pending import list_state_files, state_path

_WORDS = {Action.REPLACECOMMIT: "clustering", Action.COMPACTION: "compaction"}


@dataclass(frozen=True)
class Scheduled:
    """A pending plan.

    Attributes:
        instant: The time at which it was made.
        path: Of its file.
        content: What is to be done.
    """

    instant: str
    path: str
    content: Mapping[str, Any]


def schedule(
    timeline: Timeline, action: Action, content: Mapping[str, Any], *, replaces: Sequence[Scheduled] = ()
) -> Scheduled:
    """Writes a pending plan.

    Args:
        timeline: The table's timeline.
        action: The planned action; a clustering is a replacecommit.
        content: What is to be done; a compaction has its ``operations``.
        replaces: Older plans that it replaces, because it takes them into account.
    """
    store = timeline.store
    taken = [timeline.snapshot().last_instant, *(file.instant for file in list_state_files(store))]
    instant = max(taken)
    while True:
        instant = next_instant(instant, timeline.runtime.now_ms())
        path = state_path(instant, action, State.SCHEDULED)
        try:
            store.create(path, to_json_bytes(dict(content)))
            break
        except AlreadyExistsError:
            continue
    withdraw_scheduled(store, replaces)
    return Scheduled(instant, path, content)


def list_scheduled(store: Store, action: Action) -> list[Scheduled]:
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
            found.append(Scheduled(file.instant, file.path, content))
    return sorted(found, key=lambda plan: plan.path)


def plans_to_execute(store: Store, action: Action, instant: str | None, table: str) -> list[Scheduled]:
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
        raise ConfigError([f"plan: {instant!r} is not a pending {_WORDS[action]}; there are: {listed}"], table)
    return chosen


def unreadable_text(plan: Scheduled) -> str:
    """Says what became of a plan in which nothing can be read."""
    return f"plan {plan.instant} was deleted without being executed, because its file cannot be read; make a new plan"


def withdraw_scheduled(store: Store, plans: Iterable[Scheduled]) -> None:
    """Deletes plans that were executed or cannot be."""
    store.delete(each.path for each in plans)
