"""Laws of pruning, against a row-by-row evaluator with Spark's semantics."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Column,
    ColumnLeaf,
    ColumnPath,
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
    Unknown,
    Value,
    if_else,
)
from dbt.adapters.zlayout.predicate.normal_form import normal_form, push_not, simplify
from dbt.adapters.zlayout.pruning.cost_limits import Limits, cost_of, limited
from dbt.adapters.zlayout.pruning.evaluation import verdicts
from dbt.adapters.zlayout.pruning.reasons import explained_verdicts
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict

NAN, INFINITY = float("nan"), float("inf")
UTC_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
EPOCH = UTC_EPOCH.replace(tzinfo=None)
STEP = timedelta(days=40_000, microseconds=1)
NINES = "9" * 34 + ".9999"

# Few values of each type, so that rows, bounds and constants meet; each in Spark's order but for -0.0 = 0.0.
POOLS: Mapping[pa.DataType, tuple[Any, ...]] = {
    pa.bool_(): (False, True),
    pa.int8(): (-128, -1, 0, 1, 127),
    pa.int64(): (-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1),
    pa.float32(): (-INFINITY, -1.5, -0.0, 0.0, 0.25, INFINITY, NAN),
    pa.float64(): (-INFINITY, -1e300, -1.5, -0.0, 0.0, 5e-324, 1.5, INFINITY, NAN),
    pa.decimal128(38, 4): tuple(map(Decimal, ("-" + NINES, "-0.0001", "0", "0.0001", NINES))),
    pa.date32(): (date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)),
    pa.timestamp("us"): (EPOCH - STEP, EPOCH, EPOCH + timedelta(microseconds=1), EPOCH + STEP),
    pa.timestamp("us", "UTC"): (UTC_EPOCH - STEP, UTC_EPOCH, UTC_EPOCH + timedelta(microseconds=1), UTC_EPOCH + STEP),
    pa.time64("us"): (time(0), time(0, 0, 0, 1), time(12), time(23, 59, 59, 999_999)),
    pa.duration("us"): tuple(timedelta(microseconds=each) for each in (-(2**62), -1, 0, 1, 2**62)),
    pa.string(): ("", "a", "aa", "ab", "ab\U0010ffff", "b", "z", "é", "\uffff", "\U00010000", "\U0010ffff"),
    pa.binary(): (b"", b"\x00", b"a", b"a\xff", b"b", b"\x80", b"\xff", b"\xff\xff"),
}
COLUMNS = ("x", "y")


def order_key(value: Any) -> Any:
    """Sorts as Spark does: NaN above all numbers, strings by their bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


# ---------------------------------------------------------------------------------------------------- the oracle


def compare(op: Op, left: Any, right: Any) -> bool | None:
    if op in (Op.EQ_NULL_SAFE, Op.NE_NULL_SAFE):
        same = left is None and right is None if None in (left, right) else order_key(left) == order_key(right)
        return same if op is Op.EQ_NULL_SAFE else not same
    if left is None or right is None:
        return None
    a, b = order_key(left), order_key(right)
    return {
        Op.EQ: a == b,
        Op.NE: a != b,
        Op.LT: a < b,
        Op.LE: a <= b,
        Op.GT: a > b,
        Op.GE: a >= b,
    }[op]


def negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def evaluate(expr: Expr, row: Mapping[str, Any]) -> bool | None:  # noqa: PLR0911 - one return a kind of node
    """The truth of an expression for one row."""
    match expr:
        case And(children):
            truths = [evaluate(child, row) for child in children]
            return False if False in truths else (None if None in truths else True)
        case Or(children):
            truths = [evaluate(child, row) for child in children]
            return True if True in truths else (None if None in truths else False)
        case Not(child):
            return negated(evaluate(child, row))
        case IsTrue(child):
            return evaluate(child, row) is True
        case IsNotTrue(child):
            return evaluate(child, row) is not True
        case Constant(value):
            return value
        case Unknown(text):
            truth: bool | None = (True, False, None)[(row["salt"] + text.count("f")) % 3]
            return negated(truth) if text.startswith("NOT") else truth
        case Same(readings):
            return evaluate(readings[0], row)
        case Evaluated(_, Column(path), _, is_negated):
            found = engine_truth(row[path[0]])
            return negated(found) if is_negated else found
    return evaluate_leaf(expr, row)


def engine_truth(value: Any) -> bool | None:
    """A truth that follows no order, and tells -0.0 from 0.0."""
    if isinstance(value, Decimal):
        value = value.normalize()
    text = repr(value.replace(tzinfo=None) if isinstance(value, datetime) else value)
    return (True, False, None)[zlib.crc32(text.encode(errors="surrogatepass")) % 3]


