"""Tables before the writers come, and the works that they do on them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

from exploration import Actor, Exploration, Faults
from judgement import EndJudge, unreadable
from record_writers import RecordWork
from row_writers import BuildWork, Process, SpanWork, Work
from simulated_store import MUTATIONS, Effect, Killed, LiveScript, World

from dbt.adapters.zlayout.timeline.files.action import Operation

# What two writers may meet in, each tagged with its own letter.
KINDS: dict[str, Work] = {
    "append": Work(Operation.APPEND, "", (4,)),
    "overwrite": Work(Operation.OVERWRITE, "", (4,)),
    "insert_overwrite": Work(Operation.INSERT_OVERWRITE, ""),
    "merge": Work(Operation.MERGE, "", (1, 4)),
    "merge elsewhere": Work(Operation.MERGE, "", (3, 4)),
    "merge apart": Work(Operation.MERGE, "", (3, 5)),
    "delete": Work(Operation.DELETE, "", (2, 4)),
    "clustering": Work(Operation.CLUSTERING, ""),
    "rollback": Work(Operation.ROLLBACK, "", version=0),
    "clean": Work("clean", ""),
    "indexing": Work(Operation.INDEXING, ""),
    "build": BuildWork(Operation.INDEXING, ""),
}

# The same for a merge-on-read table.
RECORD_KINDS: dict[str, Work] = {
    "upsert": RecordWork(Operation.MERGE, "", (1, 4)),
    "upsert elsewhere": RecordWork(Operation.MERGE, "", (6, 5), many=True),
    "delete": RecordWork(Operation.DELETE, "", (2, 4)),
    "compaction": RecordWork(Operation.COMPACTION, ""),
    "clustering": RecordWork(Operation.CLUSTERING, ""),
    "overwrite": RecordWork(Operation.OVERWRITE, "", (4,)),
    "rollback": RecordWork(Operation.ROLLBACK, "", version=0),
    "clean": RecordWork("clean", ""),
    "indexing": RecordWork(Operation.INDEXING, ""),
    "build": BuildWork(Operation.INDEXING, ""),
}


# Batches of two spans of time.
BATCHES = (SpanWork(Operation.MERGE, "", (1, 4)), SpanWork(Operation.MERGE, "", (2, 5)))


@cache
def founded_by_batches() -> World:
    """Return a table of two versions: rows 1 and 2, each in a file of its batch."""
    return _after(Work(Operation.APPEND, "w", (1,)), Work(Operation.APPEND, "v", (2,)))


@cache
def founded() -> World:
    """Return a table of two versions: rows 1 and 2, of which 1 was merged since."""
    return _after(Work(Operation.APPEND, "w", (1, 2)), Work(Operation.MERGE, "x", (1,)))


@cache
def founded_with_logs() -> World:
    """Return a table of three versions: rows 1 and 2 in one file group, with a log for 2, and row 6 in another."""
    logged = RecordWork(Operation.MERGE, "x", (2,))
    return _after(Work(Operation.APPEND, "w", (1, 2)), Work(Operation.APPEND, "v", (6,)), logged)


def _after(*works: Work) -> World:
    world = World()
    for number, work in enumerate(works):
        script = LiveScript(world)
        # Each in a process of its own, and so in file groups of its own.
        outcome = work.run(Process(pid=100 + number, clock_ms=-10_000), script)
        assert outcome.kind == "done", outcome.message
        world = script.world
    return world


def abandoned(world: World, work: Work, mutations: int) -> World:
    """Return the world after a writer died after some of its changes, at the time that all others begin."""
    script = _Dying(world, mutations)
    process = Process(2)
    with suppress(Killed):
        work.run(process, script)
    return replace(script.world, dead=world.dead | {process.pid})


class _Dying(LiveScript):
    def __init__(self, world: World, mutations: int) -> None:
        super().__init__(world)
        self.left = mutations

    def ask(self, effect: Effect) -> Any:
        if effect[0] in MUTATIONS:
            if not self.left:
                raise Killed
            self.left -= 1
        return super().ask(effect)


@cache
def _actor(work: Work, process: Process) -> Actor:
    # What a writer does depends on what it sees alone: what one exploration learned of it holds in all others.
    return Actor(work, process)


def exploration(
    world: World,
    works: Sequence[Work],
    faults: Faults,
    *,
    clock_step_ms: int = 1_000,
    fresh: bool = False,
    **process: bool,
) -> Exploration:
    """Return the schedules of some works, each in a process of its own.

    Args:
        world: Before them.
        works: The works.
        faults: What may go wrong.
        clock_step_ms: How far the clock of each is ahead of the one before it.
        fresh: Whether nothing learned before holds, because the code was changed.
        process: See `Process`.
    """
    make = Actor if fresh else _actor
    actors = [
        make(replace(work, tag=tag), Process(10 + i, clock_ms=clock_step_ms * i, **process))
        for i, (tag, work) in enumerate(zip("ABC", works, strict=False))
    ]
    judge = EndJudge(world, [actor.work for actor in actors], process.get("cloud", False))
    cleaned = any(work.operation == "clean" for work in works)
    return Exploration(world, actors, faults, judge, unreadable, cleaned)
