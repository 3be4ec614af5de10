"""A workload is conditions with weights, and wrong entries are all named."""

import pytest

from dbt.adapters.zlayout.config.workload import WeightedCondition, merged, parse_workload
from dbt.adapters.zlayout.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("a = 1", [("a = 1", 1.0)]),
        (["a = 1", ["b = 2", "3"]], [("a = 1", 1.0), ("b = 2", 3.0)]),
        ({"a = 1": 2}, [("a = 1", 2.0)]),
        ([(" a = 1 ", 1), "a = 1"], [("a = 1", 2.0)]),
    ],
)
def test_conditions_come_as_text_or_pairs(given, read):
    assert [(each.sql, each.weight) for each in parse_workload(given)] == read


def test_weights_of_a_condition_add_up_apart_from_what_it_leaves_out():
    plain, with_part = WeightedCondition("true", 5), WeightedCondition("true", 1, "model", (), ("lower(a)",))
    assert merged([plain, with_part, plain]) == (WeightedCondition("true", 10), with_part)


def test_every_wrong_entry_is_named():
    with pytest.raises(ConfigError) as error:
        parse_workload(["a = 1", ("b", 0), 7, ("c", 1, 2), ""], "s.t")
    assert len(error.value.problems) == 4
    assert "the weight 0 of 'b' is not a number above 0, at most 1e+15" in str(error.value)


@pytest.mark.parametrize("weight", [1e308, "nan", float("inf"), -1, None, True, "many"])
def test_a_weight_whose_sums_are_no_numbers_is_refused(weight):
    # Two of 1e308 would be infinite together, and all shares NaN.
    with pytest.raises(ConfigError, match="of 'b' is not a number above 0"):
        parse_workload([("b", weight), ("b", weight)])


@pytest.mark.parametrize("given", [[], 7, None])
def test_nothing_is_no_workload(given):
    with pytest.raises(ConfigError, match="workload: "):
        parse_workload(given)
