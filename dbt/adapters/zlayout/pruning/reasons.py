"""Verdicts with reasons: a verdict per file, why it is skipped or read, what each conjunct does, and what would help.

Reasons are vectorized, and only made for explanations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Call,
    ColumnLeaf,
    Compare,
    Constant,
    Evaluated,
    Expr,
    In,
    IsNotNull,
    IsNotTrue,
    IsNull,
    IsTrue,
    NotIn,
    NotStartsWith,
    Op,
    Or,
    Same,
    StartsWith,
    Term,
    Unknown,
    leaves,
)
from dbt.adapters.zlayout.predicate.literals import literal, literals
from dbt.adapters.zlayout.predicate.normal_form import conjuncts, normal_form
from dbt.adapters.zlayout.predicate.remedies import Remedy
from dbt.adapters.zlayout.pruning.evaluation import Evaluation
from dbt.adapters.zlayout.pruning.statistics.column_bounds import Membership, Statistics
from dbt.adapters.zlayout.pruning.statistics.validation import Facts
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict
from dbt.adapters.zlayout.quantities import quoted_list

Rows = npt.NDArray[np.int64]
"""Positions of files."""

_MOST_ALTERNATIVES = 3
_MOST_COLUMNS = 3
_MOST_CHARACTERS = 40


@dataclass(frozen=True)
class ConjunctReport:
    """What one conjunct does by itself.

    Attributes:
        sql: The conjunct with NOT pushed into it.
        usable: Whether it can skip files.
        skips: Number of files that it skips by itself.
        why_not: Why it is not usable; None if it is.
        expressions: The expressions whose statistics together would let it skip files; empty if it is usable, or if no
            statistics would.
        looked_for: The column or expression whose values it looks for, if the bounds of every file include one of them
            and nothing else shows which values a file has.
        remedy: What would help; None if it is usable, or if nothing would.
    """

    sql: str
    usable: bool
    skips: int
    why_not: str | None
    expressions: tuple[str, ...] = ()
    looked_for: str | None = None
    remedy: Remedy | None = None

    @property
    def is_useless(self) -> bool:
        """Whether it cannot skip files, and no other part of the condition does so in its place."""
        return self.why_not is not None and self.remedy is not Remedy.NOT_NEEDED

    def advice(self, *, managed: bool = True) -> str | None:
        """Returns what to change, so that it skips files; None if nothing would help.

        Args:
            managed: Whether the table is managed. One that is only indexed has no statistics of expressions.
        """
        if self.looked_for is not None:
            return (
                "judging by the bounds, any file may hold the values; if each value is in few files, use a lookup "
                f"index: lookup: {quoted_list([self.looked_for])}"
            )
        if self.expressions:
            listed = quoted_list(self.expressions)
            of = "the expression" if len(self.expressions) == 1 else "all these expressions"
            return (
                f"{'' if managed else 'make the table managed, as one that is only indexed has none, then '}"
                f"ask for statistics of {of}: stats_expressions: {listed}; if = and IN look for results spread over "
                f"all files, ask for a lookup index (lookup: {listed}) or a Bloom filter (bloom: {listed}) instead"
            )
        return None if self.remedy is None else self.remedy.value


@dataclass(frozen=True)
class ExplainedVerdicts:
    """The result for n files.

    Attributes:
        verdict: int8, length n, each a `Verdict`.
        reason: string, length n; null if reasons were not requested.
        conjuncts: One report per conjunct, in the order of the predicate.
    """

    verdict: npt.NDArray[np.int8]
    reason: pa.Array
    conjuncts: tuple[ConjunctReport, ...]


def explained_verdicts(
    expr: Expr, statistics: Statistics, *, reasons: bool = False, memberships: Sequence[Membership] = ()
) -> ExplainedVerdicts:
    """Returns a verdict for each file and a report for each conjunct.

    Args:
        expr: Any predicate; each conjunct is evaluated separately.
        statistics: The statistics of n files or partitions.
        reasons: Whether to also give the reason why each file is skipped or read.
        memberships: Which values each of the files may hold, as far as that is known.

    Returns:
        The same verdicts as `evaluation.verdicts`, with the reports.

    >>> from dbt.adapters.zlayout.predicate.expr import Column, Compare, Op
    >>> from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
    >>> exact, none = pa.array([True, True]), pa.array([0, 0])
    >>> bounds = ColumnBounds(pa.int64(), pa.array([1, 50]), pa.array([40, 90]), exact, exact, none, none)
    >>> class TwoFiles:
    ...     row_count = pa.array([10, 10])
    ...     def column(self, path):
    ...         return bounds
    >>> above_60 = Compare(Op.GT, Column(("id",), pa.int64()), pa.scalar(60))
    >>> result = explained_verdicts(above_60, TwoFiles(), reasons=True)
    >>> result.verdict.tolist()
    [0, 1]
    >>> result.reason.to_pylist()
    ['id: [1, 40] has no value > 60', 'may match: id [50, 90]']
    """
    normal = normal_form(expr)
    evaluation = Evaluation(normal, statistics, memberships)
    verdict = evaluation.match(normal).verdicts()
    parts = conjuncts(normal)
    why = _file_reasons(normal, parts, evaluation, verdict) if reasons else pa.nulls(evaluation.file_count, pa.string())
    return ExplainedVerdicts(verdict, why, tuple(_report(part, evaluation) for part in parts))


def _report(part: Expr, evaluation: Evaluation) -> ConjunctReport:
    match = evaluation.match(part)
    if match.why_not is None:
        skips = int(np.count_nonzero(~match.possible))
        looked_for = None if skips else _looked_for(part, evaluation)
        return ConjunctReport(part.sql(), usable=True, skips=skips, why_not=None, looked_for=looked_for)
    return ConjunctReport(
        part.sql(),
        usable=False,
        # It can skip only files without rows, which do not count as its own.
        skips=0,
        why_not=match.why_not.text,
        expressions=_missing_expressions(part, evaluation),
        remedy=match.why_not.remedy,
    )


def _looked_for(part: Expr, evaluation: Evaluation) -> str | None:
    leaf = part
    while isinstance(leaf, Same | Evaluated):
        leaf = leaf.children[0] if isinstance(leaf, Same) else leaf.child
    if not isinstance(leaf, Compare | In) or (isinstance(leaf, Compare) and leaf.op is not Op.EQ):
        return None
    return None if evaluation.file_count <= 1 or evaluation.may_hold(leaf) else leaf.operand.sql()


def _missing_expressions(part: Expr, evaluation: Evaluation) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for leaf in leaves(part):
        if isinstance(leaf, Constant) or evaluation.match(leaf).why_not is None:
            continue
        expression = leaf.expression if isinstance(leaf, Unknown) else None
        if not isinstance(leaf, Unknown) and isinstance(leaf.operand, Call):
            expression = leaf.operand.sql()
        if expression is None:
            return ()  # statistics of the other sides of an OR do not help
        found[expression] = None
    return tuple(found)


def _file_reasons(
    normal: Expr, parts: Sequence[Expr], evaluation: Evaluation, verdict: npt.NDArray[np.int8]
) -> pa.Array:
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
    for membership, answer in evaluation.together(normal):
        rows = np.flatnonzero(undecided & ~answer.possible)
        names = ", ".join(each.sql() for each in answer.columns)
        reason[rows] = f"{names}: {membership.label} has no row with these values"
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
        return _first_reason(expr, evaluation, rows)
    if isinstance(expr, Same):
        return _first_reason(expr, evaluation, rows)
    if isinstance(expr, Evaluated):
        return _evaluated_reason(expr, evaluation, rows)
    if isinstance(expr, Or | Constant | Unknown | IsTrue | IsNotTrue):
        return _repeated(f"no row matches {expr.sql()}", len(rows))
    return _leaf_reason(expr, evaluation, rows)  # type: ignore[arg-type]  # every other node is a leaf on a column


def _first_reason(expr: And | Same, evaluation: Evaluation, rows: Rows) -> pa.Array:
    """Returns for each file the reason of the first child that is TRUE for none of its rows."""
    reason = np.full(len(rows), "", dtype=object)
    undecided = np.ones(len(rows), dtype=np.bool_)
    for child in expr.children:
        decided = undecided & ~evaluation.match(child).possible[rows]
        if decided.any():
            reason[decided] = _objects(_skip_reason(child, evaluation, rows[decided]))
            undecided &= ~decided
    return pa.array(reason, pa.string())


def _evaluated_reason(expr: Evaluated, evaluation: Evaluation, rows: Rows) -> pa.Array:
    """Returns what rules say of the files that they skip, and the values of the others."""
    by_rule = ~evaluation.match(expr.child).possible[rows]
    facts = evaluation.facts(expr.term)
    reason = np.full(len(rows), f"no row matches {expr.sql()}", dtype=object)
    if by_rule.any():
        reason[by_rule] = _objects(_skip_reason(expr.child, evaluation, rows[by_rule]))
    by_value = rows[~by_rule]
    if facts is not None and len(by_value):
        name, misses = expr.term.sql(), f" has no value for which {expr.sql()}"
        texts = [_repeated(f"{name}: ", len(by_value)), _interval(facts, by_value), _repeated(misses, len(by_value))]
        number = pa.array(facts.may_have_value[by_value])
        reason[~by_rule] = _objects(pc.if_else(number, _joined(texts, ""), f"{name}{misses}"))
    return pa.array(reason, pa.string())


def _leaf_reason(leaf: ColumnLeaf, evaluation: Evaluation, rows: Rows) -> pa.Array:
    reason, left = _bounds_reason(leaf, evaluation, rows), evaluation.bounded(leaf).possible[rows]
    for membership, held in evaluation.may_hold(leaf):
        text = f"{leaf.operand.sql()}: {membership.label}{_misses(leaf)}"
        reason = pc.if_else(pa.array(left & ~held[rows]), text, reason)
        left = left & held[rows]
    return reason


def _bounds_reason(leaf: ColumnLeaf, evaluation: Evaluation, rows: Rows) -> pa.Array:
    facts, name = evaluation.facts(leaf.operand), leaf.operand.sql()
    if facts is None:
        return _repeated(f"no row matches {leaf.sql()}", len(rows))
    if isinstance(leaf, IsNull):
        return _repeated(f"{name}: no value is null", len(rows))
    number, nan = pa.array(facts.may_have_value[rows]), pa.array(facts.may_be_nan[rows])
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
    pieces += _filter_pieces(parts, evaluation, rows)
    if len(operands) > _MOST_COLUMNS:
        pieces.append(_repeated(f"{len(operands) - _MOST_COLUMNS} more columns", len(rows)))
    if not_understood and not operands:
        pieces.append(_repeated(f"not understood: {not_understood[0].text}", len(rows)))
    if not pieces:
        return _repeated("no condition applies to it" if not parts else head, len(rows))
    joined = pc.binary_join_element_wise(*pieces, ", ", null_handling="skip")
    return _joined([_repeated(f"{head}: ", len(rows)), joined], "")


def _filter_pieces(parts: Sequence[Expr], evaluation: Evaluation, rows: Rows) -> list[pa.Array]:
    """Returns a piece for each column whose values are known for other files; null for files where they are known."""
    lacking = {}
    for leaf in (leaf for part in parts for leaf in leaves(part)):
        for membership, lacks in evaluation.lacking(leaf):
            if lacks[rows].any():
                name = leaf.operand.sql()  # type: ignore[union-attr]  # it looks for values
                lacking[f"{name} {membership.lack}"] = pa.array(lacks[rows])
    nothing = pa.scalar(None, pa.string())
    return [pc.if_else(lacks, text, nothing) for text, lacks in lacking.items()]


def _operand_piece(operand: Term, evaluation: Evaluation, rows: Rows) -> pa.Array:
    facts, name = evaluation.facts(operand), operand.sql()
    nothing = _repeated(f"no statistics for {name}", len(rows))
    if facts is None:
        return nothing
    known = _joined([_repeated(f"{name} ", len(rows)), _interval(facts, rows)], "")
    known = pc.if_else(pa.array(facts.may_have_value[rows]), known, f"{name} has only nulls")
    if facts.may_be_nan[rows].any():
        only_nan = pa.array(~facts.may_have_value[rows] & facts.may_be_nan[rows])
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


def without_condition(why_not: str, sql: str) -> str:
    """Returns a reason from a condition's report without the condition, for a line that shows it already.

    >>> without_condition("not understood: f(c) (`F` has no rule)", "f(c)")
    '`F` has no rule'
    """
    known = f"not understood: {sql} ("
    return why_not[len(known) : -1] if why_not.startswith(known) else why_not
