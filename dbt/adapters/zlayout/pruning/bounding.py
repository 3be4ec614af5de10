"""Bounds on what a predicate may cost: a condition beyond them keeps all files, so that planning never takes long.

A predicate is a graph: parts that CASE and IF use twice are one object in memory, and twice as much in normal form.
Costs are those of the predicate written out as a tree, counted without writing it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbt.adapters.zlayout.predicate.expr import And, ColumnLeaf, Expr, IsNotTrue, IsTrue, Not, Or, Unknown, leaves
from dbt.adapters.zlayout.predicate.normal_form import normal_form
from dbt.adapters.zlayout.predicate.terms import Call, Term

_MOST_CHARACTERS = 200


@dataclass(frozen=True)
class Cost:
    """What evaluating an expression takes.

    Attributes:
        parts: Conditions and connectives, as often as they occur in the tree, and four for each function.
        depth: Levels of the tree; an AND right inside an AND is no level of its own, nor an OR inside an OR.
        calls: Most functions around one column.
    """

    parts: int
    depth: int
    calls: int


@dataclass(frozen=True)
class Limits:
    """What one predicate may cost.

    Attributes:
        parts: Of all conditions together; each takes some 50 µs, however few the files are.
        depth: Of a condition; each level takes up to three frames of Python's stack.
        calls: Around one column; each takes up to three frames too.
        vectors: Parts of all conditions times files; each takes some bytes, and some ten nanoseconds.
    """

    parts: int = 16_000
    depth: int = 150
    calls: int = 100
    vectors: int = 10_000_000


LIMITS = Limits()


def bounded(expr: Expr, file_count: int, limits: Limits = LIMITS) -> Expr:
    """Returns the normal form of a predicate, with ``Unknown`` for each of its conjuncts that would cost too much.

    Args:
        expr: Any predicate.
        file_count: How many files it is evaluated on.
        limits: What it may cost.
    """
    # What is too large is not brought into normal form, which is a tree; lists are only found there, and cost less.
    normal = normal_form(_affordable(expr, 0, limits))
    return normal_form(_affordable(normal, file_count, limits))


def _affordable(expr: Expr, file_count: int, limits: Limits) -> Expr:
    """Conjuncts are taken from left to right, each that fits into what those before it have left."""
    known: dict[int, Cost] = {}
    whole = _cost(expr, known)
    left = min(limits.parts, limits.vectors // max(file_count, 1))
    if whole.parts <= left and whole.depth <= limits.depth and whole.calls <= limits.calls:
        return expr
    kept: list[Expr] = []
    for part in _conjuncts(expr):
        cost = _cost(part, known)
        why_not = _why_not(cost, left, file_count, limits)
        if why_not is None:
            left -= cost.parts
        kept.append(part if why_not is None else Unknown(_beginning(part), why_not))
        if len(kept) > limits.parts:
            kept.append(Unknown("the conditions that follow", f"there are more than {limits.parts:,} conditions"))
            break
    return And(tuple(kept))


def cost_of(expr: Expr) -> Cost:
    """Returns what evaluating an expression takes, in time that grows with the objects in memory, not with the tree."""
    return _cost(expr, {})


def _why_not(cost: Cost, left: int, file_count: int, limits: Limits) -> str | None:
    if cost.depth > limits.depth:
        return f"it is nested more than {limits.depth} levels deep"
    if cost.calls > limits.calls:
        return f"it has more than {limits.calls} functions around a column"
    if cost.parts > limits.parts:
        return f"it has more than {limits.parts:,} parts"
    if cost.parts > left:
        return f"with the conditions before it, it is too large to be evaluated on {file_count:,} files"
    return None


def _cost(expr: Expr, known: dict[int, Cost]) -> Cost:
    pending = [expr]
    while pending:
        node = pending[-1]
        children = _children(node)
        open_children = [each for each in children if id(each) not in known]
        if open_children:
            pending.extend(open_children)
            continue
        pending.pop()
        known[id(node)] = _joined(node, children, [known[id(each)] for each in children])
    return known[id(expr)]


def _joined(node: Expr, children: Sequence[Expr], costs: Sequence[Cost]) -> Cost:
    if not children:
        calls = _calls(node.operand) if isinstance(node, ColumnLeaf) else 0
        return Cost(1 + 4 * calls, 1, calls)
    levels = [
        cost.depth + (not (isinstance(node, And | Or) and type(child) is type(node)))
        for child, cost in zip(children, costs, strict=True)
    ]
    return Cost(1 + sum(each.parts for each in costs), max(levels), max(each.calls for each in costs))


def _children(expr: Expr) -> Sequence[Expr]:
    if isinstance(expr, And | Or):
        return expr.children
    return (expr.child,) if isinstance(expr, Not | IsTrue | IsNotTrue) else ()


def _calls(term: Term) -> int:
    count = 0
    while isinstance(term, Call):
        term, count = term.argument, count + 1
    return count


def _conjuncts(expr: Expr) -> Iterator[Expr]:
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, And):
            pending.extend(reversed(node.children))
        else:
            yield node


def _beginning(expr: Expr) -> str:
    """The first condition of an expression that is too long to be shown."""
    first = next(leaves(expr), None)
    # A long chain of functions is not spelled out either: its text is made level by level.
    if first is None or (isinstance(first, ColumnLeaf) and _calls(first.operand) > LIMITS.calls):
        return "a condition"
    return f"{first.sql()[:_MOST_CHARACTERS]} …"
