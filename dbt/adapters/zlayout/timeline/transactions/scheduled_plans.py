"""Plans that wait on the timeline for a job to carry them out. They are advice: what is stale in one is passed over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.zlayout.errors import AlreadyExistsError, CorruptError, FileMissingError
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import Action, State
from dbt.adapters.zlayout.timeline.files.instant import is_instant, next_instant
from dbt.adapters.zlayout.timeline.files.json_file import from_json_bytes, to_json_bytes
from dbt.adapters.zlayout.timeline.files.naming import TIMELINE_FOLDER
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.pending import list_state_files

_SUFFIXES = {Action.REPLACECOMMIT: "replacecommit.scheduled", Action.COMPACTION: "compaction.requested"}


@dataclass(frozen=True)
class Scheduled:
    """A plan that waits.

    Attributes:
        instant: When it was made.
        path: Of its file.
        content: What is to be done.
    """

    instant: str
    path: str
    content: Mapping[str, Any]


def schedule(timeline: Timeline, action: Action, content: Mapping[str, Any], *, replaces: bool = False) -> Scheduled:
    """Writes a plan.

    Args:
        timeline: The table's timeline.
        action: What it plans: a clustering is a replacecommit.
        content: What is to be done; that of a compaction says its ``operations``.
        replaces: Whether it takes the place of older ones, since it was made knowing what they knew.
    """
    store = timeline.store
    older = [each.path for each in list_scheduled(store, action)] if replaces else []
    taken = [timeline.snapshot().last_instant, *(file.instant for file in list_state_files(store))]
    instant = max(taken)
    while True:
        instant = next_instant(instant, timeline.runtime.now_ms())
        path = f"{TIMELINE_FOLDER}/{instant}.{_SUFFIXES[action]}"
        try:
            store.create(path, to_json_bytes(dict(content)))
            break
        except AlreadyExistsError:
            continue
    store.delete(each for each in older if each != path)
    return Scheduled(instant, path, content)


def list_scheduled(store: Store, action: Action) -> list[Scheduled]:
    """All plans of an action that wait, oldest first; one that cannot be read holds nothing."""
    if action is Action.COMPACTION:
        # A compaction that has begun has a file of such a name too.
        paths = [file.path for file in list_state_files(store) if file.state is State.SCHEDULED]
    else:
        paths = [file.path for file in store.list(TIMELINE_FOLDER) if file.path.endswith(_SUFFIXES[action])]
        paths = [path for path in paths if is_instant(path.rpartition("/")[2].partition(".")[0])]
    found = []
    for path in sorted(paths):
        try:
            content = from_json_bytes(store.read(path), path)
        except (FileMissingError, CorruptError):
            content = {}
        found.append(Scheduled(path.rpartition("/")[2][:17], path, content))
    return found


def withdraw_scheduled(store: Store, plans: Iterable[Scheduled]) -> None:
    """Deletes plans that are carried out, or not worth it any more."""
    store.delete(each.path for each in plans)
