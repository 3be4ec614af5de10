"""Many runs of one kind: their counts, what failed, and what a full run has done before."""

import json
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path


class Runs:
    """The runs of one test.

    Args:
        config: Of pytest; see the options in ``conftest``.
        kind: What is run.
    """

    _begun = time.monotonic()

    def __init__(self, config, kind: str) -> None:
        self._effort = config.getoption("--faults")
        self.full = self._effort == "full"
        self._kind = kind
        self._until = self._begun + 60 * config.getoption("--faults-minutes")
        done = config.getoption("--faults-done")
        self._file = Path(done) if done and self.full else None
        self._done: dict[str, str | None] = {}
        self._failed: list[str] = []
        self._left = 0
        if self._file is not None and self._file.exists():
            for line in self._file.read_text().splitlines():
                key, outcome = json.loads(line)
                self._done[key] = outcome

    def count(self, few: int, sample: int) -> int:
        """How many runs a test makes unless it makes all."""
        return few if self._effort == "few" else sample

    def each(self, wanted: Iterable[tuple], run: Callable[..., str | None]) -> None:
        """Runs what has not been run yet; a failure does not stop the others.

        Args:
            wanted: Arguments of each run.
            run: Returns what happened, None where nothing did; raises where something is wrong.
        """
        for arguments in wanted:
            key = f"{self._kind} {' '.join(map(str, arguments))}"
            if key in self._done and self._file is not None:
                continue
            if time.monotonic() > self._until:
                self._left += 1
                continue
            started = time.monotonic()
            try:
                outcome = run(*arguments)
            except Exception:
                self._failed.append(f"{key}\n{traceback.format_exc()}")
                print(f"{key}: FAILED", flush=True)
                continue
            self._done[key] = outcome
            print(f"{key}: {outcome} ({time.monotonic() - started:.1f} s)", flush=True)
            if self._file is not None:
                with self._file.open("a") as file:
                    file.write(json.dumps([key, outcome]) + "\n")

    def check(self) -> None:
        """Fails if a run did; tells the counts."""
        mine = [outcome for key, outcome in self._done.items() if key.startswith(f"{self._kind} ")]
        happened = sum(outcome is not None for outcome in mine)
        print(
            f"{self._kind}: {happened} done, {len(mine) - happened} without it, {len(self._failed)} failed, {self._left} left"
        )
        assert not self._failed, f"{len(self._failed)} of {len(mine) + len(self._failed)}:\n" + "\n".join(self._failed)
