"""Two and four processes write at once, and one of them may die: the rows are those of some serial order."""

import random
from itertools import permutations

import fault_actions
import pytest
from fault_checks import check_whole
from fault_rows import Rows
from fault_runs import Runs

FULL = 240
ACTIONS = {
    "kept": (
        "append",
        "append_many",
        "merge",
        "merge",
        "delete_insert",
        "replace_where",
        "delete",
        "replace",
        "rollback",
        "clean",
        "cluster",
        "build_index",
        "build_index",
    ),
    "partitioned": (
        "append",
        "append_many",
        "merge_partitioned",
        "delete_insert",
        "overwrite",
        "delete",
        "clean",
        "cluster_pending",
        "build_index",
    ),
    "records": (
        "upsert",
        "upsert",
        "upsert",
        "delete_records",
        "compact",
        "compact_pending",
        "compact_logs",
        "cluster",
        "build_index",
    ),
}


def legal(before: Rows, done: list[tuple[str, int]], maybe: list[tuple[str, int]]) -> list[Rows]:
    """The outcomes of all orders of what was committed, with and without what may have been."""
    outcomes: list[Rows] = []
    for chosen in (done, done + maybe) if maybe else (done,):
        for order in permutations(chosen):
            rows = before
            for name, seed in order:
                rows = fault_actions.by_name(name).model(rows, seed)
            if rows not in outcomes:
                outcomes.append(rows)
    return outcomes


def schedule(bench, seed: int) -> str:
    """One schedule and its checks."""
    rng = random.Random(seed)
    template = rng.choice(list(ACTIONS))
    actions = [(rng.choice(ACTIONS[template]), rng.randrange(10**6)) for _ in range(rng.choice((2, 4)))]
    dies_at = rng.choice((0, 0, rng.randrange(1, 40)))
    bench.restore(template)
    answers = bench.write(bench.jobs(actions, template, at=dies_at, fault="kill"))
    bench.forget_orders()
    told = ", ".join(f"{name} {_outcome(answer)}" for (name, _), answer in zip(actions, answers, strict=True))
    for (name, _), answer in zip(actions, answers, strict=True):
        # A version that is gone cannot come back; all else that fails has to be a conflict.
        allowed = ("ConflictError", "VersionNotFoundError") if name == "rollback" else ("ConflictError",)
        assert answer.get("error") in (None, *allowed), f"{told}\n{answer['trace']}"
    ended = list(zip(actions, answers, strict=True))
    done = [action for action, answer in ended if "version" in answer]
    maybe = [action for action, answer in ended if "killed" in answer]
    outcomes = legal(bench.before[template], done, maybe)
    last = fault_actions.by_name("upsert" if template == "records" else "append")
    last.run(bench.spark, bench.name(template), seed)
    try:
        check_whole(bench, template, [last.model(rows, seed) for rows in outcomes])
    except AssertionError as error:
        raise AssertionError(f"{template}: {told}") from error
    return f"{template}: {told}"


def _outcome(answer: dict) -> str:
    return f"version {answer['version']}" if "version" in answer else answer.get("error") or "killed"


@pytest.mark.slow
def test_writers_at_once_give_the_rows_of_a_serial_order(bench, seed, request):
    runs = Runs(request.config, "schedule")
    rng = random.Random(seed)
    seeds = range(FULL) if runs.full else rng.sample(range(10**6), runs.count(few=3, sample=8))
    runs.each([(each,) for each in seeds], lambda each: schedule(bench, each))
    runs.check()
