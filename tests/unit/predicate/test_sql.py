"""Expressions as SQL that a person reads, and could run."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Column,
    Compare,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Not,
    NotIn,
    NotStartsWith,
    Op,
    Or,
    StartsWith,
    Unknown,
)
from dbt.adapters.zlayout.predicate.literals import backquoted

X = Column(("x",), pa.int64())
ONE = Compare(Op.EQ, X, pa.scalar(1))


@pytest.mark.parametrize(
    ("path", "sql"),
    [
        (("x",), "x IS NULL"),
        (("a", "b"), "a.b IS NULL"),
        (("a.b",), "`a.b` IS NULL"),
        (("a b", "c`d"), "`a b`.`c``d` IS NULL"),
        (("größe",), "`größe` IS NULL"),
        (("1st",), "`1st` IS NULL"),
    ],
)
def test_names_are_backquoted_only_where_they_must_be(path: tuple[str, ...], sql: str) -> None:
    assert IsNull(Column(path, pa.int64())).sql() == sql


@pytest.mark.parametrize(
    ("value", "kind", "sql"),
    [
        (True, pa.bool_(), "TRUE"),
        (-5, pa.int8(), "-5"),
        (1.5, pa.float64(), "1.5"),
        (0.1, pa.float32(), "0.1"),
        (float("nan"), pa.float64(), "CAST('NaN' AS DOUBLE)"),
        (float("-inf"), pa.float32(), "CAST('-Infinity' AS FLOAT)"),
        (Decimal("1E-10"), pa.decimal128(38, 12), "0.000000000100"),
        ("it's a \\ line\n", pa.string(), "'it\\'s a \\\\ line\\n'"),
        (b"\x00\xff", pa.binary(), "X'00FF'"),
        (date(1995, 1, 1), pa.date32(), "DATE '1995-01-01'"),
        (datetime(1995, 1, 1, tzinfo=timezone.utc), pa.timestamp("us", "UTC"), "TIMESTAMP '1995-01-01 00:00:00Z'"),
        (
            datetime.fromisoformat("1995-01-01 00:00:00.000500"),
            pa.timestamp("us"),
            "TIMESTAMP_NTZ '1995-01-01 00:00:00.000500'",
        ),
        (None, pa.int64(), "NULL"),
    ],
)
def test_constants_are_written_as_spark_reads_them(value: Any, kind: pa.DataType, sql: str) -> None:
    assert Compare(Op.EQ, Column(("x",), kind), pa.scalar(value, kind)).sql() == f"x = {sql}"


def test_a_timestamp_beyond_the_years_of_python_is_still_written() -> None:
    early = pa.scalar(-(10**17), pa.int64()).cast(pa.timestamp("us"))
    assert Compare(Op.LT, Column(("t",), early.type), early).sql() == "t < TIMESTAMP_NTZ '-1199-02-15 14:13:20'"


def test_each_node_reads_as_sql_with_parentheses_where_they_matter() -> None:
    name = Column(("name",), pa.string())
    expr = And((Or((ONE, IsNotNull(X))), Not(Unknown("f(x)", "?")), Constant(None)))
    assert expr.sql() == "(x = 1 OR x IS NOT NULL) AND NOT (f(x)) AND NULL"
    assert Or((And((ONE, Constant(True))), ONE)).sql() == "(x = 1 AND TRUE) OR x = 1"
    assert StartsWith(name, pa.scalar("a%")).sql() == "startswith(name, 'a%')"
    assert NotStartsWith(name, pa.scalar("a")).sql() == "NOT startswith(name, 'a')"
    assert Compare(Op.NE_NULL_SAFE, X, pa.scalar(1)).sql() == "x IS DISTINCT FROM 1"
    assert NotIn(X, pa.array([1, 2]), has_null=True).sql() == "x NOT IN (1, 2, NULL)"


def test_a_long_list_is_abbreviated() -> None:
    sql = In(X, pa.array(range(5_000))).sql()
    assert sql.startswith("x IN (0, 1, 2")
    assert sql.endswith("… 4,988 more)")


@given(st.text(min_size=1))
def test_a_quoted_identifier_never_ends_inside_the_name(name: str) -> None:
    quoted = backquoted(name)
    assert quoted[1:-1].replace("``", "").count("`") == 0
    assert quoted[1:-1].replace("``", "`") == name
