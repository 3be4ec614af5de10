"""Converts Catalyst filters into predicates: every filter enters here, in the form that Spark's optimizer gave it.

Spark has already analysed, cast and simplified the expression, so each node has an exact type. A node without a rule
becomes ``Unknown``, which skips no file. Operands become terms: columns, constants, functions that have a rule, and
their branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Call,
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
    Op,
    Or,
    Same,
    StartsWith,
    Term,
    Unknown,
    Value,
    if_else,
)
from dbt.adapters.zlayout.predicate.remedies import Remedy
from dbt.adapters.zlayout.pruning.cost_limits import limited
from dbt.adapters.zlayout.spark.catalyst.expressions import KnownExpressions, without_qualifiers
from dbt.adapters.zlayout.spark.catalyst.functions import FUNCTIONS
from dbt.adapters.zlayout.spark.catalyst.tree import (
    Budget,
    Node,
    NotUnderstoodError,
    OverBudgetError,
    members_of,
    scalar_of,
    tree_of,
)
from dbt.adapters.zlayout.spark.catalyst.values import ValueConditions, calls_users_code, is_composed
from dbt.adapters.zlayout.spark.jvm.scala import Jvm
from dbt.adapters.zlayout.spark.schema.types import SparkField, fields_of, type_word

_COMPARISONS: Mapping[str, tuple[Op, Op]] = {
    # Catalyst class: (operator as written, operator with the sides swapped)
    "EqualTo": (Op.EQ, Op.EQ),
    "EqualNullSafe": (Op.EQ_NULL_SAFE, Op.EQ_NULL_SAFE),
    "LessThan": (Op.LT, Op.GT),
    "LessThanOrEqual": (Op.LE, Op.GE),
    "GreaterThan": (Op.GT, Op.LT),
    "GreaterThanOrEqual": (Op.GE, Op.LE),
}
_ONE_SIDED = ("In", "InSet", "StartsWith", "IsNull", "IsNotNull", *_COMPARISONS)
_TOO_LONG = "a condition that is too long to be shown"
_CONNECTIVES = ("And", "Or", "Not", "IsNull", "IsNotNull", "IsNaN", "StartsWith", "Like", "In", "InSet", *_COMPARISONS)
_MOST_BRANCHES = 16
_NOT_PASSED = "Spark does not pass it to a file index: it mixes partition columns with others, or has a subquery"
_SEARCHES = ("EndsWith", "Contains", "Like", "RLike", "LikeAll", "LikeAny", "NotLikeAll", "NotLikeAny")
_SUBQUERIES = ("ScalarSubquery", "InSubquery", "Exists", "DynamicPruningSubquery")
_FUNCTIONS_OF_USERS = ("PythonUDF", "ScalaUDF", "HiveSimpleUDF", "HiveGenericUDF")
# For nodes of these kinds, there is better advice than to store the expression's value.
_REMEDIES: Mapping[str, Remedy] = {
    **dict.fromkeys(_SEARCHES, Remedy.STORE_SEARCHED_TEXT),
    **dict.fromkeys(_FUNCTIONS_OF_USERS, Remedy.STORE_RESULT),
    **dict.fromkeys(_SUBQUERIES, Remedy.RUN_SUBQUERY_FIRST),
}
# Wrappers that do not change how Spark orders values.
_TRANSPARENT = ("KnownNotNull", "KnownFloatingPointNormalized", "optimizer.NormalizeNaNAndZero")


def to_predicate(
    jvm: Jvm,
    filters: Sequence[Any],
    schema_json: str,
    file_count: int,
    others: Sequence[Any] = (),
    known: KnownExpressions | None = None,
) -> Expr:
    """Converts the filters of a scan.

    Args:
        filters: Catalyst ``Expression``s (Py4J objects). A row must meet all of them.
        schema_json: ``StructType.json()`` of the filters' relation, partition columns included.
        file_count: Number of files on which the predicate will be evaluated.
        others: Further conditions, which Spark does not pass to a file index.
        known: The expressions with statistics of their own; None if there are none.

    Returns:
        The conjunction in normal form, with the same truth value for every row. A part that is not understood, or that
        takes too long, is ``Unknown``. Never raises.
    """
    budget = Budget()
    fields, values = fields_of(schema_json), ValueConditions(jvm)
    read = [_read(jvm, each, fields, values, known, budget) for each in filters]
    unread = [_not_passed(jvm, each, budget) for each in others]
    return limited(And((*read, *unread)), file_count)


def _not_passed(jvm: Jvm, expression: Any, budget: Budget) -> Unknown:
    text, remedy = _TOO_LONG, Remedy.SPLIT_CONDITION
    with suppress(Exception):  # a condition that is too long
        tree = tree_of(jvm, expression, budget)
        text = tree.text()
        if any(each.kind in _SUBQUERIES for each in tree.nodes()):
            remedy = Remedy.RUN_SUBQUERY_FIRST
    if not expression.deterministic():
        return Unknown(text, "its value is random")
    return Unknown(text, _NOT_PASSED, remedy)


def _read(
    jvm: Jvm,
    expression: Any,
    fields: tuple[SparkField, ...],
    values: ValueConditions,
    known: KnownExpressions | None,
    budget: Budget,
) -> Expr:
    try:
        return _Converter(fields, values, known, budget).expr(tree_of(jvm, expression, budget))
    except OverBudgetError as error:
        return Unknown(_TOO_LONG, str(error), Remedy.SHORTER_CONDITION)
    except Exception as error:
        return Unknown(_text(jvm, expression, budget), f"could not be read from Spark's plan ({type(error).__name__})")


def _text(jvm: Jvm, expression: Any, budget: Budget) -> str:
    try:
        return tree_of(jvm, expression, budget).text()
    except Exception:
        return _TOO_LONG


class _Converter:
    def __init__(
        self,
        fields: tuple[SparkField, ...],
        values: ValueConditions,
        known: KnownExpressions | None,
        budget: Budget,
    ) -> None:
        self._terms = _TermReader(fields, self.expr, known, budget)
        self._values = values
        self._budget = budget
        self._level = 0
        self._rules: Mapping[str, Callable[[Node], Expr]] = {
            "And": lambda node: And(tuple(map(self.expr, _chained(node)))),
            "Or": lambda node: Or(tuple(map(self.expr, _chained(node)))),
            "Not": lambda node: Not(self.expr(node.children[0])),
            "IsNull": self._is_null,
            "IsNotNull": lambda node: Not(self._is_null(node)),
            "IsNaN": lambda node: self._each(node.children[0], _is_nan),
            "StartsWith": self._starts_with,
            "Like": self._like,
            "In": self._in,
            "InSet": self._in,
            "Literal": self._constant,
            "If": self._if,
            "CaseWhen": self._case,
            "Coalesce": self._coalesce,
            "Cast": self._is_not_zero,
            "AttributeReference": self._boolean_column,
            "GetStructField": self._boolean_column,
            **dict.fromkeys(_COMPARISONS, self._comparison),
        }

    def expr(self, node: Node) -> Expr:
        """Returns the node as an expression, or ``Unknown`` with the reason if it is not understood."""
        read, column = self._by_rule(node), self._terms.known(node)
        if column is not None and pa.types.is_boolean(column.type):
            read = Same((Compare(Op.EQ, column, pa.scalar(True)), read))
        return read if is_composed(node) else self._values.of(node, read, self._only_column(node))

    def _only_column(self, node: Node) -> Column | None:
        names = node.column_names()
        if len(names) != 1 or any(each.is_of_files for each in node.nodes()):
            return None
        try:
            return self._terms.top_level(names.pop())
        except NotUnderstoodError:
            return None

    def _by_rule(self, node: Node) -> Expr:
        self._level += 1
        try:
            rule = self._rules.get(node.kind)
            if rule is None:
                raise NotUnderstoodError(f"`{node.kind}` has no rule", _remedy_for(node))
            self._budget.check_depth(self._level)
            self._budget.check_time()
            return rule(node)
        except NotUnderstoodError as error:
            return Unknown(node.text(), str(error), error.remedy, self._terms.helpful(node))
        finally:
            self._level -= 1

    def _each(self, operand: Node, leaf: Callable[[Term], Expr]) -> Expr:
        """Returns the condition on an operand with branches: the first branch whose guard is TRUE decides."""
        column = self._terms.known(operand)
        if column is None:
            return self._each_branch(operand, leaf)
        try:
            return Same((leaf(column), self._each_branch(operand, leaf)))
        except NotUnderstoodError:
            return leaf(column)

    def _each_branch(self, operand: Node, leaf: Callable[[Term], Expr]) -> Expr:
        branches = self._terms.branches(operand)
        conditions = [
            Unknown(operand.text(), str(each.term), each.term.remedy)
            if isinstance(each.term, NotUnderstoodError)
            else leaf(each.term)
            for each in branches
        ]
        found = conditions.pop()
        for branch, condition in zip(reversed(branches[:-1]), reversed(conditions), strict=True):
            assert branch.guard is not None  # only the last branch has none
            found = if_else(branch.guard, condition, found)
        return found

    def _comparison(self, node: Node) -> Expr:
        straight, swapped = _COMPARISONS[node.kind]
        left, right = node.children
        if right.is_literal:
            operand, op, literal = left, straight, right
        elif left.is_literal:
            operand, op, literal = right, swapped, left
        else:
            has_subquery = left.kind in _SUBQUERIES or right.kind in _SUBQUERIES
            remedy = Remedy.RUN_SUBQUERY_FIRST if has_subquery else Remedy.COMPARE_WITH_CONSTANT
            raise NotUnderstoodError("neither side is a constant", remedy)
        if literal.raw["dataType"] == "boolean" and operand.kind in _CONNECTIVES:
            return _compare_truth(op, self.expr(operand), literal)
        return self._each(operand, lambda term: Compare(op, term, scalar_of(literal, term.type)))

    def _is_null(self, node: Node) -> Expr:
        operand = node.children[0]
        if operand.kind in _CONNECTIVES:
            return _is_neither(self.expr(operand))
        return self._each(operand, IsNull)

    def _starts_with(self, node: Node) -> Expr:
        operand, prefix = node.children
        if not prefix.is_literal:
            raise NotUnderstoodError("the prefix is not a constant", Remedy.WRITE_CONSTANTS)
        return self._each(operand, lambda term: StartsWith(term, scalar_of(prefix, term.type)))

    def _like(self, node: Node) -> Expr:
        """A text that matches a pattern starts with the part of the pattern before the first wildcard."""
        operand, pattern = node.children
        if not pattern.is_literal or pattern.raw["value"] is None:
            raise NotUnderstoodError("the pattern is not a constant", Remedy.WRITE_CONSTANTS)
        begins = _literal_beginning(scalar_of(pattern, pa.string()).as_py(), str(node.jvm().escapeChar()))
        if not begins:
            raise NotUnderstoodError("the pattern begins with a wildcard", Remedy.STORE_SEARCHED_TEXT)
        rest = Unknown(node.text(), "only the text before the first wildcard can skip files", Remedy.NOT_NEEDED)
        return And((self._each(operand, lambda term: StartsWith(term, pa.scalar(begins, term.type))), rest))

    def _in(self, node: Node) -> Expr:
        def leaf(term: Term) -> Expr:
            members, has_null = members_of(node, term.type)
            return In(term, members, has_null)

        return self._each(node.children[0], leaf)

    def _constant(self, node: Node) -> Expr:
        if node.raw["value"] is None:
            return Constant(None)
        if node.raw["dataType"] != "boolean":
            raise NotUnderstoodError("the constant is not a condition", remedy=None)
        return Constant(str(node.raw["value"]).lower() == "true")

    def _boolean_column(self, node: Node) -> Expr:
        column = self._terms.column(node)
        if not pa.types.is_boolean(column.type):
            raise NotUnderstoodError("the column is not a condition", remedy=None)
        return Compare(Op.EQ, column, pa.scalar(True))

    def _is_not_zero(self, node: Node) -> Expr:
        """A number as a condition is TRUE unless it is 0; NaN is TRUE."""
        operand = node.children[0]
        kind = operand.type()
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            raise NotUnderstoodError("only numbers are read as conditions", remedy=None)
        zero = pa.scalar(Decimal(0) if pa.types.is_decimal(kind) else 0, kind)
        return self._each(operand, lambda term: Compare(Op.NE, term, zero))

    def _if(self, node: Node) -> Expr:
        condition, then, otherwise = (self.expr(child) for child in node.children)
        return if_else(condition, then, otherwise)

    def _case(self, node: Node) -> Expr:
        parts = [self.expr(child) for child in node.children]
        found: Expr = parts.pop() if len(parts) % 2 else Constant(None)
        while parts:
            value, condition = parts.pop(), parts.pop()
            found = if_else(condition, value, found)
        return found

    def _coalesce(self, node: Node) -> Expr:
        found = self.expr(node.children[-1])
        for child in reversed(node.children[:-1]):
            condition = self.expr(child)
            found = if_else(condition, Constant(True), if_else(Not(condition), Constant(False), found))
        return found


def _remedy_for(node: Node) -> Remedy:
    """Returns what would help for a node without a rule."""
    return _REMEDIES.get(node.kind, Remedy.STORE_VALUE)


def _chained(node: Node) -> Iterator[Node]:
    """Yields the operands of a chain of one connective. Generated SQL can chain thousands."""
    pending = [node]
    while pending:
        each = pending.pop()
        if each.kind == node.kind:
            pending.extend(reversed(each.children))
        else:
            yield each


def _is_nan(term: Term) -> Expr:
    # isnan(null) is false, not null. The conjunction keeps this true under NOT.
    return And((IsNotNull(term), Compare(Op.EQ, term, pa.scalar(float("nan"), term.type))))


def _is_neither(condition: Expr) -> Expr:
    """Returns the test for NULL: the condition is neither TRUE nor FALSE."""
    return And((IsNotTrue(condition), IsNotTrue(Not(condition))))


def _compare_truth(op: Op, condition: Expr, literal: Node) -> Expr:
    value = None if literal.raw["value"] is None else str(literal.raw["value"]).lower() == "true"
    if op is Op.EQ_NULL_SAFE:
        return _is_neither(condition) if value is None else IsTrue(condition if value else Not(condition))
    if op is Op.EQ and value is not None:
        return condition if value else Not(condition)
    raise NotUnderstoodError("conditions are compared by = and <=> only", remedy=None)


def _literal_beginning(pattern: str, escape: str) -> str:
    found = []
    characters = iter(pattern)
    for character in characters:
        if character in "%_" and character != escape:
            break
        # Only wildcards and the escape character itself can be escaped: Spark rejects other patterns at run time.
        found.append(next(characters, "") if character == escape else character)
    return "".join(found)


@dataclass(frozen=True)
class _Branch:
    """One of the values that an expression may have.

    Attributes:
        guard: The expression has this value if the guard is TRUE and no earlier guard is; None for the last branch.
        term: The value, or the reason why it is not understood.
    """

    guard: Expr | None
    term: Term | NotUnderstoodError


class _TermReader:
    """Reads the operands of conditions.

    Args:
        fields: Columns of the filter's relation.
        condition: Reads the conditions inside IF and CASE.
        known: The expressions with statistics of their own; None if there are none.
        budget: Limits of the work.
    """

    def __init__(
        self,
        fields: tuple[SparkField, ...],
        condition: Callable[[Node], Expr],
        known: KnownExpressions | None,
        budget: Budget,
    ) -> None:
        self._fields = fields
        self._known = known
        self._condition = condition
        self._budget = budget
        self._level = 0
        self._by_name: dict[str, SparkField] = {}
        self._branching: Mapping[str, Callable[[Node], list[_Branch]]] = {
            "If": self._if,
            "CaseWhen": self._case,
            "Coalesce": self._coalesce,
            "Greatest": lambda node: self._extreme(node, Op.GT),
            "Least": lambda node: self._extreme(node, Op.LT),
            "NaNvl": self._nanvl,
        }

    def branches(self, node: Node) -> list[_Branch]:
        """Returns the values that a node may have; the last one has no guard.

        Raises:
            NotUnderstoodError: The node is not understood.
        """
        self._level += 1
        try:
            self._budget.check_depth(self._level)
            return self._branches(node)
        except NotUnderstoodError:
            column = self.known(node)
            if column is None:
                raise
            return [_Branch(None, column)]
        finally:
            self._level -= 1

    def _branches(self, node: Node) -> list[_Branch]:
        if node.kind in self._branching:
            found = self._branching[node.kind](node)
        elif node.kind in _TRANSPARENT:
            found = self.branches(node.children[0])
        elif node.is_literal:
            found = [_Branch(None, Value(scalar_of(node, node.type())))]
        elif node.kind in ("AttributeReference", "GetStructField"):
            found = [_Branch(None, self.column(node))]
        elif node.kind in FUNCTIONS:
            argument, chain = FUNCTIONS[node.kind](node)
            found = [_Branch(each.guard, _called(chain, each.term)) for each in self.branches(argument)]
        else:
            raise NotUnderstoodError(f"`{node.kind}` of a column has no rule", _remedy_for(node))
        _check_count(len(found))
        return found

    def known(self, node: Node) -> Column | None:
        """Returns the column that stands for an expression with statistics of its own; None for other nodes."""
        return None if self._known is None or node.is_literal else self._known.column(node)

    def helpful(self, node: Node) -> str | None:
        """Returns the expression in a condition whose statistics would let it skip files; None if there is none."""
        sides = [each for each in node.children if not each.is_literal]
        if node.kind not in _ONE_SIDED or not sides or (node.kind in _COMPARISONS and len(sides) != 1):
            return None
        names = sides[0].column_names()
        if not names or is_composed(sides[0]) or calls_users_code(sides[0]):
            return None
        return without_qualifiers(sides[0].text(), sorted(names))

    def only(self, node: Node) -> Term:
        """Returns the one value of a node.

        Raises:
            NotUnderstoodError: The node has several values, or its value is not understood.
        """
        branches = self.branches(node)
        if len(branches) > 1:
            raise NotUnderstoodError("it has branches within branches")
        if isinstance(branches[0].term, NotUnderstoodError):
            raise branches[0].term
        return branches[0].term

    def column(self, node: Node) -> Column:
        """Returns a column or struct field.

        Raises:
            NotUnderstoodError: The node is neither, or statistics do not keep the order of its type.
        """
        return self._ordered(*self._field(node))

    def top_level(self, name: str) -> Column:
        """Returns the column with a name.

        Raises:
            NotUnderstoodError: There is none, or statistics do not keep the order of its type.
        """
        found = self._named(name)
        return self._ordered((found.name,), found)

    def _ordered(self, path: tuple[str, ...], found: SparkField) -> Column:
        if found.collated:
            raise NotUnderstoodError(
                f"column `{'.'.join(path)}` has a collation, whose order statistics do not keep", Remedy.NO_COLLATION
            )
        if found.arrow_type is None:
            raise NotUnderstoodError(
                f"column `{'.'.join(path)}` has type {type_word(found.spark_type)}, which has no statistics",
                Remedy.ORDERED_TYPE,
            )
        return Column(path, found.arrow_type)

    def _field(self, node: Node) -> tuple[tuple[str, ...], SparkField]:
        if node.kind == "AttributeReference":
            name = str(node.raw["name"])
            if node.is_of_files:
                raise NotUnderstoodError(
                    f"`{name}` may be a field of _metadata, which says nothing about rows", remedy=None
                )
            found = self._named(name)
            return (found.name,), found
        if node.kind == "GetStructField":
            parent_path, parent = self._field(node.children[0])
            child = _by_name(parent.fields, str(node.raw["field"]))
            return (*parent_path, child.name), child
        raise NotUnderstoodError(f"`{node.kind}` of a column has no rule", _remedy_for(node))

    def _named(self, name: str) -> SparkField:
        if name not in self._by_name:
            self._by_name[name] = _by_name(self._fields, name)
        return self._by_name[name]

    def _tried(self, node: Node) -> list[_Branch]:
        """Returns the branches of a part. If it is not understood, the other parts still are."""
        try:
            return self.branches(node)
        except NotUnderstoodError as error:
            return [_Branch(None, error)]

    def _if(self, node: Node) -> list[_Branch]:
        return _guarded(self._condition(node.children[0]), self._tried(node.children[1])) + self._tried(
            node.children[2]
        )

    def _case(self, node: Node) -> list[_Branch]:
        pairs, otherwise = divmod(len(node.children), 2)
        _check_count(pairs)
        found: list[_Branch] = []
        for number in range(pairs):
            condition, value = node.children[2 * number : 2 * number + 2]
            found += _guarded(self._condition(condition), self._tried(value))
        if otherwise:
            return found + self._tried(node.children[-1])
        return [*found, _Branch(None, Value(pa.scalar(None, node.type())))]

    def _coalesce(self, node: Node) -> list[_Branch]:
        _check_count(len(node.children))
        found: list[_Branch] = []
        for child in node.children[:-1]:
            term = self.only(child)
            found.append(_Branch(IsNotNull(term), term))
        return found + self._tried(node.children[-1])

    def _extreme(self, node: Node, op: Op) -> list[_Branch]:
        """Reads greatest and least, which ignore nulls: of a null and another value, it is the other."""
        if len(node.children) != 2 or sum(child.is_literal for child in node.children) != 1:
            raise NotUnderstoodError("its arguments are not one column and one constant")
        constant, other = sorted(node.children, key=lambda child: not child.is_literal)
        term, value = self.only(other), scalar_of(constant, constant.type())
        if not value.is_valid:
            return [_Branch(None, term)]
        return [_Branch(Compare(op, term, value), term), _Branch(None, Value(value))]

    def _nanvl(self, node: Node) -> list[_Branch]:
        term = self.only(node.children[0])
        is_number = Not(Compare(Op.EQ_NULL_SAFE, term, pa.scalar(float("nan"), term.type)))
        return [_Branch(is_number, term), *self._tried(node.children[1])]


def _check_count(branches: int) -> None:
    if branches > _MOST_BRANCHES:
        raise NotUnderstoodError(f"it has more than {_MOST_BRANCHES} branches")


def _guarded(guard: Expr, branches: Sequence[_Branch]) -> list[_Branch]:
    return [_Branch(guard if each.guard is None else And((guard, each.guard)), each.term) for each in branches]


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
        raise NotUnderstoodError(f"`{name}` is not a column of the table", remedy=None)
    return matches[0]