def engine(values: pa.Array) -> npt.NDArray[np.int8]:
    """The evaluation of `engine_truth`; some values raise an error."""
    found = [engine_truth(each) for each in values.to_pylist()]
    unknown = [zlib.crc32(repr(each).encode(errors="surrogatepass")) % 7 == 0 for each in values.to_pylist()]
    numbers = [-1 if fails else 2 if each is None else int(each) for each, fails in zip(found, unknown, strict=True)]
    return np.array(numbers, dtype=np.int8)


def engine_without_errors(values: pa.Array) -> npt.NDArray[np.int8]:
    found = map(engine_truth, values.to_pylist())
    return np.array([2 if each is None else int(each) for each in found], dtype=np.int8)


def evaluate_leaf(expr: Expr, row: Mapping[str, Any]) -> bool | None:
    assert isinstance(expr, ColumnLeaf)
    operand = expr.operand
    found = row[operand.path[0]] if isinstance(operand, Column) else operand.scalar.as_py()
    match expr:
        case IsNull() | IsNotNull():
            return (found is None) == isinstance(expr, IsNull)
        case Compare(op, _, value):
            return compare(op, found, value.as_py())
        case In(_, values, has_null) | NotIn(_, values, has_null):
            truth = evaluate_in(found, values.to_pylist(), has_null)
            return truth if isinstance(expr, In) else negated(truth)
        case StartsWith(_, prefix) | NotStartsWith(_, prefix):
            truth = None if None in (found, prefix.as_py()) else found.startswith(prefix.as_py())
            return truth if isinstance(expr, StartsWith) else negated(truth)


def evaluate_in(value: Any, members: Sequence[Any], has_null: bool) -> bool | None:
    if value is None:
        return None
    if any(compare(Op.EQ, value, member) for member in members):
        return True
    return None if has_null else False


# ---------------------------------------------------------------------------------------------------- statistics


@dataclass(frozen=True)
class FileStatistics:
    row_count: pa.Array
    columns: Mapping[ColumnPath, ColumnBounds]

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        return self.columns.get(path)


Rows = list[dict[str, Any]]
Types = Mapping[str, pa.DataType]


def column_bounds(kind: pa.DataType, name: str, files: Sequence[Rows]) -> ColumnBounds:
    """Complete and exact statistics of a column."""
    values = [[row[name] for row in rows] for rows in files]
    nulls = [each.count(None) for each in values]
    nans = [sum(isinstance(v, float) and math.isnan(v) for v in each) for each in values]
    numbers = [[v for v in each if v is not None and not (isinstance(v, float) and math.isnan(v))] for each in values]
    low = [min(each, key=order_key, default=None) for each in numbers]
    high = [max(each, key=order_key, default=None) for each in numbers]
    exact = pa.array([bool(each) for each in numbers])
    return ColumnBounds(kind, pa.array(low, kind), pa.array(high, kind), exact, exact, pa.array(nulls), pa.array(nans))


def complete(types: Types, files: Sequence[Rows]) -> FileStatistics:
    columns = {(name,): column_bounds(kind, name, files) for name, kind in types.items()}
    return FileStatistics(pa.array([len(rows) for rows in files], pa.int64()), columns)


def lost(array: pa.Array, keep: Sequence[bool]) -> pa.Array:
    return pa.array([v if kept else None for v, kept in zip(array.to_pylist(), keep, strict=True)], array.type)


@st.composite
def with_losses(draw: st.DrawFn, statistics: FileStatistics) -> FileStatistics:
    """Some statistics forgotten, file by file."""
    count = len(statistics.row_count)
    keep = st.lists(st.booleans(), min_size=count, max_size=count)
    columns = {}
    for path, bounds in statistics.columns.items():
        if draw(st.integers(0, 9)) == 0:
            continue
        arrays = {name: array for name, array in vars(bounds).items() if name != "type"}
        columns[path] = replace(bounds, **{name: lost(array, draw(keep)) for name, array in arrays.items()})
    return FileStatistics(lost(statistics.row_count, draw(keep)), columns)


@st.composite
def with_loose_bounds(draw: st.DrawFn, statistics: FileStatistics) -> FileStatistics:
    """Some bounds moved outward and marked as not exact."""
    columns = {}
    for path, bounds in statistics.columns.items():
        pool = [v for v in POOLS[bounds.type] if not (isinstance(v, float) and math.isnan(v))]
        low, high = bounds.minimum.to_pylist(), bounds.maximum.to_pylist()
        low_exact, high_exact = bounds.minimum_exact.to_pylist(), bounds.maximum_exact.to_pylist()
        for i in range(len(low)):
            if low[i] is not None and draw(st.booleans()):
                below = [v for v in pool if order_key(v) <= order_key(low[i])]
                low[i], low_exact[i] = draw(st.sampled_from(below)), False
            if high[i] is not None and draw(st.booleans()):
                above = [v for v in pool if order_key(v) >= order_key(high[i])]
                high[i], high_exact[i] = draw(st.sampled_from(above)), False
        columns[path] = replace(
            bounds,
            minimum=pa.array(low, bounds.type),
            maximum=pa.array(high, bounds.type),
            minimum_exact=pa.array(low_exact, pa.bool_()),
            maximum_exact=pa.array(high_exact, pa.bool_()),
        )
    return FileStatistics(statistics.row_count, columns)


