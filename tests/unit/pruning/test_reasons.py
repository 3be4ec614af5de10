"""What `explained_verdicts` tells about conjuncts and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from typing import Any

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Call,
    Column,
    ColumnPath,
    Compare,
    Constant,
    Expr,
    In,
    IsNotNull,
    IsNull,
    Op,
    Or,
    StartsWith,
    Unknown,
)
from dbt.adapters.zlayout.predicate.functions import FoldedCase
from dbt.adapters.zlayout.predicate.remedies import Remedy
from dbt.adapters.zlayout.pruning.evaluation import verdicts
from dbt.adapters.zlayout.pruning.reasons import explained_verdicts
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict

SHIPDATE = Column(("l_shipdate",), pa.date32())
PARTKEY = Column(("l_partkey",), pa.int64())
CITY = Column(("address", "city name"), pa.string())


@dataclass
class SomeFiles:
    row_count: pa.Array
    columns: Mapping[ColumnPath, ColumnBounds] = field(default_factory=dict)

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        return self.columns.get(path)


def bounds(kind: pa.DataType, ranges: Sequence[tuple[Any, Any] | None], nulls: Sequence[int | None]) -> ColumnBounds:
    exact = pa.array([True] * len(ranges))
    return ColumnBounds(
        kind,
        pa.array([each and each[0] for each in ranges], kind),
        pa.array([each and each[1] for each in ranges], kind),
        exact,
        exact,
        pa.array(nulls, pa.int64()),
        pa.array([0] * len(ranges), pa.int64()),
    )


FILES = SomeFiles(
    pa.array([10, 10, 10, 10, 0]),
    {
        SHIPDATE.path: bounds(
            pa.date32(),
            [(date(1995, 1, 1), date(1995, 2, 3)), (date(1996, 1, 1), date(1996, 2, 1)), None, None, None],
            [0, 0, 10, None, 0],
        ),
        PARTKEY.path: bounds(pa.int64(), [(1, 9), (20, 90), (5, 5), (1, 50), None], [0, 0, 0, 0, 0]),
    },
)
FROM_1996 = Compare(Op.GE, SHIPDATE, pa.scalar(date(1996, 1, 1)))
SMALL = Compare(Op.LT, PARTKEY, pa.scalar(15))
CALL = Unknown("upper(city)", "`Upper` has no rule")


def test_each_conjunct_reports_what_it_skips_alone() -> None:
    pruned = explained_verdicts(And((FROM_1996, SMALL, CALL)), FILES)
    assert pruned.verdict.tolist() == [Verdict.SKIP, Verdict.SKIP, Verdict.SKIP, Verdict.READ, Verdict.SKIP]
    first, second, third = pruned.conjuncts
    assert (first.sql, first.usable, first.skips) == ("l_shipdate >= DATE '1996-01-01'", True, 3)
    assert (second.sql, second.usable, second.skips) == ("l_partkey < 15", True, 2)
    assert (third.usable, third.skips) == (False, 0)
    assert third.why_not == "not understood: upper(city) (`Upper` has no rule)"


def test_delta_6755_a_missing_statistic_spoils_only_its_own_conjunct() -> None:
    pruned = explained_verdicts(And((IsNotNull(CITY), FROM_1996, Compare(Op.EQ, CITY, pa.scalar("Rome")))), FILES)
    assert pruned.verdict.tolist() == [Verdict.SKIP, Verdict.READ, Verdict.SKIP, Verdict.READ, Verdict.SKIP]
    assert [each.usable for each in pruned.conjuncts] == [False, True, False]
    assert pruned.conjuncts[0].why_not == "no statistics for column `address`.`city name`"


def test_delta_6755_holds_for_a_statistic_that_is_missing_in_some_files_only() -> None:
    expr = And((FROM_1996, Compare(Op.GT, PARTKEY, pa.scalar(60))))
    assert verdicts(expr, FILES).tolist() == [Verdict.SKIP, Verdict.READ, Verdict.SKIP, Verdict.SKIP, Verdict.SKIP]


def test_an_or_is_usable_only_if_each_side_is() -> None:
    report = explained_verdicts(Or((FROM_1996, CALL)), FILES).conjuncts[0]
    assert (report.usable, report.skips) == (False, 0)
    assert explained_verdicts(Or((FROM_1996, And((CALL, SMALL)))), FILES).conjuncts[0].usable is True


def test_a_column_whose_statistics_are_unknown_in_every_file_is_not_usable() -> None:
    nothing = SomeFiles(pa.array([5, 5]), {PARTKEY.path: bounds(pa.int64(), [None, None], [None, None])})
    report = explained_verdicts(SMALL, nothing).conjuncts[0]
    assert (report.usable, report.why_not) == (False, "no statistics for column `l_partkey`")
    assert report.advice() == "name the column in stats_columns and refresh the index"


def test_statistics_of_another_type_are_named_in_the_report() -> None:
    text = SomeFiles(pa.array([5]), {PARTKEY.path: bounds(pa.string(), [("1", "2")], [0])})
    report = explained_verdicts(SMALL, text).conjuncts[0]
    assert report.why_not == "statistics of column `l_partkey` are of type string, the column of int64"
    assert "--full-refresh" in str(report.advice())


def test_advice_is_that_of_the_part_that_is_not_understood() -> None:
    def advice(remedy: Remedy | None) -> str | None:
        either = Or((SMALL, Unknown("f(city)", "it has no rule", remedy)))
        return explained_verdicts(either, FILES).conjuncts[0].advice()

    assert advice(Remedy.SPLIT_CONDITION) == "write the condition as two, or union two queries"
    assert advice(Remedy.NOT_NEEDED) is None
    assert advice(None) is None


def test_reasons_name_the_interval_that_decided() -> None:
    reasons = explained_verdicts(And((FROM_1996, SMALL)), FILES, reasons=True).reason.to_pylist()
    assert reasons == [
        "l_shipdate: [1995-01-01, 1995-02-03] has no value >= DATE '1996-01-01'",
        "l_partkey: [20, 90] has no value < 15",
        "l_shipdate: every value is null",
        "may match: no statistics for l_shipdate, l_partkey [1, 50]",
        "the file has no rows",
    ]


def test_reasons_are_null_unless_asked_for() -> None:
    assert explained_verdicts(FROM_1996, FILES).reason.null_count == 5


def test_reasons_of_an_or_name_each_side_and_of_an_and_within_it_the_first_that_decided() -> None:
    late = Compare(Op.GT, SHIPDATE, pa.scalar(date(2000, 1, 1)))
    expr = Or((And((SMALL, late)), Compare(Op.EQ, PARTKEY, pa.scalar(777))))
    reasons = explained_verdicts(expr, FILES, reasons=True).reason.to_pylist()
    assert reasons[0] == (
        "l_shipdate: [1995-01-01, 1995-02-03] has no value > DATE '2000-01-01'; l_partkey: [1, 9] has no value = 777"
    )
    assert reasons[1] == "l_partkey: [20, 90] has no value < 15; l_partkey: [20, 90] has no value = 777"


def test_reasons_cover_every_kind_of_leaf_and_every_type() -> None:
    stamp = pa.timestamp("us", "UTC")
    ratio = Column(("ratio",), pa.float64())
    at, key = Column(("at",), stamp), Column(("key",), pa.binary())
    only_nan = ColumnBounds(
        pa.float64(),
        pa.nulls(1, pa.float64()),
        pa.nulls(1, pa.float64()),
        pa.array([False]),
        pa.array([False]),
        pa.array([0]),
        pa.array([4]),
    )
    moment = datetime(2020, 1, 1, 12, tzinfo=timezone.utc)
    files = SomeFiles(
        pa.array([4]),
        {
            ratio.path: only_nan,
            at.path: bounds(stamp, [(moment, moment)], [0]),
            key.path: bounds(pa.binary(), [(b"\x01", b"\x02")], [0]),
            CITY.path: bounds(pa.string(), [("a" * 50, "b")], [0]),
            PARTKEY.path: bounds(pa.int64(), [(1, None)], [0]),
        },
    )

    def reason(expr: Expr) -> str:
        return str(explained_verdicts(expr, files, reasons=True).reason[0].as_py())

    assert reason(Compare(Op.LT, ratio, pa.scalar(1.0))) == "ratio: every value is NaN or null"
    assert reason(Compare(Op.GT, ratio, pa.scalar(1.0))) == "every row matches: ratio has only NaN and nulls"
    assert reason(IsNull(PARTKEY)) == "l_partkey: no value is null"
    assert reason(In(PARTKEY, pa.array([0, -1]))) == "l_partkey: [1, ?] has no value IN (0, -1)"
    assert reason(Compare(Op.LT, at, pa.scalar(moment, stamp))) == (
        "at: [2020-01-01 12:00:00Z, 2020-01-01 12:00:00Z] has no value < TIMESTAMP '2020-01-01 12:00:00Z'"
    )
    assert reason(StartsWith(key, pa.scalar(b"\xff"))) == "key: [X'01', X'02'] has no value that starts with X'FF'"
    assert reason(StartsWith(CITY, pa.scalar("Z"))) == (
        f"address.`city name`: ['{'a' * 40}…', 'b'] has no value that starts with 'Z'"
    )
    assert reason(Constant(False)) == "no row matches FALSE"
    assert reason(CALL) == "may match: not understood: upper(city)"
    assert reason(Constant(True)) == "no condition applies to it"


def test_a_predicate_that_is_true_wants_all_rows_and_null_wants_none() -> None:
    assert verdicts(Constant(True), FILES).tolist()[:4] == [Verdict.ALL_ROWS] * 4
    assert verdicts(Constant(None), FILES).tolist() == [Verdict.SKIP] * 5
    assert explained_verdicts(Constant(True), FILES).conjuncts == ()


def test_no_files_give_no_verdicts() -> None:
    none = SomeFiles(pa.array([], pa.int64()), {PARTKEY.path: bounds(pa.int64(), [], [])})
    pruned = explained_verdicts(And((SMALL, CALL, FROM_1996)), none, reasons=True)
    assert pruned.verdict.dtype == np.int8
    assert len(pruned.verdict) == len(pruned.reason) == 0
    assert pruned.conjuncts[0].usable is True


def test_chunked_statistics_are_read_as_one_array() -> None:
    whole = FILES.columns[PARTKEY.path]
    chunked = ColumnBounds(
        whole.type, *(pa.chunked_array([each[:2], each[2:]]) for each in list(vars(whole).values())[1:])
    )
    files = SomeFiles(pa.chunked_array([FILES.row_count[:1], FILES.row_count[1:]]), {PARTKEY.path: chunked})
    assert verdicts(SMALL, files).tolist() == verdicts(SMALL, FILES).tolist()


def test_a_search_for_a_value_that_any_file_may_hold_is_told_of_lookup_indexes() -> None:
    spread = SomeFiles(pa.array([10, 10]), {PARTKEY.path: bounds(pa.int64(), [(1, 90), (2, 80)], [0, 0])})

    def advice(expr: Expr) -> str | None:
        return explained_verdicts(expr, spread).conjuncts[0].advice()

    for expr in (Compare(Op.EQ, PARTKEY, pa.scalar(7)), In(PARTKEY, pa.array([7, 8]))):
        assert 'use a lookup index: lookup: ["l_partkey"]' in str(advice(expr))
    assert advice(Compare(Op.EQ, PARTKEY, pa.scalar(1))) is None
    assert advice(Compare(Op.LT, PARTKEY, pa.scalar(99))) is None


def test_a_function_without_bounds_in_any_file_skips_nothing_and_says_so() -> None:
    name, x = Column(("name",), pa.string()), pa.scalar("x")
    lower = Compare(Op.EQ, Call(FoldedCase(pa.string(), upper=False), name), x)

    def report(
        ranges: Sequence[tuple[str | None, str | None]], nulls: Sequence[int]
    ) -> tuple[str | None, tuple[str, ...], int]:
        files = SomeFiles(pa.array([10, 10]), {name.path: bounds(pa.string(), ranges, nulls)})
        (part,) = explained_verdicts(lower, files, reasons=False).conjuncts
        return part.why_not, part.expressions, part.skips

    assert report([("A", "z"), ("B", "y")], [0, 0]) == ("no file has bounds of lower(name)", ("lower(name)",), 0)
    assert report([("A", "z"), ("Baa", "Baz")], [0, 0]) == (None, (), 1)
    assert report([("A", "z"), (None, None)], [0, 10]) == (None, (), 1)
