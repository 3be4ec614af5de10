"""A writer is killed before one of its changes: the table is at the version before or after, and the next one finishes or removes its work."""

import random

import fault_actions
from fault_checks import check_as_found, check_next_writer
from fault_points import changes
from fault_runs import Runs


def kill(bench, name: str, number: int, seed: int) -> str | None:
    """One kill and its checks; None when the writer came to its end before it."""
    action = fault_actions.by_name(name)
    bench.restore(action.template)
    (answer,) = bench.write(bench.jobs([(name, seed)], action.template, at=number, fault="kill"))
    done = changes(bench.order_file)
    bench.forget_orders()
    if "killed" not in answer:
        assert "error" not in answer, answer
        return None
    before = bench.before[action.template]
    after = action.model(before if before is not None else fault_actions.Rows(), seed)
    check_as_found(bench, action, after)
    return f"{done[-1]}, then {check_next_writer(bench, action, after, seed)}"


def test_a_killed_writer_leaves_a_whole_version(bench, seed, request):
    rng = random.Random(seed)
    runs = Runs(request.config, "kill")
    # In a sample every action is killed once, and of a few actions each.
    every = len(fault_actions.ACTIONS)
    actions = fault_actions.ACTIONS if runs.full else rng.sample(fault_actions.ACTIONS, runs.count(few=6, sample=every))
    kills = []
    for action in actions:
        points = [(action.name, number) for number in range(1, 1 + len(bench.dry(action.name, action.template)))]
        kills += points if runs.full else [rng.choice(points)]
    runs.each(kills, lambda name, number: kill(bench, name, number, rng.randrange(10**6)))
    runs.check()
