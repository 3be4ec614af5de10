"""Reasons: why each file is skipped or read, in words; vectorized, and only used for explanations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.expr import (
    And,
    ColumnLeaf,
    Compare,
    Constant,
    Expr,
    In,
    IsNotNull,
    IsNotTrue,
    IsNull,
    IsTrue,
    NotIn,
    NotStartsWith,
    Or,
    StartsWith,
    Term,
    Unknown,
    leaves,
)
from dbt.adapters.zlayout.predicate.literals import literal, literals
from dbt.adapters.zlayout.pruning.evaluation import Evaluation
from dbt.adapters.zlayout.pruning.statistics.validation import Facts
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict

Rows = npt.NDArray[np.int64]
"""Positions of files."""

_MOST_ALTERNATIVES = 3
_MOST_COLUMNS = 3
_MOST_CHARACTERS = 40


def file_reasons(parts: Sequence[Expr], evaluation: Evaluation, verdict: npt.NDArray[np.int8]) -> pa.Array:
    """Explains verdicts.

    Args:
        parts: The conjuncts; the first one that skips a file gives its reason.
        evaluation: The evaluation that produced the verdicts.
        verdict: int8, length n.

    Returns:
        string, length n, without nulls.
    """
    reason = np.full(evaluation.file_count, "no row matches", dtype=object)
    undecided = verdict == Verdict.SKIP
    empty = undecided & ~evaluation.may_have_rows
    reason[empty] = "the file has no rows"
    undecided &= ~empty
    for part in parts:
        rows = np.flatnonzero(undecided & ~evaluation.match(part).possible)
        if len(rows):
            reason[rows] = _objects(_skip_reason(part, evaluation, rows))
            undecided[rows] = False
    for kept, head in ((Verdict.READ, "may match"), (Verdict.ALL_ROWS, "every row matches")):
        rows = np.flatnonzero(verdict == kept)
        if len(rows):
            reason[rows] = _objects(_read_reason(parts, evaluation, rows, head))
    return pa.array(reason, pa.string())


def _skip_reason(expr: Expr, evaluation: Evaluation, rows: Rows) -> pa.Array:
    """Returns why a part is TRUE for no row of these files; it must skip all of them."""
    if isinstance(expr, Or) and 0 < len(expr.children) <= _MOST_ALTERNATIVES:
        return _joined([_skip_reason(child, evaluation, rows) for child in expr.children], "; ")
    if isinstance(expr, And):
        reason = np.full(len(rows), "", dtype=object)
        undecided = np.ones(len(rows), dtype=np.bool_)
        for child in expr.children:
            decided = undecided & ~evaluation.match(child).possible[rows]
            if decided.any():
                reason[decided] = _objects(_skip_reason(child, evaluation, rows[decided]))
                undecided &= ~decided
        return pa.array(reason, pa.string())
    if isinstance(expr, Or | Constant | Unknown | IsTrue | IsNotTrue):
        return _repeated(f"no row matches {expr.sql()}", len(rows))
    return _leaf_reason(expr, evaluation, rows)  # type: ignore[arg-type]  # every other node is a leaf on a column


def _leaf_reason(leaf: ColumnLeaf, evaluation: Evaluation, rows: Rows) -> pa.Array:
    facts, name = evaluation.facts(leaf.operand), leaf.operand.sql()
    if facts is None:
        return _repeated(f"no row matches {leaf.sql()}", len(rows))
    if isinstance(leaf, IsNull):
        return _repeated(f"{name}: no value is null", len(rows))
    number, nan = pa.array(facts.may_be_number[rows]), pa.array(facts.may_be_nan[rows])
    otherwise = pc.if_else(nan, f"{name}: every value is NaN or null", f"{name}: every value is null")
    if isinstance(leaf, IsNotNull):
        return otherwise
    outside = _joined(
        [_repeated(f"{name}: ", len(rows)), _interval(facts, rows), _repeated(_misses(leaf), len(rows))], ""
    )
    return pc.if_else(number, outside, otherwise)


def _misses(leaf: ColumnLeaf) -> str:
    match leaf:
        case Compare(op, _, value):
            return f" has no value {op.value} {literal(value)}"
        case In(_, values, has_null):
            return f" has no value IN ({literals(values, has_null)})"
        case NotIn(_, values, has_null):
            return f" has no value NOT IN ({literals(values, has_null)})"
        case StartsWith(_, prefix):
            return f" has no value that starts with {literal(prefix)}"
        case NotStartsWith(_, prefix):
            return f" has only values that start with {literal(prefix)}"
    return f" has no row where {leaf.sql()}"


def _read_reason(parts: Sequence[Expr], evaluation: Evaluation, rows: Rows, head: str) -> pa.Array:
    """Returns what is known about the predicate's columns in these files."""
    operands: dict[Term, None] = {}
    not_understood = [leaf for part in parts for leaf in leaves(part) if isinstance(leaf, Unknown)]
    for part in parts:
        operands.update((leaf.operand, None) for leaf in leaves(part) if not isinstance(leaf, Constant | Unknown))
    pieces = [_operand_piece(operand, evaluation, rows) for operand in list(operands)[:_MOST_COLUMNS]]
    if len(operands) > _MOST_COLUMNS:
        pieces.append(_repeated(f"{len(operands) - _MOST_COLUMNS} more columns", len(rows)))
    if not_understood and not operands:
        pieces.append(_repeated(f"not understood: {not_understood[0].text}", len(rows)))
    if not pieces:
        return _repeated("every row is wanted" if not parts else head, len(rows))
    return _joined([_repeated(f"{head}: ", len(rows)), _joined(pieces, ", ")], "")


