"""Seeds: types, one version for each load, and columns that only change in a full refresh."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest


@pytest.fixture(scope="module", autouse=True)
def loaded(dbt):
    outcome = dbt("seed", "--select", "typed", "--full-refresh")
    assert outcome.success, outcome.log
    return outcome


def test_types_are_those_that_dbt_finds_or_the_project_sets(spark):
    assert {field.name: field.dataType.simpleString() for field in spark.table("main.typed").schema} == {
        "id": "bigint",
        "share": "double",
        "flag": "boolean",
        "day": "date",
        "at": "timestamp",
        "zip": "string",
        "price": "decimal(20,2)",
        "a b": "string",
        "nothing": "bigint",
    }


def test_values_and_nulls_are_those_of_the_file(rows):
    found = rows("select id, share, flag, day, cast(at as string), zip, price, `a b`, nothing from main.typed")
    assert found == [
        (-9000000000, 1000.0, None, datetime.date(2024, 12, 31), None, "0815", None, "größe", None),
        (1, 0.5, True, datetime.date(2024, 1, 1), "2024-01-01 10:00:00", "007", Decimal("1.10"), 'x, "y"', None),
        (2, None, False, None, "2024-02-29 11:30:00", None, Decimal("20000000000.25"), None, None),
    ]


def test_a_second_load_commits_the_next_version(dbt, rows, loaded):
    outcome = dbt("seed", "--select", "typed")
    assert outcome.success, outcome.log
    assert outcome.message("typed") == "3 rows in 1 file"
    assert outcome.response("typed")["version"] == loaded.response("typed")["version"] + 1
    assert rows("select count(*) from main.typed") == [(3,)]


@pytest.mark.exhaustive
def test_columns_change_only_in_a_full_refresh(dbt, rows):
    file = dbt.folder / "seeds" / "typed.csv"
    text = file.read_text()
    lines = text.splitlines()
    file.write_text(
        "\n".join([lines[0].replace("flag", "sign") + ",more", *(f"{line},x" for line in lines[1:])]) + "\n"
    )
    try:
        refused = dbt("seed", "--select", "typed")
        assert not refused.success
        for word in ("'flag' is missing", "'sign' is new", "'more' is new", "dbt seed --full-refresh"):
            assert word in refused.message("typed")
        assert rows("select count(flag) from main.typed") == [(2,)]
        assert dbt("seed", "--select", "typed", "--full-refresh").success
        assert rows("select count(sign), max(more) from main.typed") == [(2, "x")]
    finally:
        file.write_text(text)


def test_a_number_that_does_not_fit_is_named_with_its_column(dbt, rows):
    file = dbt.folder / "seeds" / "typed.csv"
    text = file.read_text()
    file.write_text(text.replace("-9000000000", "99999999999999999999"))
    try:
        refused = dbt("seed", "--select", "typed")
        assert not refused.success
        assert "'id' does not fit bigint" in refused.message("typed")
    finally:
        file.write_text(text)
