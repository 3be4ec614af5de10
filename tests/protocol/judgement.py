"""What must hold in every world, and in the end: the rows are those of some order in which each writer ran alone."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache

from exploration import Point
from lookup_index import covered, false_claims
from row_writers import Process, Rows, Work, compacted, rows_of
from simulated_store import LiveScript, World

from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.files.naming import INDEX_FOLDER, LOG_FOLDER, is_data_path
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.retention.cleaning import clean
from dbt.adapters.zlayout.timeline.retention.orphans import orphans
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.pending import list_pending
from dbt.adapters.zlayout.timeline.transactions.recovery import recover

_PID = 999
_CLOCK_MS = 5_000


def unreadable(world: World) -> str | None:
    """Tell which files a reader of this very moment would miss."""
    files = world.content()
    live: set[str] = set()
    index: set[str] = set()
    for path in sorted(path for path in files if path.startswith(LOG_FOLDER)):
        adds, removes, index = _entry(files[path])
        live = (live - removes) | adds
    missing = sorted((live | index) - files.keys())
    if missing:
        return f"the newest version lists {missing}, which is not there"
    return false_claims(world, sorted(path for path in index if path.endswith(".lookup")))


@cache
def _entry(content: bytes) -> tuple[frozenset[str], frozenset[str], set[str]]:
    entry = json.loads(content)
    slices = {path for paths in entry["index"].values() for path in paths}
    return frozenset(entry["adds"]["path"]), frozenset(entry["removes"]), slices


class EndJudge:
    """Judges points where all writers have ended.

    Args:
        world: Before all writers.
        works: What they did.
        cloud: Whether what dead writers sent may still arrive.
    """

    def __init__(self, world: World, works: Sequence[Work], cloud: bool) -> None:
        self.works = works
        self.process = Process(_PID, _CLOCK_MS, cloud=cloud)
        timeline = self.process.timeline(LiveScript(world))
        latest = timeline.latest_version()
        self.commits_before = 0 if latest is None else latest + 1
        self.versions: list[Rows] = [
            rows_of(timeline.store, timeline.snapshot(version))
            if all(timeline.store.exists(path) for path in timeline.snapshot(version).files["path"].to_pylist())
            else ()
            for version in range(self.commits_before)
        ]
        self._after: dict[World, tuple[Rows, int] | str] = {}

    def __call__(self, point: Point) -> str | None:
        outcomes = point.outcomes()
        failed = [outcome.message for outcome in outcomes if outcome.kind == "failed"]
        if failed:
            return f"a writer failed with {failed[0]}"
        if not point.world.dead and not point.world.hours and all(outcome.kind == "conflict" for outcome in outcomes):
            return "every writer failed: " + "; ".join(outcome.message for outcome in outcomes)
        for i, work in enumerate(self.works):
            others = [
                self.works[j] for j, outcome in enumerate(outcomes) if outcome.kind in {"done", "crashed"} and j != i
            ]
            beaten = work.changes_rows and outcomes[i].kind == "conflict" and not point.world.hours
            if beaten and not any(other.changes_rows for other in others):
                return f"{work} failed because of work that changes no rows: {outcomes[i].message}"
        if point.world not in self._after:
            self._after[point.world] = _settled(point.world, self.process)
        settled = self._after[point.world]
        if isinstance(settled, str):
            return settled
        rows, commits = settled
        landed = [i for i, outcome in enumerate(outcomes) if outcome.kind == "done"]
        maybe = [i for i, outcome in enumerate(outcomes) if outcome.kind == "crashed"]
        for count in range(len(maybe) + 1):
            for more in itertools.combinations(maybe, count):
                if self._explains(rows, commits - self.commits_before, [*landed, *more], point.earlier):
                    return None
        shown = ", ".join(f"{work} {outcome.kind}" for work, outcome in zip(self.works, outcomes, strict=True))
        return f"no order of ({shown}) gives {list(rows)} with {commits - self.commits_before} commits"

    def _explains(self, rows: Rows, commits: int, landed: Sequence[int], earlier: Iterable[tuple[int, int]]) -> bool:
        if commits != sum(self.works[i].commits_once for i in landed):
            return False
        for order in itertools.permutations(landed):
            if any(i in order and j in order and order.index(i) > order.index(j) for i, j in earlier):
                continue
            after = self.versions[-1] if self.versions else ()
            for i in order:
                after = self.works[i].alone(after, self.versions.__getitem__)
            if Counter(after) == Counter(rows):
                return True
        return False


def _settled(world: World, process: Process) -> tuple[Rows, int] | str:
    """Recover and clean; return the rows and the number of commits, or what is wrong."""
    script = LiveScript(replace(world, hours=world.hours + 1))
    timeline = process.timeline(script)
    store = timeline.store
    recover(timeline)
    before = script.world
    for effect in world.late:
        script.ask(effect)
    if script.world != before:
        return "an entry of a dead writer arrived after recovery and found its version free"
    if timeline.latest_version() is None:
        left = [path for path in script.world.content() if is_data_path(path)]
        return f"there is no version, but {left} is left" if left else ((), 0)
    rows = rows_of(store, timeline.snapshot())
    checks: dict[str, Callable[[], object]] = {
        "pending": lambda: list_pending(store),
        "changed by a compaction": lambda: compacted(store, timeline.snapshot()) != rows,
        "orphans": lambda: [file.path for file in orphans(timeline)],
        "forgotten by the index": lambda: _forgotten(timeline),
        "not rising": lambda: _instants_wrong(timeline.entries(0, timeline.snapshot().version)),
    }
    for name, check in checks.items():
        if found := check():
            return f"after recovery, {name}: {found}"
    clean(timeline, 1, 0, timeline.runtime.now_ms() + 1)
    snapshot = timeline.snapshot()
    if rows_of(store, snapshot) != rows:
        return "cleaning changed the rows"
    listed = {*snapshot.files["path"].to_pylist(), *(path for paths in snapshot.index.values() for path in paths)}
    stored = {path for path in script.world.content() if is_data_path(path) or path.startswith(INDEX_FOLDER)}
    if stored != listed:
        return f"after cleaning, {sorted(stored - listed)} is left and {sorted(listed - stored)} is missing"
    entries = timeline.entries(0, snapshot.version)
    return rows, sum(entry.operation != Operation.RECOVERY and "step" not in entry.summary for entry in entries)


def _forgotten(timeline: Timeline) -> set[str]:
    """Return the files that the index knew at some version, and no longer knows at a later one that has them."""
    last = timeline.snapshot()
    for version in range(last.version):
        before, after = timeline.snapshot(version), timeline.snapshot(version + 1)
        if after.operation in {Operation.OVERWRITE, Operation.ROLLBACK}:
            continue
        known, still = (covered(timeline.store, each) for each in (before, after))
        if lost := known.intersection(after.files["path"].to_pylist()) - still:
            return lost
    return set()


def _instants_wrong(entries: Sequence[Commit]) -> list[str]:
    instants = [entry.instant for entry in entries]
    highest = [entry.last_instant for entry in entries]
    twice = [instant for instant, count in Counter(instants).items() if count > 1]
    return twice + [instant for before, instant in itertools.pairwise(highest) if instant < before]
