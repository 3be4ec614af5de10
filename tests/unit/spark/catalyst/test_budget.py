"""Limits for reading the conditions of a scan: each limit ends the reading, and what was read before stays."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from dbt.adapters.zlayout.predicate.expr import Unknown, leaves
from dbt.adapters.zlayout.spark.catalyst import predicates, tree
from dbt.adapters.zlayout.spark.catalyst.predicates import to_predicate
from dbt.adapters.zlayout.spark.catalyst.tree import Budget, OverBudgetError

PACKAGE = "org.apache.spark.sql.catalyst.expressions."
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "text", "type": "string", "nullable": True, "metadata": {}},
        ],
    }
)


class Jvm:
    """Stands for the driver's."""

    def once(self, _: object) -> Handles:
        return Handles()


class Lines(list[str]):
    """The nodes of an expression, each before its children, as the JVM spells them."""

    def stream(self) -> Lines:
        return self

    def toList(self) -> Lines:  # noqa: N802 - Java's name
        return self

    def get(self, position: int) -> SingleNode:
        return SingleNode(self[position])


class SingleNode:
    """A node that was fetched by a call."""

    def __init__(self, line: str) -> None:
        self._line = line

    def sql(self) -> str:
        return self._line.rpartition(".")[2]

    def escapeChar(self) -> str:  # noqa: N802 - Spark's name
        return "\\"

    def hset(self) -> Members:
        return Members(range(10))


class Members(list[int]):
    def size(self) -> int:
        return len(self)

    def mkString(self, separator: str) -> str:  # noqa: N802 - Scala's name
        return separator.join(map(str, self))

    def contains(self, value: object) -> bool:
        return value in self


class Handles:
    """The functions of the JVM that read many nodes at once."""

    shape, types, numbers = "shape", "types", "numbers"

    def nodes(self, expression: Lines, most: int) -> Lines | None:
        return None if len(expression) > most else expression

    def lines(self, nodes: Lines, function: str) -> list[str]:
        return list(nodes) if function == self.shape else ["bigint"] * len(nodes)


def inner(kind: str, *children: Lines) -> Lines:
    return Lines([f"{len(children)}{PACKAGE}{kind}", *(line for child in children for line in child)])


ID, TEXT = Lines(["@2=id"]), Lines(["@2=text"])


def equals(number: int, operand: Lines = ID) -> Lines:
    return inner("EqualTo", operand, Lines([f"long={number}"]))


def nested(kind: str, levels: int, expression: Lines) -> Lines:
    for _ in range(levels):
        expression = inner(kind, expression)
    return expression


@pytest.fixture
def why_not(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a function that reads conditions with a budget and returns why parts of them are not understood."""

    def read(*conditions: Lines, **budget: float) -> Sequence[str]:
        jvm = Jvm()
        with monkeypatch.context() as patched:
            # A collection of garbage alone may take half a second in a process that has run thousands of tests.
            patched.setattr(predicates, "Budget", partial(Budget, **{"seconds": 60, **budget}))
            read = to_predicate(jvm, conditions, SCHEMA, 1)  # type: ignore[arg-type]  # the same
        return [each.reason for each in leaves(read) if isinstance(each, Unknown)]

    return read


def test_conditions_within_the_budget_are_read(why_not: Any) -> None:
    assert why_not(equals(1), nested("Not", 3, equals(2)), inner("InSet", ID)) == []


def test_the_limit_of_nodes_holds_for_all_conditions_together(why_not: Any) -> None:
    three = [equals(number) for number in range(3)]
    assert why_not(*three, nodes=9) == []
    assert why_not(*three, nodes=8) == ["it has more than 8 parts, with the conditions before it"]
    # A smaller one that comes later still fits.
    large = inner("And", equals(1), equals(2))
    assert why_not(equals(0), large, equals(3), nodes=6) == ["it has more than 6 parts, with the conditions before it"]


def test_members_of_a_list_count_as_nodes(why_not: Any) -> None:
    assert why_not(inner("InSet", ID), nodes=12) == []
    assert why_not(inner("InSet", ID), nodes=11) == ["it has more than 11 parts, with the conditions before it"]


@pytest.mark.parametrize("place", ["conditions", "operands"])
def test_levels_are_counted_in_conditions_and_in_operands(why_not: Any, place: str) -> None:
    def of(levels: int) -> Lines:
        if place == "conditions":
            return nested("Not", levels - 1, equals(1))
        return equals(1, nested("KnownNotNull", levels - 1, ID))

    assert why_not(of(5), depth=5) == []
    assert why_not(of(6), depth=5) == ["it is nested more than 5 levels deep"]
    assert why_not(of(60)) == []
    assert why_not(of(61)) == ["it is nested more than 60 levels deep"]


def test_a_chain_of_one_connective_is_one_level(why_not: Any) -> None:
    chain = equals(0)
    for number in range(1, 500):
        chain = inner("And", chain, equals(number))
    assert why_not(chain, depth=2) == []


def test_the_limit_of_calls_holds_for_all_conditions_together(why_not: Any) -> None:
    like = inner("Like", TEXT, Lines(["string=a%25"]))
    told = "it takes more than 2 calls to Spark's plan"
    beyond = "only the text before the first wildcard can skip files"
    # One for the pattern, one for its text.
    assert why_not(like, calls=2) == [beyond]
    assert why_not(like, like, calls=2) == [beyond, told]


def test_the_limit_of_seconds_holds_for_all_conditions_together(why_not: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    conditions = [equals(number) for number in range(4)]
    now = [0.0]

    def clock() -> float:
        now[0] += 0.2
        return now[0]

    monkeypatch.setattr(time, "thread_time", clock)
    assert why_not(*conditions, seconds=0.5) == []  # few nodes
    monkeypatch.setattr(tree, "_FEW_NODES", 0)
    assert why_not(*conditions, seconds=5) == []
    assert why_not(*conditions, seconds=0.5) == ["reading it takes more than 0.5 s"] * 2


def test_the_default_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [7.0]
    monkeypatch.setattr(time, "thread_time", lambda: now[0])
    budget = Budget()
    assert (budget.nodes, budget.depth) == (50_000, 60)
    now[0] += 0.3
    budget.check_time()
    now[0] += 0.001
    budget.spend(200)
    budget.check_time()
    budget.spend(1)
    with pytest.raises(OverBudgetError, match=r"reading it takes more than 0\.3 s"):
        budget.check_time()
    for _ in range(1_000):
        budget.call()
    with pytest.raises(tree.NotUnderstoodError, match="more than 1,000 calls"):
        budget.call()
    budget.spend(49_799)
    with pytest.raises(OverBudgetError, match="more than 50,000 parts"):
        budget.spend(1)
