"""How often a run is repeated after a conflict."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.materialize.attempts import Attempts
from dbt.adapters.zlayout.adapter.materialize.materialization import MOST_REPEATS, until_committed
from dbt.adapters.zlayout.errors import CommittedError, ConflictError, WriteError


class Writes:
    """Fails with these errors, one for each call, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.calls = list(errors), 0

    def __call__(self) -> Any:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "the commit"


def test_a_conflict_runs_the_query_again_and_says_so() -> None:
    told: list[str] = []
    waits = Writes()
    writes = Writes(ConflictError("file f, instant 7"), ConflictError("again"))
    assert until_committed(writes, told.append, waits, Attempts()) == "the commit"
    assert (writes.calls, waits.calls) == (3, 2)
    assert "file f, instant 7" in told[0]
    assert [line.endswith(f"({number} of 3)") for number, line in enumerate(told, 1)] == [True, True]


def test_a_repeat_waits_for_other_processes_when_no_other_attempt_of_this_one_runs() -> None:
    attempts = Attempts()

    def wait() -> None:
        assert attempts._alone

    assert until_committed(Writes(ConflictError("file f")), lambda _: None, wait, attempts) == "the commit"


def test_the_line_of_a_repeat_does_not_ask_for_another_run() -> None:
    told: list[str] = []
    conflict = ConflictError("merge 7 began at version 3, but merge 8 made version 4", "run the model again")
    assert str(conflict) == "merge 7 began at version 3, but merge 8 made version 4: run the model again"
    until_committed(Writes(conflict), told.append, Writes(), Attempts())
    assert told[0].startswith(
        "another writer committed first (merge 7 began at version 3, but merge 8 made version 4);"
    )


def test_the_last_conflict_is_raised() -> None:
    writes = Writes(*(ConflictError(str(number)) for number in range(9)))
    with pytest.raises(ConflictError, match=str(MOST_REPEATS)):
        until_committed(writes, lambda _: None, Writes(), Attempts())
    assert writes.calls == MOST_REPEATS + 1


def test_a_query_does_not_run_again_after_its_commit() -> None:
    writes = Writes(CommittedError(3, "its manifest is not written", "do not write it again"))
    with pytest.raises(CommittedError, match=r"^version 3 is committed, but "):
        until_committed(writes, lambda _: None, Writes(), Attempts())
    assert writes.calls == 1


def test_any_other_error_is_raised_at_once() -> None:
    writes = Writes(WriteError("no luck"))
    with pytest.raises(WriteError):
        until_committed(writes, lambda _: None, Writes(), Attempts())
    assert writes.calls == 1
