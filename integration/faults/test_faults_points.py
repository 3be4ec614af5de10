"""The changes that each action makes, in order: a new one is seen here, and every kill then meets it too."""

from pathlib import Path

import fault_actions
import pytest
from fault_points import in_order

EXPECTED = Path(__file__).with_name("points")
# One action of each kind of commit; the others are like one of them.
USUAL = {"create", "append", "merge", "rollback", "clean", "cluster", "upsert", "compact", "drop"}
NAMES = [
    pytest.param(action.name, marks=() if action.name in USUAL else pytest.mark.exhaustive)
    for action in fault_actions.ACTIONS
]


@pytest.mark.parametrize("name", NAMES)
def test_an_action_makes_the_changes_that_are_written_down(bench, name):
    action = fault_actions.by_name(name)
    found = in_order(bench.dry(name, action.template))
    expected = (EXPECTED / f"{name}.txt").read_text().splitlines()
    assert found == expected, f"points/{name}.txt should be, if this is meant:\n" + "\n".join(found)


@pytest.mark.exhaustive
def test_without_a_fault_the_rows_are_as_modelled(bench):
    for action in fault_actions.ACTIONS:
        bench.restore(action.template)
        (answer,) = bench.write(bench.jobs([(action.name, 5)], action.template))
        assert "version" in answer, answer
        before = bench.before[action.template]
        wanted = action.model(before if before is not None else fault_actions.Rows(), 5)
        if action.name == "rename":
            assert bench.named("plain_new") == wanted
            assert bench.named("plain") is None
        else:
            assert bench.named(action.template) == wanted, action.name
