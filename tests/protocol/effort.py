"""How much of the protocol a run explores, and what it explored."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from exploration import Counts, Exploration


def in_full(pairs: Iterable[tuple[str, str]], representative: set[tuple[str, str]]) -> list[Any]:
    """Parameters of a test that explores every order: the representative pairs, and the others as `exhaustive`."""
    pairs = list(pairs)
    assert representative <= set(pairs)
    return [pytest.param(pair, marks=() if pair in representative else pytest.mark.exhaustive) for pair in pairs]


@dataclass
class Effort:
    """How much is explored, and what was.

    Attributes:
        full: Everything, or what a minute allows.
        seed: Of the random walks.
        explored: Counts by what was explored.
    """

    full: bool
    seed: int
    explored: dict[str, Counts] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def everything(self, name: str, exploration: Exploration) -> Counts:
        """Explore every schedule."""
        started = time.perf_counter()
        counts = exploration.everything()
        self._add(name, counts, started)
        return counts

    def walks(self, name: str, exploration: Exploration, rng: random.Random, count: int) -> None:
        """Explore some schedules."""
        started = time.perf_counter()
        for _ in range(count):
            self._add(name, exploration.walk(rng), started)
            started = time.perf_counter()
        exploration.close()

    def everything_or_walks(self, name: str, exploration: Exploration, rng: random.Random, count: int) -> None:
        """Explore every schedule in a full run, else some."""
        if self.full:
            self.everything(name, exploration)
        else:
            self.walks(name, exploration, rng, count)

    def rng(self, *of: object) -> random.Random:
        """Return the randomness of one test, the same whatever other tests run."""
        return random.Random(f"{self.seed} {of}")

    def _add(self, name: str, counts: Counts, started: float) -> None:
        self.explored.setdefault(name, Counts()).add(counts)
        self.seconds[name] = self.seconds.get(name, 0) + time.perf_counter() - started
