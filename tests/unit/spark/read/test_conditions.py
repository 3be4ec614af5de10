"""Conditions in SQL as predicates."""

from __future__ import annotations

from typing import cast

from pyspark.sql import SparkSession

from dbt.adapters.zlayout.spark.read.conditions import predicates_that_fit


def test_without_conditions_no_expression_is_bound() -> None:
    no_session = cast("SparkSession", None)
    assert predicates_that_fit(no_session, "{}", [], ["lower(email)"]) == []
