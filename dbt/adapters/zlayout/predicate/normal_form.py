"""The normal form that pruning evaluates: NOT pushed into the leaves, constants folded, conjunctions flat.

Every rewrite keeps the three-valued truth of every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Compare,
    Constant,
    Evaluated,
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
    Same,
    StartsWith,
    Term,
    Unknown,
)
from dbt.adapters.zlayout.predicate.remedies import Remedy

# From this many alternatives on, equality comparisons of one term are merged into one IN list.
_MERGED_FROM = 20
TRUE, FALSE, NULL = Constant(True), Constant(False), Constant(None)

# Spark's order is total (NaN is the greatest number and equals itself): the negation of a comparison is a comparison.
_NEGATED = {
    Op.EQ: Op.NE,
    Op.NE: Op.EQ,
    Op.LT: Op.GE,
    Op.GE: Op.LT,
    Op.GT: Op.LE,
    Op.LE: Op.GT,
    Op.EQ_NULL_SAFE: Op.NE_NULL_SAFE,
    Op.NE_NULL_SAFE: Op.EQ_NULL_SAFE,
}


def normal_form(expr: Expr) -> Expr:
    """Returns an equivalent expression without ``Not``, nested ANDs or ORs, and constants in ANDs and ORs except NULL.

    >>> from dbt.adapters.zlayout.predicate.expr import Column, Compare, In
    >>> city, day = Column(("city",), pa.string()), Column(("day",), pa.date32())
    >>> in_bonn = In(city, pa.array(["Bonn"]))
    >>> before = Compare(Op.LT, day, pa.scalar(19_723, pa.int32()).cast(pa.date32()))
    >>> print(normal_form(Not(Or((in_bonn, before)))).sql())
    city NOT IN ('Bonn') AND day >= DATE '2024-01-01'
    """
    return simplify(push_not(expr))


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """Returns the conditions that top-level ANDs of any depth join; TRUE has none."""
    return tuple(part for part in flattened(expr, And) if part != TRUE)


def flattened(expr: Expr, kind: type[And] | type[Or]) -> Iterator[Expr]:
    """Yields the parts that ANDs, or ORs, of any depth join, from left to right."""
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, And | Or) and isinstance(node, kind):
            pending.extend(reversed(node.children))
        else:
            yield node


def push_not(expr: Expr) -> Expr:
    """Returns an equivalent expression without ``Not``; the negation of ``Unknown`` is ``Unknown``."""
    return _pushed(expr, negated=False)


def _pushed(expr: Expr, negated: bool) -> Expr:
    while isinstance(expr, Not):
        expr, negated = expr.child, not negated
    if isinstance(expr, And | Or):
        kind = And if isinstance(expr, And) else Or
        # Flattens chains of one kind instead of recursing: generated SQL has chains of thousands.
        children = tuple(_pushed(child, negated) for child in flattened(expr, kind))
        return (Or if (kind is And) == negated else And)(children)
    if isinstance(expr, IsTrue | IsNotTrue):
        # Both are TRUE or FALSE and never NULL, so each is the negation of the other.
        kind_of_test = IsTrue if isinstance(expr, IsTrue) != negated else IsNotTrue
        return kind_of_test(_pushed(expr.child, negated=False))
    if isinstance(expr, Same):
        return Same(tuple(_pushed(child, negated) for child in expr.children))
    if isinstance(expr, Evaluated):
        return replace(expr, child=_pushed(expr.child, negated), negated=expr.negated != negated)
    return _negation(expr) if negated else expr


def _negation(leaf: Expr) -> Expr:  # noqa: PLR0911 - one return per kind of leaf
    match leaf:
        case Compare(op, operand, value):
            return Compare(_NEGATED[op], operand, value)
        case In(operand, values, has_null):
            return NotIn(operand, values, has_null)
        case NotIn(operand, values, has_null):
            return In(operand, values, has_null)
        case IsNull(operand):
            return IsNotNull(operand)
        case IsNotNull(operand):
            return IsNull(operand)
        case StartsWith(operand, prefix):
            return NotStartsWith(operand, prefix)
        case NotStartsWith(operand, prefix):
            return StartsWith(operand, prefix)
        case Constant(value):
            return Constant(None if value is None else not value)
        case Unknown(text, _, remedy):
            # NOT_NEEDED marks the rest of a LIKE pattern, beside a condition on its prefix. Negated, it stands alone.
            needed = Remedy.STORE_SEARCHED_TEXT if remedy is Remedy.NOT_NEEDED else remedy
            return replace(leaf, text=f"NOT ({text})", remedy=needed)
        case _:
            return Unknown(f"NOT ({leaf.sql()})", "its negation is not known")


def simplify(expr: Expr) -> Expr:  # noqa: PLR0911 - one return per kind of node
    """Folds constants and comparisons with NULL, and flattens nested ANDs and ORs.

    NULL stays inside AND and OR: ``NULL AND x`` is FALSE where x is FALSE, and NULL elsewhere.
    """
    if isinstance(expr, Not):
        child = simplify(expr.child)
        return _negation(child) if isinstance(child, Constant) else Not(child)
    if isinstance(expr, IsTrue | IsNotTrue):
        child = simplify(expr.child)
        return (
            Constant((child.value is True) == isinstance(expr, IsTrue))
            if isinstance(child, Constant)
            else type(expr)(child)
        )
    if isinstance(expr, Same):
        readings = tuple(map(simplify, expr.children))
        return next((each for each in readings if isinstance(each, Constant)), Same(readings))
    if isinstance(expr, Evaluated):
        child = simplify(expr.child)
        return child if isinstance(child, Constant) else replace(expr, child=child)
    if isinstance(expr, And):
        return _folded(And, expr, neutral=TRUE, absorbing=FALSE)
    if isinstance(expr, Or):
        return _folded(Or, expr, neutral=FALSE, absorbing=TRUE)
    return _simple_leaf(expr)


def _folded(kind: type[And] | type[Or], expr: Expr, *, neutral: Constant, absorbing: Constant) -> Expr:
    kept: list[Expr] = []
    for part in flattened(expr, kind):
        # Simplifying can turn a child into this kind: Or((And((a, b)),)) is And((a, b)).
        for child in flattened(simplify(part), kind):
            if child == absorbing:
                return absorbing
            if child != neutral and not (child == NULL and NULL in _constants(kept)):
                kept.append(child)
    if kind is Or and len(kept) >= _MERGED_FROM:
        kept = _with_merged_equalities(kept)
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else kind(tuple(kept))


def _with_merged_equalities(alternatives: Sequence[Expr]) -> list[Expr]:
    """Merges the equality comparisons of each term into one IN, since files are compared with a whole list at once."""
    values: dict[tuple[Term, str], list[pa.Array]] = {}
    others: list[Expr] = []
    for each in alternatives:
        # No comparison with NULL is left here: `simplify` has folded it.
        if isinstance(each, Compare) and each.op is Op.EQ:
            values.setdefault((each.operand, str(each.value.type)), []).append(pa.repeat(each.value, 1))
        else:
            others.append(each)
    return [In(operand, pa.concat_arrays(found)) for (operand, _), found in values.items()] + others


def _constants(parts: Iterable[Expr]) -> list[Constant]:
    return [part for part in parts if isinstance(part, Constant)]


def _simple_leaf(leaf: Expr) -> Expr:
    if isinstance(leaf, Compare) and not leaf.value.is_valid:
        if leaf.op is Op.EQ_NULL_SAFE:
            return IsNull(leaf.operand)
        return IsNotNull(leaf.operand) if leaf.op is Op.NE_NULL_SAFE else NULL
    if isinstance(leaf, StartsWith | NotStartsWith) and not leaf.prefix.is_valid:
        return NULL
    return leaf
