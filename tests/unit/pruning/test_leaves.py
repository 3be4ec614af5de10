"""What one condition says of one file, for every kind of statistic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Column,
    ColumnPath,
    Compare,
    Expr,
    In,
    IsNotNull,
    IsNull,
    Not,
    NotIn,
    Op,
    Or,
    StartsWith,
    Unknown,
)
from dbt.adapters.zlayout.pruning.evaluation import verdicts
from dbt.adapters.zlayout.pruning.reasons import explained_verdicts
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict

SKIP, READ, ALL_ROWS = Verdict
NAN = float("nan")
UNKNOWN = None
INT = pa.int32()
FLOAT = pa.float64()
TEXT = pa.string()


@dataclass
class OneFile:
    """Statistics of a single file."""

    rows: int | None
    columns: Mapping[ColumnPath, ColumnBounds] = field(default_factory=dict)

    @property
    def row_count(self) -> pa.Array:
        return pa.array([self.rows], pa.int64())

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        return self.columns.get(path)


class TwoFiles(OneFile):
    """Statistics of the file and of one of ten rows beside it."""

    @property
    def row_count(self) -> pa.Array:
        return pa.array([self.rows, 10], pa.int64())


def bounds(
    kind: pa.DataType,
    low: Any,
    high: Any,
    *,
    nulls: int | None = 0,
    nans: int | None = 0,
    exact: bool | None = True,
) -> ColumnBounds:
    return ColumnBounds(
        type=kind,
        minimum=pa.array([low], kind),
        maximum=pa.array([high], kind),
        minimum_exact=pa.array([exact], pa.bool_()),
        maximum_exact=pa.array([exact], pa.bool_()),
        null_count=pa.array([nulls], pa.int64()),
        nan_count=pa.array([nans], pa.int64()),
    )


def verdict(expr: Expr, column: ColumnBounds | None, *, rows: int | None = 10) -> Verdict:
    statistics = OneFile(rows, {} if column is None else {("x",): column})
    return Verdict(int(verdicts(expr, statistics)[0]))


def beside_another_file(expr: Expr, column: ColumnBounds, *, rows: int | None = 10) -> Verdict:
    """The verdict where the column is known well in a second file."""
    value = {INT: 7, FLOAT: 7.0}[column.type]
    other = bounds(column.type, value, value)
    arrays = {
        name: pa.concat_arrays([each, vars(other)[name]]) for name, each in vars(column).items() if name != "type"
    }
    statistics = TwoFiles(rows, {("x",): ColumnBounds(column.type, **arrays)})
    return Verdict(int(verdicts(expr, statistics)[0]))


def x(op: Op, value: Any, kind: pa.DataType) -> Compare:
    return Compare(op, Column(("x",), kind), pa.scalar(value, kind))


def among(values: list[Any], kind: pa.DataType, *, has_null: bool = False) -> In:
    return In(Column(("x",), kind), pa.array(values, kind), has_null)


IS_NULL = IsNull(Column(("x",), INT))
IS_NOT_NULL = IsNotNull(Column(("x",), INT))

# below the file, its two ends, inside, above; for a file of 10 to 20
CASES = {
    Op.EQ: (SKIP, READ, READ, READ, SKIP),
    Op.NE: (ALL_ROWS, READ, READ, READ, ALL_ROWS),
    Op.LT: (SKIP, SKIP, READ, READ, ALL_ROWS),
    Op.LE: (SKIP, READ, ALL_ROWS, READ, ALL_ROWS),
    Op.GT: (ALL_ROWS, READ, SKIP, READ, SKIP),
    Op.GE: (ALL_ROWS, ALL_ROWS, READ, READ, SKIP),
    Op.EQ_NULL_SAFE: (SKIP, READ, READ, READ, SKIP),
    Op.NE_NULL_SAFE: (ALL_ROWS, READ, READ, READ, ALL_ROWS),
}


@pytest.mark.parametrize("op", CASES)
def test_a_comparison_is_decided_by_where_the_value_lies(op: Op) -> None:
    found = tuple(verdict(x(op, value, INT), bounds(INT, 10, 20)) for value in (5, 10, 20, 15, 25))
    assert found == CASES[op]


@pytest.mark.parametrize(
    ("kind", "low", "high", "inside", "above"),
    [
        (pa.int8(), -128, 5, 0, 6),
        (pa.int64(), -(2**63), 5, 0, 2**63 - 1),
        (pa.float32(), -1.5, 0.5, 0.25, 0.75),
        (pa.float64(), float("-inf"), 0.5, 0.25, float("inf")),
        (pa.decimal128(38, 3), Decimal("-9e34"), Decimal("0.001"), Decimal(0), Decimal("99999999999999999999.002")),
        (pa.date32(), date(1, 1, 1), date(1995, 1, 2), date(1995, 1, 1), date(9999, 12, 31)),
        (pa.timestamp("us"), *(datetime.fromisoformat(f"{year}-01-01") for year in (1900, 1902, 1901, 1903))),
        (pa.timestamp("us", "UTC"), *(datetime(1900 + n, 1, 1, tzinfo=timezone.utc) for n in (0, 2, 1, 3))),
        (pa.string(), "Zürich", "\uffff", "z", "\U00010000"),
        (pa.binary(), b"", b"\xfe", b"\x7f", b"\xff"),
    ],
    ids=str,
)
def test_every_orderable_type_is_compared_in_sparks_order(
    kind: pa.DataType, low: Any, high: Any, inside: Any, above: Any
) -> None:
    column = bounds(kind, low, high)
    assert verdict(x(Op.EQ, above, kind), column) is SKIP
    assert verdict(x(Op.EQ, inside, kind), column) is READ
    assert verdict(x(Op.LT, above, kind), column) is ALL_ROWS
    assert verdict(among([above], kind), column) is SKIP
    assert verdict(among([above, inside], kind), column) is READ
    assert verdict(Not(among([above], kind)), column) is ALL_ROWS


def test_a_boolean_column_of_one_value_is_decided() -> None:
    kind = pa.bool_()
    only_false = bounds(kind, False, False)
    assert verdict(x(Op.EQ, True, kind), only_false) is SKIP
    assert verdict(x(Op.EQ, False, kind), only_false) is ALL_ROWS
    assert verdict(Not(x(Op.EQ, False, kind)), only_false) is SKIP
    assert verdict(among([True], kind), only_false) is SKIP


def test_iceberg_17669_a_boolean_column_with_nulls_never_matches_all_rows() -> None:
    kind = pa.bool_()
    with_nulls = bounds(kind, True, True, nulls=3)
    assert verdict(x(Op.EQ, True, kind), with_nulls) is READ
    assert verdict(x(Op.NE, False, kind), with_nulls) is READ
    assert verdict(x(Op.NE, True, kind), with_nulls) is SKIP
    assert verdict(Not(x(Op.EQ_NULL_SAFE, True, kind)), with_nulls) is READ
    assert verdict(x(Op.EQ, True, kind), bounds(kind, None, None, nulls=10)) is SKIP


def test_iceberg_17071_negative_doubles_keep_their_order() -> None:
    negative = bounds(FLOAT, -20.0, -10.0)
    assert verdict(x(Op.EQ, -15.0, FLOAT), negative) is READ
    assert verdict(x(Op.LT, -10.5, FLOAT), negative) is READ
    assert verdict(x(Op.GT, -10.0, FLOAT), negative) is SKIP
    assert verdict(x(Op.LT, -20.0, FLOAT), negative) is SKIP
    assert verdict(x(Op.GE, -20.0, FLOAT), negative) is ALL_ROWS


def test_negative_zero_equals_zero() -> None:
    zero = bounds(FLOAT, -0.0, 0.0)
    assert verdict(x(Op.EQ, 0.0, FLOAT), zero) is ALL_ROWS
    assert verdict(x(Op.LT, 0.0, FLOAT), zero) is SKIP
    assert verdict(x(Op.GT, -0.0, FLOAT), zero) is SKIP
    assert verdict(among([0.0], FLOAT), bounds(FLOAT, -0.0, -0.0)) is ALL_ROWS


@pytest.mark.parametrize("nans", [UNKNOWN, 2])
def test_nan_is_above_every_number_wherever_there_may_be_one(nans: int | None) -> None:
    column = bounds(FLOAT, 1.0, 2.0, nans=nans)
    assert verdict(x(Op.GT, 5.0, FLOAT), column) is READ
    assert verdict(x(Op.GE, 5.0, FLOAT), column) is READ
    assert verdict(x(Op.EQ, NAN, FLOAT), column) is READ
    assert verdict(x(Op.LT, 5.0, FLOAT), column) is READ
    assert verdict(x(Op.LT, 1.0, FLOAT), column) is SKIP
    assert verdict(x(Op.GT, NAN, FLOAT), column) is SKIP
    assert verdict(x(Op.GT, 0.5, FLOAT), column) is ALL_ROWS
    assert verdict(x(Op.LE, NAN, FLOAT), column) is ALL_ROWS
    assert verdict(among([NAN, 7.0], FLOAT), column) is READ
    assert verdict(among([7.0], FLOAT), column) is SKIP
    one_number = bounds(FLOAT, 1.0, 1.0, nans=nans)
    assert verdict(x(Op.NE, 1.0, FLOAT), one_number) is READ
    assert verdict(Not(among([1.0], FLOAT)), one_number) is READ
    assert verdict(Not(among([1.0, NAN], FLOAT)), one_number) is SKIP


def test_nan_counted_as_none_closes_the_upper_side() -> None:
    column = bounds(FLOAT, 1.0, 2.0, nans=0)
    assert verdict(x(Op.GT, 5.0, FLOAT), column) is SKIP
    assert verdict(x(Op.EQ, NAN, FLOAT), column) is SKIP
    assert verdict(x(Op.NE, NAN, FLOAT), column) is ALL_ROWS
    assert verdict(x(Op.NE_NULL_SAFE, NAN, FLOAT), bounds(FLOAT, 1.0, 2.0, nulls=1)) is ALL_ROWS
    assert verdict(x(Op.NE_NULL_SAFE, NAN, FLOAT), bounds(FLOAT, None, None, nulls=1, nans=9)) is READ
    assert verdict(among([NAN, 7.0], FLOAT), column) is SKIP
    assert verdict(Not(among([1.0], FLOAT)), bounds(FLOAT, 1.0, 1.0)) is SKIP


def test_a_file_of_nothing_but_nan_matches_as_nan_does() -> None:
    column = bounds(FLOAT, None, None, nans=10)
    assert verdict(x(Op.LT, 1e300, FLOAT), column) is SKIP
    assert verdict(x(Op.GT, 1e300, FLOAT), column) is ALL_ROWS
    assert verdict(x(Op.EQ, NAN, FLOAT), column) is ALL_ROWS
    assert verdict(x(Op.NE, NAN, FLOAT), column) is SKIP
    assert verdict(IsNotNull(Column(("x",), FLOAT)), column) is ALL_ROWS


def test_a_nan_count_of_a_type_without_nan_means_nothing() -> None:
    assert verdict(x(Op.GT, 5, INT), bounds(INT, 1, 2, nans=UNKNOWN)) is SKIP
    assert verdict(x(Op.GT, 5, INT), bounds(INT, 1, 2, nans=3)) is SKIP


def test_in_a_file_of_nulls_only_null_tests_match() -> None:
    column = bounds(INT, None, None, nulls=10)
    for op in (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ_NULL_SAFE):
        assert verdict(x(op, 1, INT), column) is SKIP
    assert verdict(Not(among([1], INT)), column) is SKIP
    assert verdict(x(Op.NE_NULL_SAFE, 1, INT), column) is ALL_ROWS
    assert verdict(x(Op.EQ_NULL_SAFE, None, INT), column) is ALL_ROWS
    assert verdict(IS_NULL, column) is ALL_ROWS
    assert verdict(IS_NOT_NULL, column) is SKIP


@pytest.mark.parametrize(
    ("nulls", "is_null", "is_not_null"), [(0, SKIP, ALL_ROWS), (3, READ, READ), (None, READ, READ)]
)
def test_null_tests_follow_the_null_count(nulls: int | None, is_null: Verdict, is_not_null: Verdict) -> None:
    column = bounds(INT, 1, 2, nulls=nulls)
    assert verdict(IS_NULL, column) is is_null
    assert verdict(IS_NOT_NULL, column) is is_not_null


@pytest.mark.parametrize("nulls", [UNKNOWN, 1])
def test_no_comparison_matches_all_rows_where_one_may_be_null(nulls: int | None) -> None:
    column = bounds(INT, 5, 5, nulls=nulls)
    assert verdict(x(Op.EQ, 5, INT), column) is READ
    assert verdict(x(Op.GT, 0, INT), column) is READ
    assert verdict(among([5], INT), column) is READ
    assert verdict(x(Op.NE_NULL_SAFE, 7, INT), column) is ALL_ROWS


def test_in_decides_by_each_value_and_not_by_the_ends_of_the_list() -> None:
    column = bounds(INT, 10, 20)
    assert verdict(among([1, 30], INT), column) is SKIP
    assert verdict(among([1, 15, 30], INT), column) is READ
    assert verdict(among([1, 10], INT), column) is READ
    assert verdict(among([*range(10), *range(21, 5_000)], INT), column) is SKIP
    assert verdict(among([], INT), column) is SKIP


@pytest.mark.parametrize("kind", [TEXT, pa.binary()])
def test_in_decides_by_each_value_for_text_and_bytes_too(kind: pa.DataType) -> None:
    column = bounds(kind, "k", "m")
    assert verdict(among(["a", "jz", "ma", "z"], kind), column) is SKIP
    assert verdict(among(["a", "lemon", "z"], kind), column) is READ
    assert verdict(among(["z", "k"], kind), bounds(kind, None, "m")) is READ
    assert verdict(among(["z", "n"], kind), bounds(kind, None, "m")) is SKIP
    assert verdict(among(["z", "k"], kind), bounds(kind, "l", None)) is READ


def test_not_in_skips_only_files_of_one_listed_value() -> None:
    kind = pa.decimal128(38, 2)
    two = [Decimal("1.50"), Decimal("2.50")]
    assert verdict(Not(among(two, kind)), bounds(kind, two[1], two[1])) is SKIP
    assert verdict(Not(among(two, kind)), bounds(kind, two[0], two[1])) is READ
    assert verdict(Not(among(two, kind)), bounds(kind, Decimal(2), Decimal(2))) is ALL_ROWS


def test_a_null_in_the_list_is_never_matched_and_makes_not_in_never_true() -> None:
    assert verdict(among([99], INT, has_null=True), bounds(INT, 1, 2, nulls=5)) is SKIP
    assert verdict(Not(among([99], INT, has_null=True)), bounds(INT, 1, 2)) is SKIP
    assert verdict(among([1], INT, has_null=True), bounds(INT, 1, 1)) is ALL_ROWS


@pytest.mark.parametrize("exact", [True, False, None])
def test_bounds_prove_the_same_whether_they_are_values_of_the_file_or_not(exact: bool | None) -> None:
    around = bounds(TEXT, "m", "p", exact=exact)
    assert verdict(x(Op.EQ, "a", TEXT), around) is SKIP
    assert verdict(x(Op.EQ, "m", TEXT), around) is READ
    assert verdict(x(Op.GE, "m", TEXT), around) is ALL_ROWS
    assert verdict(x(Op.GT, "m", TEXT), around) is READ
    assert verdict(x(Op.LE, "p", TEXT), around) is ALL_ROWS
    assert verdict(x(Op.LT, "q", TEXT), around) is ALL_ROWS
    assert verdict(Not(among(["m", "z"], TEXT)), around) is READ
    assert verdict(Not(among(["a", "z"], TEXT)), around) is ALL_ROWS
    for outside in ("a", "z"):
        assert verdict(x(Op.NE, outside, TEXT), around) is ALL_ROWS


@pytest.mark.parametrize("exact", [True, False, None])
def test_a_file_whose_bounds_are_one_value_has_no_other(exact: bool | None) -> None:
    constant = bounds(TEXT, "m", "m", exact=exact)
    assert verdict(x(Op.EQ, "m", TEXT), constant) is ALL_ROWS
    assert verdict(x(Op.NE, "m", TEXT), constant) is SKIP
    assert verdict(among(["m"], TEXT), constant) is ALL_ROWS
    assert verdict(Not(among(["m"], TEXT)), constant) is SKIP
    assert verdict(x(Op.EQ, "m", TEXT), bounds(TEXT, "m", "m", exact=exact, nulls=1)) is READ
    assert verdict(x(Op.NE, "m", TEXT), bounds(TEXT, "m", "m", exact=exact, nulls=1)) is SKIP


def starts_with(prefix: Any, kind: pa.DataType = TEXT) -> StartsWith:
    return StartsWith(Column(("x",), kind), pa.scalar(prefix, kind))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("a", "c", READ),
        ("b", "b", ALL_ROWS),
        ("bb", "bz", ALL_ROWS),
        ("ba", "c", READ),
        ("a", "ba", READ),
        ("ba", "ba", ALL_ROWS),
        ("c", "d", SKIP),
        ("a", "az", SKIP),
        ("a", "b", READ),
        (None, "az", SKIP),
        ("c", None, SKIP),
        (None, None, READ),
        ("b\U0010ffff", "b\U0010ffff\U0010ffff", ALL_ROWS),
    ],
)
def test_a_prefix_matches_files_whose_interval_meets_that_of_the_prefix(
    low: str | None, high: str | None, expected: Verdict
) -> None:
    assert verdict(starts_with("b"), bounds(TEXT, low, high)) is expected


@pytest.mark.parametrize("op", [Op.GT, Op.GE, Op.NE])
def test_a_minimum_alone_proves_that_all_rows_are_above(op: Op) -> None:
    assert verdict(x(op, 5, INT), bounds(INT, 10, None)) is ALL_ROWS
    assert verdict(x(op, 5, INT), bounds(INT, None, 20)) is READ


@pytest.mark.parametrize("op", [Op.LT, Op.LE, Op.NE])
def test_a_maximum_alone_proves_that_all_rows_are_below(op: Op) -> None:
    assert verdict(x(op, 30, INT), bounds(INT, None, 20)) is ALL_ROWS
    assert verdict(x(op, 30, INT), bounds(INT, 10, None)) is READ


def test_hudi_18791_a_prefix_whose_last_character_has_no_successor_loses_no_file() -> None:
    top = "\U0010ffff"
    assert verdict(starts_with(top), bounds(TEXT, top + "a", top + "b")) is ALL_ROWS
    assert verdict(starts_with("a" + top), bounds(TEXT, "a" + top + "x", "b")) is READ
    assert verdict(starts_with("a" + top), bounds(TEXT, "b", "c")) is SKIP
    binary = pa.binary()
    assert verdict(starts_with(b"\xff", binary), bounds(binary, b"\xff\x00", b"\xff\xff\xff")) is ALL_ROWS
    assert verdict(starts_with(b"\xff\xff", binary), bounds(binary, b"\xff\xfe", b"\xff\xff\xff")) is READ
    assert verdict(starts_with(b"\xff", binary), bounds(binary, b"\x00", b"\xfe\xff")) is SKIP
    # The reported case: every value of the file is longer than the prefix, so its minimum is above it.
    assert verdict(starts_with("abc"), bounds(TEXT, "abc123", "abc345")) is ALL_ROWS


def test_not_starts_with_skips_files_whose_bounds_prove_the_prefix_for_every_value() -> None:
    assert verdict(Not(starts_with("b")), bounds(TEXT, "ba", "bz")) is SKIP
    assert verdict(Not(starts_with("b")), bounds(TEXT, "ba", "bz", exact=False)) is SKIP
    assert verdict(Not(starts_with("b")), bounds(TEXT, "ba", "c")) is READ
    assert verdict(Not(starts_with("b")), bounds(TEXT, "ba", None)) is READ
    assert verdict(Not(starts_with("b")), bounds(TEXT, "c", "d")) is ALL_ROWS
    assert verdict(Not(starts_with("b")), bounds(TEXT, "c", "d", exact=False)) is ALL_ROWS
    assert verdict(Not(starts_with("")), bounds(TEXT, "c", "d", nulls=3)) is SKIP


@pytest.mark.parametrize(("low", "high"), [("c", None), (None, "az")])
def test_one_bound_proves_that_no_row_has_a_prefix(low: str | None, high: str | None) -> None:
    assert verdict(Not(starts_with("b")), bounds(TEXT, low, high)) is ALL_ROWS


@pytest.mark.parametrize(
    "column",
    [
        bounds(INT, 1, 2, nulls=10),
        bounds(INT, 1, None, nulls=10),
        bounds(INT, None, 2, nulls=10),
        bounds(INT, 9, 1),
        bounds(INT, 1, 2, nulls=11),
        bounds(INT, 1, 2, nulls=-1),
        bounds(FLOAT, 1.0, 2.0, nulls=10),
        bounds(FLOAT, 1.0, 2.0, nans=10),
        bounds(FLOAT, 1.0, 2.0, nans=-1),
        bounds(FLOAT, 1.0, 2.0, nulls=5, nans=6),
        bounds(FLOAT, 1.0, NAN),
        bounds(FLOAT, NAN, NAN),
        bounds(FLOAT, NAN, 2.0),
        bounds(INT, 1, 2, nulls=2**63 - 1),
    ],
)
def test_statistics_that_contradict_themselves_are_not_believed(column: ColumnBounds) -> None:
    subject = Column(("x",), column.type)
    for expr in (
        x(Op.EQ, 50, column.type),
        x(Op.GT, 50, column.type),
        x(Op.LT, -50, column.type),
        IsNull(subject),
        IsNotNull(subject),
    ):
        assert verdict(expr, column) is READ
        assert beside_another_file(expr, column) is READ
    if column.type == FLOAT:
        assert beside_another_file(x(Op.EQ, NAN, FLOAT), column) is READ


def test_a_negative_row_count_is_unknown() -> None:
    assert verdict(IS_NOT_NULL, bounds(INT, None, None, nulls=0), rows=-1) is ALL_ROWS
    assert verdict(x(Op.EQ, 1, INT), bounds(INT, None, None, nulls=0), rows=-1) is READ
    assert verdict(Unknown("f()", "?"), None, rows=-1) is READ


def test_an_unknown_row_count_leaves_the_bounds_their_use() -> None:
    assert verdict(x(Op.EQ, 9, INT), bounds(INT, 1, 2), rows=None) is SKIP
    assert verdict(x(Op.EQ, 9, INT), bounds(INT, None, None, nulls=10), rows=None) is READ


def test_any_one_statistic_is_of_use_without_the_others() -> None:
    assert verdict(x(Op.GT, 5, INT), bounds(INT, None, 2, nulls=UNKNOWN)) is SKIP
    assert verdict(x(Op.LT, 0, INT), bounds(INT, 1, None, nulls=UNKNOWN)) is SKIP
    assert verdict(IS_NULL, bounds(INT, None, None)) is SKIP


def test_a_file_without_rows_is_skipped_by_any_predicate() -> None:
    nothing = bounds(INT, None, None, nulls=0)
    for expr in (x(Op.EQ, 1, INT), IS_NULL, IS_NOT_NULL, Not(IS_NULL), Unknown("f()", "?"), And(())):
        assert verdict(expr, nothing, rows=0) is SKIP
        assert beside_another_file(expr, nothing, rows=0) is SKIP
    uncounted = bounds(FLOAT, None, None, nulls=None, nans=None)
    assert beside_another_file(x(Op.GT, 1.0, FLOAT), uncounted, rows=0) is SKIP


def test_a_row_count_of_zero_that_the_column_contradicts_skips_nothing() -> None:
    assert verdict(x(Op.EQ, 1, INT), bounds(INT, 1, 5, nulls=2), rows=0) is READ
    assert verdict(And((Unknown("f()", "?"), IS_NULL)), bounds(INT, 1, 5, nulls=2), rows=0) is READ


@pytest.mark.parametrize(
    ("stored", "present", "low", "high", "absent"),
    [
        (pa.int32(), pa.int64(), 1, 5, 2**40),
        (pa.int16(), pa.float32(), 1, 5, 9.0),
        (pa.int32(), pa.float64(), 1, 5, 9.0),
        (pa.float32(), pa.float64(), 0.5, 1.5, 1.75),
        (pa.decimal128(10, 2), pa.decimal128(14, 4), Decimal("1.25"), Decimal("2.25"), Decimal("2.2501")),
        (pa.int32(), pa.decimal128(12, 2), 1, 5, Decimal("5.01")),
        (
            pa.date32(),
            pa.timestamp("us"),
            date(2000, 1, 1),
            date(2000, 1, 2),
            datetime.fromisoformat("2000-01-02 00:00:01"),
        ),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), 0, 5, 5_001),
        (pa.large_string(), pa.string(), "a", "b", "c"),
    ],
    ids=str,
)
def test_bounds_of_an_older_narrower_type_are_widened(
    stored: pa.DataType, present: pa.DataType, low: Any, high: Any, absent: Any
) -> None:
    column = bounds(stored, low, high)
    assert verdict(x(Op.EQ, absent, present), column) is SKIP
    assert verdict(x(Op.LT, absent, present), column) is ALL_ROWS


@pytest.mark.parametrize(
    ("stored", "present", "low", "high", "value"),
    [
        (pa.int64(), pa.int32(), 1, 5, 9),
        (pa.int64(), pa.float64(), 1, 5, 9.0),
        (pa.string(), pa.int32(), "1", "5", 9),
        (pa.decimal128(10, 4), pa.decimal128(10, 2), Decimal(1), Decimal(2), Decimal(9)),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), 1, 5, 9),
        (pa.date32(), pa.timestamp("us", "UTC"), date(2000, 1, 1), date(2000, 1, 2), 0),
        (pa.timestamp("ns"), pa.timestamp("us"), 1, 5, 9),
        (pa.timestamp("ns"), pa.timestamp("us"), 1_000, 5_001, 9),
        (pa.timestamp("ns"), pa.timestamp("us"), 1_001, 5_000, 9),
        (pa.bool_(), pa.int32(), False, True, 9),
    ],
    ids=str,
)
def test_bounds_of_a_type_that_says_nothing_safe_keep_the_file(
    stored: pa.DataType, present: pa.DataType, low: Any, high: Any, value: Any
) -> None:
    assert verdict(x(Op.EQ, value, present), bounds(stored, low, high)) is READ


def test_integer_bounds_of_a_column_that_is_now_float_still_hold_no_nan() -> None:
    assert verdict(x(Op.GT, 9.0, FLOAT), bounds(INT, 1, 5, nans=UNKNOWN)) is SKIP


def test_a_column_of_a_type_without_order_still_has_its_null_count() -> None:
    kind = pa.struct([("a", pa.int32())])
    column = bounds(kind, None, None, nulls=10)
    assert verdict(IsNotNull(Column(("x",), kind)), column) is SKIP


def test_a_constant_of_another_type_than_the_column_keeps_the_file() -> None:
    expr = Compare(Op.EQ, Column(("x",), INT), pa.scalar("9"))
    assert verdict(expr, bounds(INT, 1, 2)) is READ
    assert explained_verdicts(expr, OneFile(1, {("x",): bounds(INT, 1, 2)})).conjuncts[0].usable is False


def test_or_skips_only_where_every_side_does_and_and_where_any_side_does() -> None:
    column = bounds(INT, 10, 20)
    low, high, inside = x(Op.LT, 5, INT), x(Op.GT, 25, INT), x(Op.EQ, 15, INT)
    assert verdict(Or((low, high)), column) is SKIP
    assert verdict(Or((low, inside)), column) is READ
    assert verdict(Or((low, Unknown("f()", "?"))), column) is READ
    assert verdict(And((inside, low)), column) is SKIP
    assert verdict(And((Unknown("f()", "?"), low)), column) is SKIP
    assert verdict(Or((x(Op.GT, 0, INT), Unknown("f()", "?"))), column) is ALL_ROWS


def test_not_of_something_unknown_keeps_the_file() -> None:
    assert verdict(Not(Unknown("f()", "?")), None) is READ
    assert verdict(Not(Or((x(Op.GT, 0, INT), Unknown("f()", "?")))), bounds(INT, 1, 2)) is SKIP


def test_not_in_of_the_tree_itself_is_understood() -> None:
    listed = NotIn(Column(("x",), INT), pa.array([5], INT), has_null=False)
    assert verdict(listed, bounds(INT, 5, 5)) is SKIP
    assert verdict(Not(listed), bounds(INT, 5, 5)) is ALL_ROWS