def _operand_piece(operand: Term, evaluation: Evaluation, rows: Rows) -> pa.Array:
    facts, name = evaluation.facts(operand), operand.sql()
    nothing = _repeated(f"no statistics for {name}", len(rows))
    if facts is None:
        return nothing
    known = _joined([_repeated(f"{name} ", len(rows)), _interval(facts, rows)], "")
    known = pc.if_else(pa.array(facts.may_be_number[rows]), known, f"{name} has only nulls")
    if facts.may_be_nan[rows].any():
        only_nan = pa.array(~facts.may_be_number[rows] & facts.may_be_nan[rows])
        known = pc.if_else(only_nan, f"{name} has only NaN and nulls", known)
    return pc.if_else(pa.array(facts.informed[rows]), known, nothing)


def _interval(facts: Facts, rows: Rows) -> pa.Array:
    at = pa.array(rows)
    low, high = (_bound_text(bound.take(at)) for bound in (facts.minimum, facts.maximum))
    count = len(rows)
    return _joined([_repeated("[", count), low, _repeated(", ", count), high, _repeated("]", count)], "")


def _bound_text(bound: pa.Array) -> pa.Array:
    kind = bound.type
    try:
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            cut = pc.utf8_slice_codeunits(bound, 0, _MOST_CHARACTERS)
            cut = pc.if_else(pc.equal(cut, bound), cut, pc.binary_join_element_wise(cut, "…", ""))
            text = pc.binary_join_element_wise("'", cut.cast(pa.string()), "'", "")
        elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            # Arrow has no kernel for hexadecimal text; this loop is only used for explanations.
            values = bound.to_pylist()
            text = pa.array([None if each is None else f"X'{each[:16].hex().upper()}'" for each in values], pa.string())
        elif pa.types.is_timestamp(kind):
            naive = bound.view(pa.int64()).view(pa.timestamp(kind.unit))
            text = pc.replace_substring_regex(naive.cast(pa.string()), r"\.0+$", "")
            text = text if kind.tz is None else pc.binary_join_element_wise(text, "Z", "")
        else:
            text = bound.cast(pa.string())
    except pa.ArrowException:
        text = pa.nulls(len(bound), pa.string())
    return pc.fill_null(text, "?")


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def _joined(pieces: Sequence[pa.Array], separator: str) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, separator)


def _objects(text: pa.Array) -> npt.NDArray[np.object_]:
    values: npt.NDArray[np.object_] = text.to_numpy(zero_copy_only=False)
    return values
