"""Every interleaving of some writers' effects, up to those that nobody could tell apart.

Two points of schedules with the same world and the same results seen by each writer have the same future, so each is
explored once. Where a writer's next effect commutes with all that others may still do (it reads what never changes),
only that effect is released there: the other orders lead to the same points.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from actors import Actor, Moment
from row_writers import Outcome
from simulated_store import MUTATIONS, Effect, World

from dbt.adapters.zlayout.timeline.files.naming import CHECKPOINT_FOLDER, LOG_FOLDER

CRASHED = Outcome("crashed")
_FAULT_RATE = 0.05


@dataclass(frozen=True)
class Point:
    """A point of a schedule.

    Attributes:
        world: The world.
        moments: Of each actor; None once it crashed.
        earlier: Pairs (i, j) of actors: i had ended before j began.
    """

    world: World
    moments: tuple[Moment | None, ...]
    earlier: frozenset[tuple[int, int]] = frozenset()

    def outcomes(self) -> tuple[Outcome, ...]:
        return tuple(CRASHED if moment is None else moment.outcome or CRASHED for moment in self.moments)


@dataclass(frozen=True)
class Faults:
    """What may go wrong in a schedule.

    Attributes:
        crashes: At most so many writers end at one of their effects.
        hours: At most so often an hour goes by without a sign of any writer, dead or not.
    """

    crashes: int = 0
    hours: int = 0


@dataclass
class Counts:
    """What was explored."""

    points: int = 0
    ends: int = 0
    schedules: int = 0
    outcomes: dict[tuple[str, ...], int] = field(default_factory=dict)

    def add(self, other: Counts) -> None:
        self.points += other.points
        self.ends += other.ends
        self.schedules += other.schedules
        for kinds, count in other.outcomes.items():
            self.outcomes[kinds] = self.outcomes.get(kinds, 0) + count


@dataclass(frozen=True)
class Step:
    """One step of a schedule: the 'effect' of an actor, its 'crash', an 'hour', or a 'late' entry of a dead writer."""

    kind: str
    actor: int = -1


Judge = Callable[[Point], str | None]


class Exploration:
    """All points that some writers can reach.

    Args:
        world: Before the first effect.
        actors: The writers.
        faults: What may go wrong.
        judge_end: Returns what is wrong with a point where all writers have ended.
        judge_world: Returns what is wrong with a world, wherever it comes up.
        cleaned: Whether a writer may delete data files of others.
    """

    def __init__(
        self,
        world: World,
        actors: Sequence[Actor],
        faults: Faults,
        judge_end: Judge,
        judge_world: Callable[[World], str | None],
        cleaned: bool,
    ) -> None:
        self.actors = actors
        self.faults = faults
        self.judge_end = judge_end
        self.judge_world = judge_world
        self.cleaned = cleaned
        self._applied: dict[tuple[World, Effect], tuple[World, Any]] = {}
        self._worlds: dict[World, World] = {}
        self._judged: set[World] = set()
        self.start = self._settled(Point(world, tuple(actor.start for actor in actors)))

    def everything(self, limit: int | None = None) -> Counts:
        """Explore every point.

        Raises:
            AssertionError: With the schedule that leads to a wrong point.
        """
        came_from: dict[Point, tuple[Point, Step] | None] = {self.start: None}
        followers: dict[Point, list[Point]] = {}
        stack = [self.start]
        while stack:
            point = stack.pop()
            steps = self.steps(point)
            followers[point] = [following for _, following in steps]
            self._judge(point, bool(steps), partial(_schedule, came_from, point, self.actors))
            for step, following in steps:
                if following not in came_from:
                    came_from[following] = (point, step)
                    stack.append(following)
            assert limit is None or len(came_from) <= limit, f"more than {limit} points"
        self.close()
        counts = Counts(points=len(came_from), schedules=_paths(self.start, followers))
        for point in came_from:
            if not followers[point]:
                _count(counts, point)
        return counts

    def close(self) -> None:
        """End the writers' threads."""
        for actor in self.actors:
            actor.close()

    def walk(self, rng: random.Random) -> Counts:
        """Follow one schedule, chosen at random.

        Raises:
            AssertionError: With the schedule, where it leads to a wrong point.
        """
        counts = Counts(schedules=1)
        taken: list[tuple[Point, Step]] = []
        point = self.start
        while True:
            steps = self.steps(point)
            counts.points += 1
            self._judge(point, bool(steps), lambda: [_shown(at, step, self.actors) for at, step in taken])
            if not steps:
                break
            # Something may go wrong at every effect: chosen as often as an effect, it would always do so at the first.
            effects = [each for each in steps if each[0].kind == "effect"]
            faults = [each for each in steps if each[0].kind != "effect"]
            step, following = rng.choice(faults if faults and (not effects or rng.random() < _FAULT_RATE) else effects)
            taken.append((point, step))
            point = following
        _count(counts, point)
        return counts

    def steps(self, point: Point) -> list[tuple[Step, Point]]:
        """Return what may happen next, and where it leads."""
        running = [i for i, moment in enumerate(point.moments) if moment is not None and moment.effect is not None]
        found = [(Step("effect", i), self._settled(self._release(point, i))) for i in running]
        if len(point.world.dead) < self.faults.crashes:
            # Between two changes of the world a crash is the same to all others wherever it is.
            found += [(Step("crash", i), self._crash(point, i)) for i in running if _changes_world(point.moments[i])]
        for effect in point.world.late:
            world, _ = point.world.apply(effect)
            world = self._same(replace(world, late=tuple(each for each in world.late if each != effect)))
            found.append((Step("late"), self._settled(replace(point, world=world))))
        if running and point.world.hours < self.faults.hours:
            world = self._same(replace(point.world, hours=point.world.hours + 1))
            found.append((Step("hour"), self._settled(replace(point, world=world))))
        return found

    def _settled(self, point: Point) -> Point:
        i = 0
        while i < len(point.moments):
            if self._commutes(point, i):
                point = self._release(point, i)
                i = 0
            else:
                i += 1
        return point

    def _crash(self, point: Point, i: int) -> Point:
        moment, process = point.moments[i], self.actors[i].process
        assert moment is not None
        assert moment.effect is not None
        late = point.world.late
        if process.cloud and moment.effect[1].startswith(LOG_FOLDER):
            late = (*late, moment.effect)
        world = self._same(replace(point.world, dead=point.world.dead | {process.pid}, late=late))
        moments = (*point.moments[:i], None, *point.moments[i + 1 :])
        return self._settled(Point(world, moments, point.earlier))

    def _release(self, point: Point, i: int) -> Point:
        moment = point.moments[i]
        assert moment is not None
        assert moment.effect is not None
        key = (point.world, moment.effect)
        if key not in self._applied:
            world, result = point.world.apply(moment.effect)
            self._applied[key] = (self._same(world), result)
        world, result = self._applied[key]
        following = self.actors[i].next(moment, result)
        earlier = point.earlier
        if following.outcome is not None:
            unborn = (j for j, other in enumerate(point.moments) if other is self.actors[j].start and j != i)
            earlier = earlier | {(i, j) for j in unborn}
        return Point(world, (*point.moments[:i], following, *point.moments[i + 1 :]), earlier)

    def _same(self, world: World) -> World:
        return self._worlds.setdefault(world, world)

    def _commutes(self, point: Point, i: int) -> bool:
        moment = point.moments[i]
        if moment is None or moment.effect is None:
            return False
        kind, path, *_ = (*moment.effect, "")
        if kind in {"sleep", "gone", "now"}:
            return kind == "sleep" or not (self.faults.crashes if kind == "gone" else self.faults.hours)
        if moment is self.actors[i].start:
            return False  # whether one ended before another began is judged in the end
        if path.startswith(CHECKPOINT_FOLDER):
            return True  # no writer here comes to a version that has one
        if kind in {"read", "stat", "exists"} and path in point.world.paths:
            return path.startswith(LOG_FOLDER) or (path.endswith((".parquet", ".lookup")) and not self.cleaned)
        return False

    def _judge(self, point: Point, goes_on: bool, schedule: Callable[[], Sequence[str]]) -> None:
        wrong = None
        if point.world not in self._judged:
            self._judged.add(point.world)
            wrong = self.judge_world(point.world)
        if wrong is None and not goes_on:
            wrong = self.judge_end(point)
        if wrong is not None:
            raise AssertionError("\n".join([wrong, "after these effects, without reads that commute:", *schedule()]))