# ---------------------------------------------------------------------------------------------------- strategies


@st.composite
def leaf(draw: st.DrawFn, types: Types, unknowns: bool) -> Expr:
    name = draw(st.sampled_from(COLUMNS))
    kind = types[name]
    pool = st.sampled_from(POOLS[kind])
    constant = (st.none() | pool).map(lambda value: Value(pa.scalar(value, kind)))
    column = draw(st.just(Column((name,), kind)) | st.just(Column((name,), kind)) | constant)
    listed = st.lists(pool, max_size=4).map(lambda values: pa.array(values, kind))
    scalar = (st.none() | pool).map(lambda value: pa.scalar(value, kind))
    kinds: list[st.SearchStrategy[Expr]] = [
        st.builds(Compare, st.sampled_from(Op), st.just(column), scalar),
        st.builds(Compare, st.sampled_from(Op), st.just(column), scalar),
        st.builds(In, st.just(column), listed, st.booleans()),
        st.builds(NotIn, st.just(column), listed, st.booleans()),
        st.sampled_from([IsNull(column), IsNotNull(column), *map(Constant, (True, False, None))]),
    ]
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        kinds += [st.builds(StartsWith, st.just(column), scalar), st.builds(NotStartsWith, st.just(column), scalar)]
    if unknowns:
        kinds.append(st.builds(Unknown, st.sampled_from(["f", "ff", "fff"]), st.just("a test")))
        kinds.append(st.just(Evaluated(Unknown("g(x)", "a test"), Column((name,), kind), engine)))
    return draw(st.one_of(kinds))


