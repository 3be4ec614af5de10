"""The most that a predicate may cost; conditions beyond it become unknown."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Call,
    Column,
    Compare,
    Expr,
    In,
    IsNotTrue,
    IsTrue,
    Not,
    Op,
    Or,
    Term,
    Unknown,
    if_else,
)
from dbt.adapters.zlayout.predicate.functions import Negate
from dbt.adapters.zlayout.predicate.normal_form import conjuncts, normal_form
from dbt.adapters.zlayout.predicate.remedies import Remedy
from dbt.adapters.zlayout.pruning.cost_limits import LIMITS, Cost, Limits, cost_of, limited

LONG = pa.int64()
X, Y = Column(("x",), LONG), Column(("y",), LONG)
ROOMY = Limits(parts=100, depth=10, calls=3, vectors=1_000)


def less(value: int, operand: Term = X) -> Compare:
    return Compare(Op.LT, operand, pa.scalar(value, LONG))


def called(times: int) -> Term:
    term: Term = X
    for _ in range(times):
        term = Call(Negate(LONG), term)
    return term


def doubling(times: int) -> Expr:
    """A few objects, each of which holds the one before it twice."""
    expr: Expr = less(0)
    for number in range(times):
        expr = if_else(expr, less(number), less(number + 1))
    return expr


def either(values: Sequence[int], op: Op = Op.LT) -> Or:
    return Or(tuple(Compare(op, X, pa.scalar(value, LONG)) for value in values))


def reasons(expr: Expr) -> list[str]:
    return [part.reason for part in conjuncts(expr) if isinstance(part, Unknown)]


def test_the_cost_is_that_of_the_tree() -> None:
    assert cost_of(less(1)) == Cost(parts=1, depth=1, calls=0)
    assert cost_of(And((less(1), Or((less(2), less(3)))))) == Cost(parts=5, depth=3, calls=0)
    assert cost_of(Not(IsTrue(IsNotTrue(less(1))))) == Cost(parts=4, depth=4, calls=0)
    assert cost_of(And(())) == Cost(parts=1, depth=1, calls=0)
    assert cost_of(And((less(1), less(1, called(3)), less(1, called(1))))) == Cost(parts=20, depth=2, calls=3)
    assert cost_of(Unknown("f", "?")) == Cost(parts=1, depth=1, calls=0)


def test_a_chain_of_one_connective_is_one_level_however_it_is_nested() -> None:
    chain: Expr = less(0)
    for number in range(3_000):
        chain = Or((chain, less(number)))
    assert cost_of(chain).depth == 2
    assert cost_of(And((chain, less(1)))).depth == 3


def test_what_is_used_twice_counts_twice_without_being_written_out() -> None:
    assert cost_of(doubling(1)).parts == 9
    assert cost_of(doubling(2)).parts == 25
    assert cost_of(doubling(1_000)).parts > 2**1_000


def test_what_fits_is_the_normal_form() -> None:
    expr = Not(And((less(1), Not(Or((less(2), less(3, Y)))))))
    assert limited(expr, 1) == normal_form(expr)


def test_a_conjunct_that_is_too_large_is_unknown_and_those_beside_it_are_not() -> None:
    expr = And((less(1), doubling(40), less(2, Y)))
    first, large, last = conjuncts(limited(expr, 1))
    assert (first, last) == (less(1), less(2, Y))
    assert large == Unknown("x < 0 …", f"it has more than {LIMITS.parts:,} parts", Remedy.SHORTER_CONDITION)


def test_the_budget_is_one_for_all_conjuncts_and_a_small_one_still_fits_after_a_large_one() -> None:
    large, small = either(range(59)), less(1)
    found = limited(And((large, large, small)), 1, ROOMY)
    assert conjuncts(found) == (large, Unknown("x < 0 …", conjuncts(found)[1].reason, Remedy.SHORTER_CONDITION), small)  # type: ignore[attr-defined]
    assert limited(And((large, small)), 1, ROOMY) == And((large, small))


def test_a_predicate_of_exactly_the_limit_fits_and_one_more_part_does_not() -> None:
    assert reasons(limited(either(range(99)), 10, ROOMY)) == []
    assert reasons(limited(either(range(100)), 10, ROOMY)) == ["it has more than 100 parts"]


def test_the_more_files_the_fewer_parts() -> None:
    expr = either(range(9))
    assert reasons(limited(expr, 100, ROOMY)) == []
    (why_not,) = reasons(limited(expr, 101, ROOMY))
    assert why_not == "with the conditions before it, it is too large to be evaluated on 101 files"
    assert reasons(limited(expr, 0, ROOMY)) == []


def test_deep_conditions_are_unknown() -> None:
    deep: Expr = less(1)
    for number in range(ROOMY.depth - 1):
        deep = And((deep, less(number))) if number % 2 else Or((deep, less(number)))
    assert reasons(limited(deep, 1, ROOMY)) == []
    deeper = (Or if isinstance(deep, And) else And)((deep, less(0)))
    beyond = IsTrue(deeper)
    assert reasons(limited(beyond, 1, ROOMY)) == ["it is nested more than 10 levels deep"]


def test_long_chains_of_functions_are_unknown() -> None:
    assert reasons(limited(less(1, called(3)), 1, ROOMY)) == []
    assert reasons(limited(less(1, called(4)), 1, ROOMY)) == ["it has more than 3 functions around a column"]
    (unknown,) = conjuncts(limited(less(1, called(5_000)), 1))
    assert unknown == Unknown("a condition", "it has more than 100 functions around a column", Remedy.SHORTER_CONDITION)


def test_thousands_of_equalities_become_one_list_on_any_number_of_files() -> None:
    found = limited(either(range(5_000), Op.EQ), 100_000)
    assert found == In(X, pa.array(range(5_000), LONG))


def test_so_many_conjuncts_that_even_looking_at_them_takes_long_are_cut_off() -> None:
    found = conjuncts(limited(And(tuple(either([n, n + 1]) for n in range(200))), 1, ROOMY))
    assert len(found) <= ROOMY.parts + 2
    assert reasons(And(found))[-1] == "there are more than 100 conditions"


@pytest.mark.parametrize("depth", [1, 5, 60])
def test_the_limits_keep_evaluation_within_pythons_stack(depth: int) -> None:
    expr: Expr = less(0)
    for number in range(depth):
        expr = if_else(less(number), less(number + 1), expr)
    assert cost_of(expr).depth == 2 * depth + 2 if depth > 1 else 4
    assert reasons(limited(expr, 10)) == []
