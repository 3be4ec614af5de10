"""Evaluation of a predicate in normal form over many files at once: leaf rules combined by AND and OR.

If a file may have only a few values of a term, the engine evaluates a condition on each of them. This works for any
function, whether or not it keeps the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.predicate.expr import (
    EXPRESSION,
    And,
    Call,
    Column,
    ColumnLeaf,
    ColumnPath,
    Compare,
    Constant,
    Evaluated,
    Evaluator,
    Expr,
    Function,
    In,
    IsNotTrue,
    IsNull,
    IsTrue,
    Not,
    Op,
    Or,
    Same,
    Term,
    Unknown,
    Value,
    column_of,
    columns_of,
)
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.predicate.normal_form import normal_form
from dbt.adapters.zlayout.predicate.remedies import Remedy
from dbt.adapters.zlayout.pruning.leaves import match
from dbt.adapters.zlayout.pruning.propagation import propagate
from dbt.adapters.zlayout.pruning.propagation.monotone import numbers
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds, Membership, Statistics, Together
from dbt.adapters.zlayout.pruning.statistics.validation import (
    Counts,
    Facts,
    counts_contradict,
    facts_of,
    facts_of_value,
    flags,
    is_ordered,
    row_counts,
    valid,
)
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags, Match, WhyNot, all_of, any_of, either_of

MOST_IN_FILE = 62
"""The most values between the bounds of a file: the days of two months."""
_MOST_VALUES = 5_000


@dataclass(frozen=True)
class ByValue:
    """What the values of each file prove about a condition.

    Attributes:
        possible: Some row may make it TRUE.
        certain: Every row makes it TRUE.
        decided: The condition was evaluated on all values that the file may have.
    """

    possible: Flags
    certain: Flags
    decided: Flags


def by_value(facts: Facts, evaluate: Evaluator, *, wanted: bool) -> ByValue | None:
    """Evaluates a condition on the values of files.

    Args:
        facts: What is known about the term that alone decides about the condition.
        evaluate: The evaluation of the condition.
        wanted: The truth value for which a row matches.

    Returns:
        None if no file has few values, or all files together have too many.
    """
    few, low, high, distinct = _values(facts)
    decided = few | ~facts.may_have_value
    if not decided.any() or len(distinct) > _MOST_VALUES:
        return None
    kind, nan = facts.minimum.type, pa.types.is_floating(facts.minimum.type)
    others = pa.array([None, float("nan")] if nan else [None], kind)
    truth = evaluate(pa.concat_arrays([distinct, others]))
    hit, sure = (truth == wanted) | (truth < 0), truth == wanted
    ends = np.zeros((2, len(distinct) + 1), dtype=np.int64)
    np.cumsum([hit[: len(distinct)], sure[: len(distinct)]], axis=1, out=ends[:, 1:])
    hits, sures = ends[:, high] - ends[:, low]
    possible = facts.may_have_value & (hits > 0)
    certain = ~facts.may_have_value | (sures == high - low)
    kinds = [(facts.may_be_null, len(distinct)), (facts.may_be_nan, len(distinct) + 1)]
    for may_be, position in kinds[: len(others)]:
        possible, certain = possible | (may_be & hit[position]), certain & (~may_be | sure[position])
    return ByValue(possible | ~decided, certain & decided, decided)


def _values(facts: Facts) -> tuple[Flags, npt.NDArray[np.int64], npt.NDArray[np.int64], pa.Array]:
    """Returns which files have few values, where these begin and end among all of them, and all of them, ascending."""
    kind, both = facts.minimum.type, valid(facts.minimum) & valid(facts.maximum)
    if not is_ordered(kind):
        return np.zeros_like(both), *_nowhere(len(both)), pa.nulls(0, kind)
    countable = pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_boolean(kind)
    if not countable:
        few = both & flags(pc.equal(facts.minimum, facts.maximum), when_unknown=False)
        if pa.types.is_floating(kind):
            # 0.0 and -0.0 are equal, so bounds do not show which of them a file has.
            few &= ~flags(pc.equal(facts.minimum, pa.scalar(0, kind)), when_unknown=False)
        encoded = facts.minimum.filter(pa.array(few)).dictionary_encode()
        low, high = _nowhere(len(few))
        low[few] = encoded.indices.to_numpy()
        high[few] = low[few] + 1
        return few, low, high, encoded.dictionary
    least, most = (numbers(side).astype(np.int64) for side in (facts.minimum, facts.maximum))
    few = both & (most.astype(np.uint64) - least.astype(np.uint64) < MOST_IN_FILE)
    pairs = np.unique(np.stack([least[few], most[few]], axis=1), axis=0)
    # Counted from the first value of each: the end of the last range may be beyond the type.
    ranges = [first + np.arange(last - first + 1) for first, last in pairs[:_MOST_VALUES].tolist()]
    distinct = np.unique(np.concatenate([np.zeros(0, np.int64), *ranges]))
    if len(pairs) > _MOST_VALUES:
        return np.zeros_like(few), *_nowhere(len(few)), pa.nulls(0, kind)
    low, high = np.searchsorted(distinct, least, "left"), np.searchsorted(distinct, most, "right")
    low, high = (np.where(few, side, 0) for side in (low, high))
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    return few, low, high, pa.array(distinct, pa.int64()).cast(width).cast(kind)


def _nowhere(count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)


def verdicts(expr: Expr, statistics: Statistics) -> npt.NDArray[np.int8]:
    """Returns a verdict for each file.

    Args:
        expr: Any predicate; parts that are not understood keep files.
        statistics: The statistics of n files or partitions.

    Returns:
        int8, length n, each a `Verdict`.
    """
    return verdicts_of_normal(normal_form(expr), statistics)


def verdicts_of_normal(
    normal: Expr, statistics: Statistics, memberships: Sequence[Membership] = ()
) -> npt.NDArray[np.int8]:
    """Returns the same as `verdicts` for a predicate that is in normal form already.

    Args:
        statistics: The statistics of n files or partitions.
        memberships: Which values each of the files may hold, as far as that is known.
    """
    return Evaluation(normal, statistics, memberships).match(normal).verdicts()


class Evaluation:
    """Evaluates parts of one predicate; validates the statistics of each column once.

    Args:
        statistics: The statistics of the files.
        memberships: Which values each of the files may hold, as far as that is known.

    Attributes:
        may_have_rows: False for files that are known to be empty.
    """

    def __init__(self, expr: Expr, statistics: Statistics, memberships: Sequence[Membership] = ()) -> None:
        self.file_count = len(statistics.row_count)
        self._memberships = tuple(memberships)
        self._held: dict[int, tuple[Expr, tuple[tuple[Membership, Flags], ...]]] = {}
        self._together: dict[int, tuple[Expr, tuple[tuple[Membership, Together], ...]]] = {}
        found = {path: statistics.column(path) for path in columns_of(expr)}
        self._bounds: dict[ColumnPath, ColumnBounds] = {path: each for path, each in found.items() if each is not None}
        rows = row_counts(statistics.row_count)
        self._contradicted = {path: counts_contradict(bounds, rows) for path, bounds in self._bounds.items()}
        # Either side of a contradiction may be wrong, so a contradicted row count proves nothing about any column.
        self._rows = reduce(Counts.without, self._contradicted.values(), rows)
        self._facts: dict[Term, Facts | None] = {}
        self._matches: dict[int, tuple[Expr, Match]] = {}
        self._by_value: dict[int, tuple[Expr, ByValue | None]] = {}
        self.may_have_rows: Flags = ~(self._rows.known & (self._rows.values == 0))

    def match(self, expr: Expr) -> Match:
        """Returns for each file what is known about an expression, which must be a part of the predicate."""
        known = self._matches.get(id(expr))
        if known is None:
            # Keeps a reference to the expression so that its id is not reused.
            known = self._matches[id(expr)] = (expr, self._match(expr))
        return known[1]

    def _match(self, expr: Expr) -> Match:  # noqa: PLR0911 - one return per kind of node
        match expr:
            case And(children):
                return self._all_of(expr) if children else self._everywhere()
            case Or(children):
                return any_of([self.match(child) for child in children]) if children else self._nowhere()
            case IsTrue(child):
                return self.match(child)
            case IsNotTrue(child):
                return self.match(child).none_true(self.may_have_rows)
            case Constant(value):
                return self._everywhere() if value else self._nowhere()
            case Same(children):
                return either_of([self.match(child) for child in children])
            case Evaluated():
                return self._evaluated(expr)
            case Unknown(text, reason, remedy):
                why = f"not understood: {text} ({reason})" if reason else f"not understood: {text}"
                return self._unknown(WhyNot(why, remedy))
            case Not():
                return self._unknown(WhyNot(f"not in normal form: {expr.sql()}"))
            case _:
                return self._leaf(expr)  # type: ignore[arg-type]  # every other node is a leaf on a column

    def _evaluated(self, expr: Evaluated) -> Match:
        known, found = self.match(expr.child), self.by_value(expr)
        if found is None:
            return known
        possible, certain = known.possible & found.possible, known.certain | found.certain
        return Match(possible & self.may_have_rows, certain, None if found.decided.any() else known.why_not)

    def by_value(self, expr: Evaluated) -> ByValue | None:
        """Returns what the engine's evaluation proves for files with few values; None if no file has so few."""
        if id(expr) not in self._by_value:
            facts = self.facts(expr.term)
            found = None if facts is None else by_value(facts, expr.evaluate, wanted=not expr.negated)
            self._by_value[id(expr)] = (expr, found)
        return self._by_value[id(expr)][1]

    def facts(self, term: Term) -> Facts | None:
        """Returns the validated statistics of a term; None if no file has any."""
        if term not in self._facts:
            self._facts[term] = self._validated(term)
        return self._facts[term]

    def _validated(self, term: Term) -> Facts | None:
        match term:
            case Value(scalar):
                return facts_of_value(scalar, self.file_count)
            case Call(function, argument):
                facts = self.facts(argument)
                return None if facts is None else self._propagated(function, facts)
            case Column(path, kind):
                bounds = self._bounds.get(path)
                return None if bounds is None else facts_of(bounds, kind, self._rows, self._contradicted[path])

    def _propagated(self, function: Function, facts: Facts) -> Facts | None:
        try:
            return propagate(function, facts)
        except pa.ArrowException:
            # Arrow lacks the operation for this type or in this version, or a string is not UTF-8.
            return None

    def may_hold(self, leaf: Expr) -> Sequence[tuple[Membership, Flags]]:
        """Returns for each file whether it may hold a value that a leaf looks for, apart from its bounds.

        Nothing if the leaf looks for no values, or if nothing is known about those of its column.
        """
        if not self._memberships:
            return ()
        if id(leaf) not in self._held:
            answers = ((each, _held(leaf, each)) for each in self._memberships)
            self._held[id(leaf)] = (leaf, tuple((each, held) for each, held in answers if held is not None))
        return self._held[id(leaf)][1]

    def lacking(self, leaf: Expr) -> Sequence[tuple[Membership, Flags]]:
        """Returns for which files only their bounds say whether they may hold a value that a leaf looks for.

        Nothing if the leaf looks for no values, or if nothing more is known about any file.
        """
        wanted = values_of(leaf)
        if wanted is None:
            return ()
        answers = ((each, each.lacks(wanted[0])) for each in self._memberships if _tells(leaf, each))
        return tuple((each, lacks) for each, lacks in answers if lacks is not None)

    def together(self, expr: Expr) -> Sequence[tuple[Membership, Together]]:
        """Returns what is known about the columns of several parts of a conjunction together."""
        if not self._memberships or not isinstance(expr, And):
            return ()
        if id(expr) not in self._together:
            wanted = dict(found for child in reversed(expr.children) if (found := values_of(child)) is not None)
            answers = [(each, one) for each in self._memberships for one in each.may_hold_together(wanted)]
            self._together[id(expr)] = (expr, tuple(answers))
        return self._together[id(expr)][1]

    def _all_of(self, expr: And) -> Match:
        found = all_of([self.match(child) for child in expr.children])
        for _, answer in self.together(expr):
            found = Match(found.possible & answer.possible, found.certain, found.why_not)
        return found

    def _leaf(self, leaf: ColumnLeaf) -> Match:
        found = self.bounded(leaf)
        for _, held in self.may_hold(leaf):
            found = Match(found.possible & held, found.certain)
        return found

    def bounded(self, leaf: ColumnLeaf) -> Match:
        """Returns for each file what its bounds and counts prove about a leaf."""
        operand = leaf.operand
        try:
            facts = self.facts(operand)
            if facts is None:
                return self._unknown(self._why_nothing(operand))
            if self.file_count and not facts.informed.any():
                return self._unknown(self._why_uninformed(operand))
            found = match(leaf, facts)
            if isinstance(operand, Call) and isinstance(leaf, Compare | In) and found is not None:
                found = self._unless_unbounded(found, operand, facts)
        except pa.ArrowException as error:
            # Arrow lacks the operation for this type or in this version.
            return self._unknown(WhyNot(f"values of {operand.sql()} cannot be compared ({type(error).__name__})"))
        other_type = WhyNot(f"{operand.sql()} of type {operand.type} is compared with another type")
        return found or self._unknown(other_type)

    def _unless_unbounded(self, found: Match, operand: Call, facts: Facts) -> Match:
        """Says of a condition on a function that it skips nothing if the function has no bounds in any file."""
        bounded = (valid(facts.minimum) | valid(facts.maximum)).any()
        if bounded or not facts.may_have_value.all() or found.certain.any():
            return found
        return replace(found, why_not=WhyNot(f"no file has bounds of {operand.sql()}"))

    def _why_nothing(self, operand: Term) -> WhyNot:
        column = column_of(operand)
        if column is not None and self.facts(column) is None:
            bounds = self._bounds.get(column.path)
            if bounds is None:
                return _no_statistics(column)
            of_type = f"statistics of column {_name_of(column)} are of type {bounds.type}"
            return WhyNot(f"{of_type}, the column of {column.type}", Remedy.REWRITE_FILES)
        return WhyNot(f"no rule derives bounds of {operand.sql()} from those of its argument", Remedy.STORE_VALUE)

    def _why_uninformed(self, operand: Term) -> WhyNot:
        column = column_of(operand)
        known = None if column is None else self.facts(column)
        if column is not None and (known is None or not known.informed.any()):
            return _no_statistics(column)
        return WhyNot(f"{operand.sql()} may overflow, or a file may hold values for which it is not defined")

    def _everywhere(self) -> Match:
        return Match(self.may_have_rows, np.ones(self.file_count, dtype=np.bool_))

    def _nowhere(self) -> Match:
        nothing = np.zeros(self.file_count, dtype=np.bool_)
        return Match(nothing, nothing)

    def _unknown(self, why_not: WhyNot) -> Match:
        return Match(self.may_have_rows, np.zeros(self.file_count, dtype=np.bool_), why_not)


def values_of(leaf: Expr) -> tuple[Column, pa.Array | pa.Scalar] | None:
    """Returns the column and the values of a leaf that is TRUE only for rows with one of them; None for any other."""
    match leaf:
        case Compare(Op.EQ | Op.EQ_NULL_SAFE, Column() as column, value) if value.is_valid:
            return column, value
        case In(Column() as column, values):
            return column, values
        case IsNull(Column() as column):
            return column, pa.scalar(None, column.type)
    return None


def _tells(leaf: Expr, membership: Membership) -> bool:
    return membership.knows_null or not isinstance(leaf, IsNull)


def _held(leaf: Expr, membership: Membership) -> Flags | None:
    wanted = values_of(leaf)
    return None if wanted is None or not _tells(leaf, membership) else membership.may_hold(*wanted)


def _name_of(column: Column) -> str:
    return column.sql() if column.path[0] == EXPRESSION else ".".join(map(backquoted, column.path))


def _no_statistics(column: Column) -> WhyNot:
    if column.path[0] == EXPRESSION:
        return WhyNot(f"no statistics of {column.sql()}")
    return WhyNot(f"no statistics for column {_name_of(column)}", Remedy.STATS_COLUMN)
