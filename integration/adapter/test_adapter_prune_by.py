"""zlayout_prune_by: a condition from a query's values, equivalent in plain Spark, that skips files here."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

TYPED = """
  select * from values
    (1, {0}), (2, {1}), (3, {2}), (4, null), (5, {3})
  as t(id, v)
"""
KINDS = {
    "tinyint": "cast(1 as tinyint) | cast(-128 as tinyint) | cast(127 as tinyint) | cast(5 as tinyint)",
    "bigint": "1L | -9223372036854775808 | 9223372036854775807 | 0L",
    "decimal": "cast(1.50 as decimal(20, 3)) | cast(-0.001 as decimal(20, 3)) | cast(12345678901234567.125 as decimal(20, 3)) | cast(100 as decimal(20, 3))",
    "double": "1.5D | double('NaN') | double('-Infinity') | -0.0D",
    "float": "float('0.1') | float('NaN') | float('3.4e38') | float('1e-7')",
    "boolean": "true | false | true | false",
    "string": r"'plain' | 'it\'s \\ a \"quote\"' | '${env:HOME} \n -- ; 🐻' | ''",
    "binary": "X'00FF' | X'' | X'27' | X'5C'",
    "date": "date'2024-02-29' | date'0001-01-01' | date'1582-10-04' | date'9999-12-31'",
    "date beyond Python": "date_from_unix_date(2932897) | date_from_unix_date(3000000) | date'2024-01-01' | date'1970-01-01'",
    "timestamp": "timestamp'2024-10-27 00:30:00Z' | timestamp'2024-10-27 01:30:00Z' | timestamp_micros(1) | timestamp_micros(-62135596800000000)",
    "timestamp_ntz": "timestamp_ntz'2024-03-31 02:30:00' | timestamp_ntz'1500-01-01 00:00:00.000001' | timestamp_ntz'2024-01-01 00:00:00' | timestamp_ntz'1969-12-31 23:59:59.999999'",
}  # fmt: skip


def condition(dbt: Any, column: str, query: str, **limits: int) -> str:
    outcome = dbt.operation("values_of", column=column, query=query, **limits)
    assert outcome.success, outcome.log
    return str(outcome.printed)


@pytest.mark.parametrize("most", [10, pytest.param(2, marks=pytest.mark.exhaustive)], ids=["list", "ranges"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_condition_holds_exactly_for_the_values_of_its_query(dbt: Any, spark: Any, kind: str, most: int) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        spark.sql(TYPED.format(*KINDS[kind].split(" | "))).createOrReplaceTempView("typed_rows")
        query = "select v from typed_rows where id in (1, 2, 4) union all select v from typed_rows where id = 1"
        wanted = [row.id for row in spark.sql(f"select id from typed_rows t join ({query}) q on t.v = q.v").collect()]
        text = condition(dbt, "t.v", query, max_values=most, max_ranges=5)
        found = [row.id for row in spark.sql(f"select id from typed_rows t where {text}").collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert set(found) == set(wanted)
    assert "null" not in text


@pytest.mark.parametrize("escaped", ["true", "false"])
def test_text_literals_survive_every_parser_setting(dbt: Any, spark: Any, escaped: str) -> None:
    values = [
        "it's",
        "back\\slash",
        "\\'",
        "${spark.app.name}",
        'a"b',
        "100%",
        "ж — é",
        "tab\t",
        "new\nline",
        "--",
        "`x`",
    ]
    spark.createDataFrame([(value,) for value in values], "v string").createOrReplaceTempView("spelled")
    text = condition(dbt, "v", "select v from spelled")
    spark.conf.set("spark.sql.parser.escapedStringLiterals", escaped)
    try:
        assert sorted(row.v for row in spark.sql(f"select v from spelled where {text}").collect()) == sorted(values)
        assert spark.sql(f"select 1 from values ('its'), ('x'), ('') as t(v) where {text}").count() == 0
    finally:
        spark.conf.unset("spark.sql.parser.escapedStringLiterals")


def test_many_values_become_ranges_that_contain_them_all(dbt: Any, spark: Any) -> None:
    text = condition(dbt, "v", "select (id % 50) * 1000 + id as v from range(5000)", max_values=100, max_ranges=20)
    assert text.count("between") <= 20
    assert (
        spark.sql(
            f"select (id % 50) * 1000 + id as v from range(5000) where not ({text.replace('v ', '((id % 50) * 1000 + id) ')})"
        ).count()
        == 0
    )
    assert spark.sql(f"select id as v from range(60000, 70000) where {text.replace('v ', 'id ')}").count() == 0


def test_an_empty_query_matches_no_row(dbt: Any) -> None:
    assert condition(dbt, "v", "select 1 as v where false") == "false"
    assert condition(dbt, "v", "select cast(null as int) as v") == "false"


@pytest.mark.slow
def test_a_model_reads_few_files_and_the_right_rows(dbt: Any, rows: Any) -> None:
    assert dbt("run", "--select", "clustered").success
    for most in (1000, 2):
        done = dbt("run", "--select", "pruned_by", pruned_by=True, wanted=5, most=most)
        assert done.success, done.log
        found = rows("select * from main.pruned_by")
        assert {(each, each % 97) for each in range(0, 500, 100)} <= set(found)
        assert (len(found) == 5) == (most == 1000)
        sql = done.results["pruned_by"].node.compiled_code
        where = re.search(r"where (.+)", sql)[1]  # type: ignore[index]  # the model has one
        outcome = dbt.operation("zlayout_explain", model="clustered", predicate=where.replace("c.id", "id"), json=True)
        (explained,) = json.loads(outcome.printed)
        assert 0 < explained["kept_files"] < explained["total_files"] / 2


def test_an_empty_run_does_not_run_the_query(dbt: Any, rows: Any) -> None:
    assert dbt("run", "--select", "clustered").success
    assert dbt("run", "--select", "pruned_by", "--empty", pruned_by=True, wanted="no_number").success
    assert rows("select * from main.pruned_by") == []


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select 1 as a, 2 as b", "has 2 columns (a, b)"),
        ("select array(1) as a", "has type array<int>"),
    ],
)
def test_the_error_names_what_cannot_become_a_condition(dbt: Any, query: str, told: str) -> None:
    outcome = dbt.operation("values_of", column="v", query=query)
    assert not outcome.success
    assert told in str(outcome.exception) + outcome.log


def test_a_limit_must_be_a_number(dbt: Any) -> None:
    outcome = dbt.operation("values_of", column="v", query="select 1 as v", max_values=0)
    assert not outcome.success
    assert "max_values: 0 is not a whole number of at least 1" in str(outcome.exception) + outcome.log