def _count(counts: Counts, point: Point) -> None:
    counts.ends += 1
    kinds = tuple(outcome.kind for outcome in point.outcomes())
    counts.outcomes[kinds] = counts.outcomes.get(kinds, 0) + 1


def _schedule(came_from: dict[Point, tuple[Point, Step] | None], point: Point, actors: Sequence[Actor]) -> list[str]:
    shown: list[str] = []
    before = came_from[point]
    while before is not None:
        point, step = before
        shown.append(_shown(point, step, actors))
        before = came_from[point]
    return shown[::-1]


def _changes_world(moment: Moment | None) -> bool:
    return moment is not None and moment.effect is not None and moment.effect[0] in MUTATIONS


def _shown(point: Point, step: Step, actors: Sequence[Actor]) -> str:
    if step.actor < 0:
        return "an hour passes" if step.kind == "hour" else "a log entry of a dead writer arrives"
    moment = point.moments[step.actor]
    assert moment is not None
    assert moment.effect is not None
    effect = " ".join(str(part) for part in moment.effect[:2])
    crash = "crashes before " if step.kind == "crash" else ""
    return f"{step.actor} {actors[step.actor].work}: {crash}{effect}"


def _paths(start: Point, followers: dict[Point, list[Point]]) -> int:
    """Return the number of different schedules through the graph, without those that wait in a circle."""
    paths: dict[Point, int] = {}
    entered: set[Point] = set()
    stack = [start]
    while stack:
        point = stack[-1]
        if point not in entered:
            entered.add(point)
            stack += [following for following in followers[point] if following not in entered]
            continue
        stack.pop()
        if point not in paths:
            paths[point] = sum(paths.get(following, 0) for following in followers[point]) if followers[point] else 1
    return paths[start]
