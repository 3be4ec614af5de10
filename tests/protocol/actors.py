"""Writers that stop at every effect: real code in threads, of which one at a time runs to its next effect."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from row_writers import Outcome, Process, Work, running
from simulated_store import Effect, Killed, Script

# A step computes and never waits for another writer; the longest take milliseconds.
_LONGEST_STEP_SECONDS = 60


class _Run:
    """One run of a writer's code, which goes through known results and then waits at each effect."""

    def __init__(self, work: Work, process: Process, results: list[Any]) -> None:
        self.effect: Effect | None = None
        self.outcome: Outcome | None = None
        self.script = Script(list(results), self._wait)
        self._released = threading.Semaphore(0)
        self._waits = threading.Semaphore(0)
        self._result: Any = None
        self._killed = False
        self._thread = threading.Thread(target=self._run, args=(work, process), daemon=True)
        self._thread.start()
        self._wait_for_effect()

    def release(self, result: Any) -> None:
        """Give the result of the effect that it waits at, and let it come to the next one."""
        self._result = result
        self._released.release()
        self._wait_for_effect()

    def kill(self) -> None:
        """End the thread; nothing that its code does on the way out has an effect."""
        self._killed = True
        self._released.release()
        self._thread.join()

    def _run(self, work: Work, process: Process) -> None:
        with suppress(Killed):
            self.outcome = work.run(process, self.script)
            self.effect = None
        self._waits.release()

    def _wait_for_effect(self) -> None:
        came = self._waits.acquire(timeout=_LONGEST_STEP_SECONDS)
        assert came, f"a writer waits for what another one holds; its last effect was {self.effect}"

    def _wait(self, effect: Effect) -> Any:
        if not self._killed:
            self.effect = effect
            self._waits.release()
            self._released.acquire()
        if self._killed:
            raise Killed
        running.script = self.script
        return self._result


@dataclass(eq=False)
class Moment:
    """A writer after some results: the effect it asks for next, or how it ended."""

    results: list[Any]
    effect: Effect | None
    outcome: Outcome | None
    after: dict[Any, Moment] = field(default_factory=dict)


class Actor:
    """A writer whose moments are remembered: its code runs once for each memory that it may have."""

    def __init__(self, work: Work, process: Process) -> None:
        self.work = work
        self.process = process
        self.runs = 0
        self._moments: dict[Hashable, Moment] = {}
        self._waiting: dict[Moment, _Run] = {}
        self.start = self._moment(self._new_run([]))

    def next(self, moment: Moment, result: Any) -> Moment:
        """Return the moment after a result."""
        found = moment.after.get(result)
        if found is None:
            run = self._waiting.pop(moment, None) or self._new_run(moment.results)
            run.release(result)
            found = moment.after[result] = self._moment(run)
        return found

    def close(self) -> None:
        """End all threads."""
        for run in self._waiting.values():
            run.kill()
        self._waiting.clear()

    def _new_run(self, results: list[Any]) -> _Run:
        self.runs += 1
        return _Run(self.work, self.process, results)

    def _moment(self, run: _Run) -> Moment:
        memory = run.outcome or run.script.memory()
        found = self._moments.get(memory)
        if found is None:
            found = self._moments[memory] = Moment(list(run.script.results), run.effect, run.outcome)
        if run.outcome is None:
            if found in self._waiting:
                run.kill()
            else:
                self._waiting[found] = run
        return found
