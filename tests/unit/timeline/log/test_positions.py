"""Positions: how far a table has taken the changes of others."""

import pytest

from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.timeline.log.positions import (
    ChangesTaken,
    Position,
    positions_of,
    with_changes_taken,
    with_positions,
)

V3, V5, OTHER = Position("id", 3, "20260101000000000"), Position("id", 5, "20260102000000000"), Position("b", 1, "1")


def test_a_write_moves_its_positions_and_keeps_the_others():
    before = with_positions({"rows": 7}, {"s.orders": V3, "s.others": OTHER})
    after = with_changes_taken(before, [ChangesTaken("s.orders", V3, V5, True)])
    assert positions_of(after) == {"s.orders": V5, "s.others": OTHER}
    assert after["rows"] == 7
    assert with_changes_taken(after, []) == after
    assert with_changes_taken({"rows": 7}, []) == {"rows": 7}


@pytest.mark.parametrize("since", [None, V5, OTHER])
def test_changes_that_another_run_took_are_not_taken_again(since):
    before = with_positions({}, {"s.orders": V3})
    with pytest.raises(WriteError, match=r"s\.mine: another run took the changes of s\.orders"):
        with_changes_taken(before, [ChangesTaken("s.orders", since, V5, True)], "s.mine")


@pytest.mark.parametrize("damaged", [None, 7, [], {"s.orders": None}, {"s.orders": {"table": "id", "version": "3"}}])
def test_what_is_no_position_is_as_if_there_were_none(damaged):
    assert positions_of({"changes_taken": damaged}) == {}
