"""Python models: what they can read and return."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from dbt.adapters.zlayout.adapter.session import connections
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.read.relations import installed


@pytest.fixture(scope="module", autouse=True)
def built(dbt):
    outcome = dbt("run", "--select", "tag:python")
    assert outcome.success, outcome.log
    return outcome


def test_a_spark_dataframe_becomes_a_table(rows):
    assert rows("select sum(n), count(*) from main.from_spark") == [(100, 7)]


def test_what_a_model_refers_to_skips_files(dbt, spark):
    catalog = Catalog(spark)
    numbers = catalog.name("main.numbers")
    spark.catalog.refreshTable("main.numbers")
    assert installed(catalog, numbers) is None
    with patch.object(connections, "forget_files"):  # which a command does at its end
        outcome = dbt("run", "--select", "from_spark")
    assert outcome.success, outcome.log
    assert installed(catalog, numbers) is not None


def test_pandas_keeps_types_and_missing_values_are_null(rows, spark):
    types = {field.name: field.dataType.simpleString() for field in spark.table("main.from_pandas").schema}
    assert types == {"id": "bigint", "share": "double", "day": types["day"]}
    assert types["day"].startswith("timestamp")
    counts = "count(*), count(share), count_if(isnan(share)), count_if(date_diff(day, date'2024-01-01') = id)"
    assert rows(f"select {counts} from main.from_pandas") == [(4, 2, 0, 4)]


@pytest.mark.exhaustive
def test_pandas_on_spark_becomes_a_table(rows):
    assert rows("select count(*), count(told) from main.from_pandas_on_spark") == [(10, 10)]


def test_an_incremental_model_knows_that_it_is_one(dbt, rows):
    outcome = dbt("run", "--select", "grown", "--full-refresh")
    assert outcome.success, outcome.log
    assert rows("select id, made from main.grown") == [(0, "first"), (1, "first"), (2, "first")]
    outcome = dbt("run", "--select", "grown")
    assert outcome.success, outcome.log
    assert rows("select id, made from main.grown") == [(0, "again"), (1, "first"), (2, "first"), (3, "later")]
    assert outcome.response("grown")["rows_updated"] == 1


@pytest.mark.parametrize(
    ("variant", "words"),
    [("list", ("builtins.list", "pandas-on-Spark DataFrame")), ("failing", ("line 6", "no_such_method"))],
)
def test_a_model_that_fails_or_returns_no_dataframe_is_an_error(dbt, variant, words):
    outcome = dbt("run", "--select", "broken", dbt_vars={"variant": variant})
    assert not outcome.success
    for word in words:
        assert word in outcome.message("broken"), outcome.message("broken")
