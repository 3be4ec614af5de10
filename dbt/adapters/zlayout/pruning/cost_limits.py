"""Cost limits of predicates: a condition above them keeps all files, so that planning stays fast.

A predicate is a graph: parts that CASE and IF use twice are one object in memory, but appear twice in the normal form.
Costs are those of the predicate expanded to a tree, computed without expanding it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Call,
    ColumnLeaf,
    Evaluated,
    Expr,
    IsNotTrue,
    IsTrue,
    Not,
    Or,
    Same,
    Term,
    Unknown,
    leaves,
)
from dbt.adapters.zlayout.predicate.normal_form import flattened, normal_form
from dbt.adapters.zlayout.predicate.remedies import Remedy
from dbt.adapters.zlayout.quantities import counted

_MOST_CHARACTERS = 200


@dataclass(frozen=True)
class Cost:
    """The cost of evaluating an expression.

    Attributes:
        parts: Conditions and connectives, as often as they occur in the tree, plus four for each function.
        depth: Levels of the tree; an AND directly inside an AND adds no level, nor does an OR inside an OR.
        calls: Most nested functions around one column.
    """

    parts: int
    depth: int
    calls: int


@dataclass(frozen=True)
class Limits:
    """The most that one predicate may cost.

    Attributes:
        parts: The parts of all conditions together; each takes about 20 µs, even for few files.
        depth: The depth of one condition; each level takes up to three frames of Python's stack.
        calls: The most nested functions around one column; each also takes up to three frames.
        vectors: Parts of all conditions times files; each takes a few bytes and about ten nanoseconds.
    """

    parts: int = 10_000
    depth: int = 150
    calls: int = 100
    vectors: int = 10_000_000


LIMITS = Limits()


def limited(expr: Expr, file_count: int, limits: Limits = LIMITS) -> Expr:
    """Returns the normal form of a predicate with ``Unknown`` in place of each conjunct that would cost too much.

    Args:
        file_count: Number of files that it is evaluated on.
        limits: The most that it may cost.
    """
    # Oversized parts are removed before the normal form expands them; merged lists exist only after it, and cost less.
    normal = normal_form(_affordable(expr, 0, limits))
    affordable = _affordable(normal, file_count, limits)
    return normal if affordable is normal else normal_form(affordable)


def _affordable(expr: Expr, file_count: int, limits: Limits) -> Expr:
    """Keeps conjuncts from left to right as long as each fits into what the previous ones have left."""
    known: dict[int, Cost] = {}
    whole = cost_of(expr, known)
    left = min(limits.parts, limits.vectors // max(file_count, 1))
    if whole.parts <= left and whole.depth <= limits.depth and whole.calls <= limits.calls:
        return expr
    kept: list[Expr] = []
    for part in flattened(expr, And):
        cost = cost_of(part, known)
        why_not = _why_not(cost, left, file_count, limits)
        if why_not is None:
            left -= cost.parts
        kept.append(part if why_not is None else Unknown(_beginning(part), why_not, Remedy.SHORTER_CONDITION))
        if len(kept) > limits.parts:
            too_many = f"there are more than {limits.parts:,} conditions"
            kept.append(Unknown("the conditions that follow", too_many, Remedy.SHORTER_CONDITION))
            break
    return And(tuple(kept))


def _why_not(cost: Cost, left: int, file_count: int, limits: Limits) -> str | None:
    if cost.depth > limits.depth:
        return f"it is nested more than {limits.depth} levels deep"
    if cost.calls > limits.calls:
        return f"it has more than {limits.calls} functions around a column"
    if cost.parts > limits.parts:
        return f"it has more than {limits.parts:,} parts"
    if cost.parts > left:
        return f"with the conditions before it, it is too large to be evaluated on {counted(file_count, 'file')}"
    return None


def cost_of(expr: Expr, known: dict[int, Cost] | None = None) -> Cost:
    """Returns the cost of an expression; takes time in proportion to the objects in memory, not to the tree.

    Args:
        expr: The expression; its objects stay alive as long as ``known`` is used.
        known: Costs of objects by id, extended by those of the expression.
    """
    known = {} if known is None else known
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
    if isinstance(expr, And | Or | Same):
        return expr.children
    return (expr.child,) if isinstance(expr, Not | IsTrue | IsNotTrue | Evaluated) else ()


def _calls(term: Term) -> int:
    count = 0
    while isinstance(term, Call):
        term, count = term.argument, count + 1
    return count


def _beginning(expr: Expr) -> str:
    """Returns the first condition of an expression that is too long to show in full."""
    first = next(leaves(expr), None)
    # Long chains of functions are not written out either: building their text takes one step per level.
    if first is None or (isinstance(first, ColumnLeaf) and _calls(first.operand) > LIMITS.calls):
        return "a condition"
    return f"{first.sql()[:_MOST_CHARACTERS]} …"
