import numpy as np
import pytest

from dbt.adapters.zlayout.pruning.statistics.verdict import Match, all_of, any_of

ALL, NONE = np.array([True]), np.array([False])
USABLE = Match(ALL, NONE)


def useless(why):
    return Match(ALL, NONE, why)


@pytest.mark.parametrize(
    ("parts", "by_and", "by_or"),
    [
        ([USABLE, USABLE], None, None),
        ([USABLE, useless("a")], None, "a"),
        ([useless("a"), USABLE], None, "a"),
        ([useless("a"), useless("b")], "a", "a"),
    ],
)
def test_a_combination_is_useless_by_and_if_all_parts_are_and_by_or_if_one_is(parts, by_and, by_or):
    assert all_of(parts).why_not == by_and
    assert any_of(parts).why_not == by_or
