"""The protocol explored without Spark: how much of it, with which seed, and what was explored.

`ZLAYOUT_PROTOCOL=full` explores all of it; `ZLAYOUT_PROTOCOL_SEED` repeats the random walks of another run.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The modules beside this one are no package of their own.
sys.path.insert(0, str(Path(__file__).parent))

from effort import Effort
from row_writers import simulated_processes

EFFORT = Effort(
    os.environ.get("ZLAYOUT_PROTOCOL") == "full",
    int(os.environ.get("ZLAYOUT_PROTOCOL_SEED", random.randrange(10**6))),
)


@pytest.fixture(name="effort", scope="session")
def _effort() -> Effort:
    return EFFORT


@pytest.fixture(autouse=True)
def _processes() -> Iterator[None]:
    with simulated_processes():
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if EFFORT.explored:
        terminalreporter.section(f"protocol, ZLAYOUT_PROTOCOL_SEED={EFFORT.seed}")
        for name, counts in EFFORT.explored.items():
            schedules = f"{counts.schedules:,}" if counts.schedules < 10**6 else f"{counts.schedules:.1e}"
            seconds = EFFORT.seconds[name]
            terminalreporter.line(f"{name}: {schedules} schedules over {counts.points:,} points, {seconds:.0f} s")
