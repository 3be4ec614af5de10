"""Converts Catalyst operands into terms: columns, constants, functions that have a rule, and their branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import And, Call, Column, Compare, Expr, IsNotNull, Not, Op, Term, Value
from dbt.adapters.zlayout.spark.catalyst.functions import FUNCTIONS
from dbt.adapters.zlayout.spark.catalyst.tree import Budget, Node, NotUnderstoodError, scalar_of
from dbt.adapters.zlayout.spark.schema.types import SparkField, type_word

_MOST_BRANCHES = 16
# Wrappers that do not change how Spark orders values.
_TRANSPARENT = ("KnownNotNull", "KnownFloatingPointNormalized", "optimizer.NormalizeNaNAndZero")


@dataclass(frozen=True)
class Branch:
    """One of the values that an expression may have.

    Attributes:
        guard: The expression has this value if the guard is TRUE and no earlier guard is; None for the last branch.
        term: The value, or the reason why it is not understood.
    """

    guard: Expr | None
    term: Term | NotUnderstoodError


class TermReader:
    """Reads the operands of conditions.

    Args:
        fields: Columns of the filter's relation.
        condition: Reads the conditions inside IF and CASE.
        budget: Limits of the work.
    """

    def __init__(self, fields: tuple[SparkField, ...], condition: Callable[[Node], Expr], budget: Budget) -> None:
        self._fields = fields
        self._condition = condition
        self._budget = budget
        self._level = 0
        self._by_name: dict[str, SparkField] = {}
        self._branching: Mapping[str, Callable[[Node], list[Branch]]] = {
            "If": self._if,
            "CaseWhen": self._case,
            "Coalesce": self._coalesce,
            "Greatest": lambda node: self._extreme(node, Op.GT),
            "Least": lambda node: self._extreme(node, Op.LT),
            "NaNvl": self._nanvl,
        }

    def branches(self, node: Node) -> list[Branch]:
        """Returns the values that a node may have; the last one has no guard.

        Raises:
            NotUnderstoodError: None of them is understood.
        """
        self._level += 1
        try:
            if self._level > self._budget.depth:
                raise NotUnderstoodError(f"it is nested more than {self._budget.depth} levels deep")
            return self._branches(node)
        finally:
            self._level -= 1

    def _branches(self, node: Node) -> list[Branch]:
        if node.kind in self._branching:
            found = self._branching[node.kind](node)
        elif node.kind in _TRANSPARENT:
            found = self.branches(node.children[0])
        elif node.is_literal:
            found = [Branch(None, Value(scalar_of(node, node.type())))]
        elif node.kind in ("AttributeReference", "GetStructField"):
            found = [Branch(None, self.column(node))]
        elif node.kind in FUNCTIONS:
            argument, chain = FUNCTIONS[node.kind](node)
            found = [Branch(each.guard, _called(chain, each.term)) for each in self.branches(argument)]
        else:
            raise NotUnderstoodError(f"`{node.kind}` of a column has no rule")
        _check_count(len(found))
        return found

    def only(self, node: Node) -> Term:
        """Returns the one value of a node.

        Raises:
            NotUnderstoodError: The node has several values, or its value is not understood.
        """
        branches = self.branches(node)
        if len(branches) > 1:
            raise NotUnderstoodError("branches within branches")
        if isinstance(branches[0].term, NotUnderstoodError):
            raise branches[0].term
        return branches[0].term

    def column(self, node: Node) -> Column:
        """Returns a column or struct field.

        Raises:
            NotUnderstoodError: The node is neither, or statistics do not keep the order of its type.
        """
        path, found = self._field(node)
        if found.collated:
            raise NotUnderstoodError(f"column `{'.'.join(path)}` has a collation, whose order statistics do not keep")
        if found.arrow_type is None:
            raise NotUnderstoodError(
                f"column `{'.'.join(path)}` has type {type_word(found.spark_type)}, which has no statistics"
            )
        return Column(path, found.arrow_type)

    def _field(self, node: Node) -> tuple[tuple[str, ...], SparkField]:
        if node.kind == "AttributeReference":
            name = str(node.raw["name"])
            if name not in self._by_name:
                self._by_name[name] = _by_name(self._fields, name)
            found = self._by_name[name]
            return (found.name,), found
        if node.kind == "GetStructField":
            parent_path, parent = self._field(node.children[0])
            child = parent.fields[int(node.raw["ordinal"])]
            return (*parent_path, child.name), child
        raise NotUnderstoodError(f"`{node.kind}` of a column has no rule")

    def _tried(self, node: Node) -> list[Branch]:
        """Returns the branches of a part. If it is not understood, the other parts still are."""
        try:
            return self.branches(node)
        except NotUnderstoodError as error:
            return [Branch(None, error)]

    def _if(self, node: Node) -> list[Branch]:
        return _guarded(self._condition(node.children[0]), self._tried(node.children[1])) + self._tried(
            node.children[2]
        )

    def _case(self, node: Node) -> list[Branch]:
        pairs, otherwise = divmod(len(node.children), 2)
        _check_count(pairs)
        found: list[Branch] = []
        for number in range(pairs):
            condition, value = node.children[2 * number : 2 * number + 2]
            found += _guarded(self._condition(condition), self._tried(value))
        if otherwise:
            return found + self._tried(node.children[-1])
        return [*found, Branch(None, Value(pa.scalar(None, node.type())))]

    def _coalesce(self, node: Node) -> list[Branch]:
        _check_count(len(node.children))
        found: list[Branch] = []
        for child in node.children[:-1]:
            term = self.only(child)
            found.append(Branch(IsNotNull(term), term))
        return found + self._tried(node.children[-1])

    def _extreme(self, node: Node, op: Op) -> list[Branch]:
        """Reads greatest and least, which ignore nulls: where the column is null, the value is the constant."""
        if len(node.children) != 2 or sum(child.is_literal for child in node.children) != 1:
            raise NotUnderstoodError("more than a column and a constant")
        constant, other = sorted(node.children, key=lambda child: not child.is_literal)
        term, value = self.only(other), scalar_of(constant, constant.type())
        return [Branch(Compare(op, term, value), term), Branch(None, Value(value))]

    def _nanvl(self, node: Node) -> list[Branch]:
        term = self.only(node.children[0])
        is_number = Not(Compare(Op.EQ_NULL_SAFE, term, pa.scalar(float("nan"), term.type)))
        return [Branch(is_number, term), *self._tried(node.children[1])]


def _check_count(branches: int) -> None:
    if branches > _MOST_BRANCHES:
        raise NotUnderstoodError(f"it has more than {_MOST_BRANCHES} branches")


def _guarded(guard: Expr, branches: Sequence[Branch]) -> list[Branch]:
    return [Branch(guard if each.guard is None else And((guard, each.guard)), each.term) for each in branches]


def _called(chain: Sequence[object], term: Term | NotUnderstoodError) -> Term | NotUnderstoodError:
    if isinstance(term, NotUnderstoodError):
        return term
    for function in chain:
        term = Call(function, term)  # type: ignore[arg-type]  # FUNCTIONS holds no others
    return term


def _by_name(fields: Sequence[SparkField], name: str) -> SparkField:
    exact = [each for each in fields if each.name == name]
    matches = exact or [each for each in fields if each.name.lower() == name.lower()]
    if len(matches) != 1:
        raise NotUnderstoodError(f"`{name}` is no column of the table")
    return matches[0]