def expressions(types: Types, *, unknowns: bool = True) -> st.SearchStrategy[Expr]:
    def combined(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        several = st.lists(inner, max_size=3).map(tuple)
        one_child = (
            inner.map(lambda child: Same((child, normal_form(child))))
            | st.builds(Not, inner)
            | st.builds(IsTrue, inner)
            | st.builds(IsNotTrue, inner)
        )
        return one_child | st.builds(And, several) | st.builds(Or, several) | st.builds(if_else, inner, inner, inner)

    return st.recursive(leaf(types, unknowns), combined, max_leaves=6)


column_types = st.fixed_dictionaries({name: st.sampled_from(list(POOLS)) for name in COLUMNS})


@st.composite
def rows_of(draw: st.DrawFn, types: Types, size: int) -> Rows:
    """Rows of one file; often of few values or only nulls, as clustered files are."""
    rows: Rows = [{"salt": draw(st.integers(0, 2))} for _ in range(size)]
    for name, kind in types.items():
        here = draw(st.lists(st.none() | st.sampled_from(POOLS[kind]), min_size=1, max_size=3))
        for row in rows:
            row[name] = draw(st.sampled_from(here))
    return rows


@st.composite
def cases(draw: st.DrawFn) -> tuple[Types, list[Rows], Expr]:
    types = draw(column_types)
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    return types, [draw(rows_of(types, size)) for size in sizes], draw(expressions(types))


def assert_sound(found: Sequence[int], files: Sequence[Rows], expr: Expr) -> None:
    for verdict, rows in zip(found, files, strict=True):
        truths = [evaluate(expr, row) for row in rows]
        if verdict == Verdict.SKIP:
            assert True not in truths
        elif verdict == Verdict.ALL_ROWS:
            assert all(truth is True for truth in truths)


# ---------------------------------------------------------------------------------------------------- laws

# Other examples in each run; `make test-all` and the mutants take twice as many.
many = settings(max_examples=150 if os.environ.get("ZLAYOUT_LAWS") == "full" else 75, deadline=None)


@many
@given(cases())
def test_no_skipped_file_has_a_matching_row_and_all_rows_means_all_rows(case: tuple[Types, list[Rows], Expr]) -> None:
    types, files, expr = case
    assert_sound(verdicts(expr, complete(types, files)).tolist(), files, expr)


@many
@given(st.data())
def test_the_engine_decides_about_a_file_with_one_value(data: st.DataObject) -> None:
    types = data.draw(column_types)
    value = data.draw(st.sampled_from(POOLS[types["x"]]))
    rows = [{"salt": 0, "x": value, "y": None}]
    condition = Evaluated(Unknown("g(x)", "a test"), Column(("x",), types["x"]), engine_without_errors)
    expected = Verdict.ALL_ROWS if engine_truth(value) else Verdict.SKIP
    if value == 0 and isinstance(value, float):
        expected = Verdict.READ
    for expr, wanted in ((condition, expected), (Not(Not(condition)), expected)):
        assert verdicts(expr, complete(types, [rows])).tolist() == [wanted]


@many
@given(st.data())
def test_loose_and_missing_statistics_stay_sound(data: st.DataObject) -> None:
    types, files, expr = data.draw(cases())
    loose = data.draw(with_loose_bounds(complete(types, files)))
    assert_sound(verdicts(expr, loose).tolist(), files, expr)
    assert_sound(verdicts(expr, data.draw(with_losses(loose))).tolist(), files, expr)


@many
@given(st.data())
def test_a_lost_statistic_never_decides_more(data: st.DataObject) -> None:
    types, files, expr = data.draw(cases())
    statistics = data.draw(with_loose_bounds(complete(types, files)))
    with_all, with_less = verdicts(expr, statistics), verdicts(expr, data.draw(with_losses(statistics)))
    for more, less in zip(with_all.tolist(), with_less.tolist(), strict=True):
        assert less in (more, Verdict.READ) or (more, less) == (Verdict.SKIP, Verdict.ALL_ROWS)


@many
@given(st.data())
def test_a_file_of_one_row_is_decided_completely(data: st.DataObject) -> None:
    types = data.draw(column_types)
    files = [data.draw(rows_of(types, 1)) for _ in range(3)]
    expr = data.draw(expressions(types, unknowns=False))
    expected = [Verdict.ALL_ROWS if evaluate(expr, rows[0]) else Verdict.SKIP for rows in files]
    assert verdicts(expr, complete(types, files)).tolist() == expected


@many
@given(st.data())
def test_normal_forms_keep_the_truth_of_every_row(data: st.DataObject) -> None:
    types = data.draw(column_types)
    expr = data.draw(expressions(types))
    row = data.draw(rows_of(types, 1))[0]
    truth = evaluate(expr, row)
    assert evaluate(push_not(expr), row) is truth
    assert evaluate(push_not(Not(expr)), row) is negated(truth)
    assert evaluate(simplify(expr), row) is truth
    assert evaluate(normal_form(expr), row) is truth


@many
@given(st.data())
def test_prune_agrees_with_verdicts_and_each_conjunct_with_itself_alone(data: st.DataObject) -> None:
    types, files, expr = data.draw(cases())
    statistics = data.draw(with_losses(complete(types, files)))
    pruned = explained_verdicts(expr, statistics, reasons=True)
    assert pruned.verdict.tolist() == verdicts(expr, statistics).tolist()
    assert pruned.reason.null_count == 0
    assert all(text for text in pruned.reason.to_pylist())
    for report in pruned.conjuncts:
        assert report.usable == (report.why_not is None)
        assert report.usable or report.skips == 0


@many
@given(st.data())
def test_bounded_predicates_stay_sound_and_what_fits_is_decided_as_before(data: st.DataObject) -> None:
    types, files, expr = data.draw(cases())
    statistics = complete(types, files)
    most = data.draw(st.integers(1, 30))
    limits = Limits(parts=most, depth=data.draw(st.integers(1, 8)), calls=1, vectors=data.draw(st.integers(1, 60)))
    found = limited(expr, len(files), limits)
    decided = verdicts(found, statistics)
    assert_sound(decided.tolist(), files, expr)
    for exact, loose, rows in zip(verdicts(expr, statistics).tolist(), decided.tolist(), files, strict=True):
        assert loose in (exact, Verdict.READ) or not rows
    assert verdicts(limited(expr, len(files)), statistics).tolist() == verdicts(expr, statistics).tolist()


@many
@given(st.data())
def test_normal_forms_are_no_larger_than_the_cost_says(data: st.DataObject) -> None:
    expr = data.draw(expressions(data.draw(column_types)))
    before, after = cost_of(expr), cost_of(normal_form(expr))
    # A comparison with NULL may become a test for null, and an AND of nothing TRUE: never more than there was.
    assert after.parts <= before.parts
    assert after.depth <= before.depth


@many
@given(st.data())
def test_lists_made_of_many_equalities_keep_the_truth_of_every_row(data: st.DataObject) -> None:
    types = data.draw(column_types)
    equalities = [
        Compare(Op.EQ, Column((name,), types[name]), pa.scalar(value, types[name]))
        for name in COLUMNS
        for value in data.draw(st.lists(st.none() | st.sampled_from(POOLS[types[name]]), max_size=20))
    ]
    others = data.draw(st.lists(expressions(types), max_size=3))
    expr = Or((*equalities, *others, *equalities))
    for row in data.draw(rows_of(types, 4)):
        assert evaluate(normal_form(expr), row) is evaluate(expr, row)
        assert evaluate(normal_form(Not(expr)), row) is evaluate(Not(expr), row)
