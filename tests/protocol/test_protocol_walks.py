"""Three writers, by random walks."""

from __future__ import annotations

import pytest
from effort import Effort
from exploration import Faults
from scenes import KINDS, exploration, founded

SAMPLED_TRIPLES = 20
FULL_TRIPLES = 500


@pytest.mark.parametrize("crashes", [0, 2])
def test_three_writers_leave_a_serial_order(effort: Effort, crashes: int) -> None:
    rng = effort.rng("three", crashes)
    for _ in range(FULL_TRIPLES if effort.full else SAMPLED_TRIPLES):
        works = [KINDS[name] for name in rng.choices(list(KINDS), k=3)]
        # Clocks that agree, that differ, and that go against the order in which the writers begin.
        step_ms = rng.choice([1, 1_000, -1_000])
        three = exploration(founded(), works, Faults(crashes=crashes), clock_step_ms=step_ms)
        effort.walks("three writers", three, rng, 4)
