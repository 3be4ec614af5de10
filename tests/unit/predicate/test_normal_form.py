"""NOT pushed into the leaves, folded constants and split conjunctions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Column,
    Compare,
    Constant,
    Expr,
    In,
    IsNotNull,
    IsNotTrue,
    IsNull,
    IsTrue,
    Not,
    NotIn,
    NotStartsWith,
    Op,
    Or,
    StartsWith,
    Unknown,
    columns_of,
    if_else,
)
from dbt.adapters.zlayout.predicate.normal_form import conjuncts, normal_form, push_not, simplify

X = Column(("x",), pa.int32())
S = Column(("person", "name"), pa.string())
TRUE, FALSE, NULL = Constant(True), Constant(False), Constant(None)


def x(op: Op, value: int | None = 1) -> Compare:
    return Compare(op, X, pa.scalar(value, pa.int32()))


LIST = pa.array([1, 2], pa.int32())
PREFIX = pa.scalar("ab")


@pytest.mark.parametrize(
    ("leaf", "opposite"),
    [
        (x(Op.EQ), x(Op.NE)),
        (x(Op.LT), x(Op.GE)),
        (x(Op.GT), x(Op.LE)),
        (x(Op.EQ_NULL_SAFE), x(Op.NE_NULL_SAFE)),
        (In(X, LIST, True), NotIn(X, LIST, True)),
        (IsNull(X), IsNotNull(X)),
        (StartsWith(S, PREFIX), NotStartsWith(S, PREFIX)),
        (TRUE, FALSE),
        (NULL, NULL),
    ],
)
def test_not_of_a_leaf_is_its_opposite_both_ways(leaf: Expr, opposite: Expr) -> None:
    assert push_not(Not(leaf)) == opposite
    assert push_not(Not(opposite)) == leaf
    assert push_not(Not(Not(leaf))) == leaf


def test_not_of_something_unknown_stays_unknown() -> None:
    assert push_not(Not(Unknown("f(x)", "no rule"))) == Unknown("NOT (f(x))", "no rule")


def test_not_goes_through_and_and_or_by_de_morgan() -> None:
    expr = Not(And((x(Op.EQ), Or((IsNull(X), Not(x(Op.LT)))))))
    assert push_not(expr) == Or((x(Op.NE), And((IsNotNull(X), x(Op.LT)))))


@pytest.mark.parametrize(
    ("expr", "simple"),
    [
        (And((TRUE, x(Op.EQ), TRUE)), x(Op.EQ)),
        (And((x(Op.EQ), FALSE)), FALSE),
        (Or((FALSE, x(Op.EQ))), x(Op.EQ)),
        (Or((x(Op.EQ), TRUE)), TRUE),
        (And(()), TRUE),
        (Or(()), FALSE),
        (And((x(Op.EQ), And((x(Op.LT), x(Op.GT))))), And((x(Op.EQ), x(Op.LT), x(Op.GT)))),
        (And((Or((And((x(Op.EQ), x(Op.LT))), FALSE)), x(Op.GT))), And((x(Op.EQ), x(Op.LT), x(Op.GT)))),
        (And((NULL, x(Op.EQ), NULL)), And((NULL, x(Op.EQ)))),
        (x(Op.EQ, None), NULL),
        (x(Op.NE, None), NULL),
        (x(Op.EQ_NULL_SAFE, None), IsNull(X)),
        (x(Op.NE_NULL_SAFE, None), IsNotNull(X)),
        (StartsWith(S, pa.scalar(None, pa.string())), NULL),
        (Not(TRUE), FALSE),
    ],
)
def test_constants_fold_without_changing_the_truth(expr: Expr, simple: Expr) -> None:
    assert simplify(expr) == simple


def test_is_true_and_is_not_true_are_opposites_whose_child_stays_as_it_is() -> None:
    child = Not(x(Op.LT))
    assert push_not(Not(IsTrue(child))) == IsNotTrue(x(Op.GE))
    assert push_not(Not(IsNotTrue(child))) == IsTrue(x(Op.GE))
    assert push_not(IsTrue(child)) == IsTrue(x(Op.GE))


@pytest.mark.parametrize(("constant", "is_true"), [(TRUE, TRUE), (FALSE, FALSE), (NULL, FALSE)])
def test_is_true_of_a_constant_folds(constant: Constant, is_true: Constant) -> None:
    assert simplify(IsTrue(constant)) == is_true
    assert simplify(IsNotTrue(constant)) == simplify(Not(is_true))


def test_a_branch_is_guarded_by_its_condition_and_the_other_by_its_not_being_true() -> None:
    condition, then, otherwise = x(Op.LT), IsNull(S), x(Op.EQ)
    chosen = if_else(condition, then, otherwise)
    assert chosen == Or((And((IsTrue(condition), then)), And((IsNotTrue(condition), otherwise))))
    assert normal_form(if_else(TRUE, then, otherwise)) == then
    assert normal_form(if_else(NULL, then, otherwise)) == otherwise


def test_conjuncts_are_the_parts_of_the_top_level_ands_only() -> None:
    either = Or((x(Op.LT), x(Op.GT)))
    assert conjuncts(And((And((x(Op.EQ), either)), IsNull(X)))) == (x(Op.EQ), either, IsNull(X))
    assert conjuncts(either) == (either,)
    assert conjuncts(TRUE) == ()


def test_columns_are_found_at_any_depth_and_struct_fields_keep_their_path() -> None:
    expr = Or((Not(And((x(Op.EQ), Unknown("y = 1", "?")))), StartsWith(S, PREFIX)))
    assert columns_of(expr) == {("x",), ("person", "name")}


def test_a_chain_of_thousands_of_ors_does_not_exhaust_the_stack() -> None:
    chain: Expr = x(Op.EQ, 0)
    for value in range(1, 5_000):
        chain = Or((chain, x(Op.EQ, value)))
    normal = normal_form(Not(chain))
    assert isinstance(normal, And)
    assert len(normal.children) == 5_000
    assert normal.children[0] == x(Op.NE, 0)


def test_many_equalities_of_one_term_become_one_list_beside_what_else_there_is() -> None:
    other, unordered = IsNull(X), x(Op.LT, 7)
    equalities = [x(Op.EQ, value) for value in range(20)]
    normal = normal_form(Or((other, *equalities[:10], unordered, *equalities[10:])))
    assert normal == Or((In(X, pa.array(range(20), X.type)), other, unordered))
    assert normal_form(Or(tuple(equalities))) == In(X, pa.array(range(20), X.type))


def test_few_equalities_stay_as_they_were_written() -> None:
    few = Or(tuple(x(Op.EQ, value) for value in range(19)))
    assert normal_form(few) == few


def test_a_list_of_equalities_holds_one_column_only() -> None:
    texts = [Compare(Op.EQ, S, pa.scalar(str(value))) for value in range(10)]
    normal = normal_form(Or((*(x(Op.EQ, value) for value in range(10)), *texts)))
    assert normal == Or((In(X, pa.array(range(10), X.type)), In(S, pa.array([str(value) for value in range(10)]))))
