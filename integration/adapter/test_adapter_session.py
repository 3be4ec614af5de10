"""The session: what `dbt debug` prints, and that all materializations work in it."""

from __future__ import annotations

import os

import pytest

from dbt.adapters.zlayout.adapter.session import launch
from dbt.adapters.zlayout.adapter.session.connections import SessionHandle
from dbt.adapters.zlayout.adapter.session.launch import session_for
from dbt.adapters.zlayout.errors import CancelledError


def test_debug_prints_versions_folders_and_skipping(dbt, lake):
    outcome = dbt("debug")
    assert outcome.success, outcome.log
    for line in (
        "Spark version: ",
        "Java version: ",
        "master: local[2]",
        f"data goes to: {lake / 'warehouse'}",
        "file skipping in this session: available",
        f"Python of the workers: {os.environ['PYSPARK_PYTHON']} (",
    ):
        assert line in outcome.printed.replace("file:", "")
    assert "method: session" in outcome.log


@pytest.mark.exhaustive
def test_seeds_keep_quotes_digits_nulls_and_dates(dbt, rows):
    import datetime

    for _ in range(2):
        outcome = dbt("seed", "--select", "rates")
        assert outcome.success, outcome.log
    assert rows("select * from main.rates") == [
        (1, "it's", 12345678901, datetime.date(2024, 1, 1)),
        (2, 'back\\slash, "quoted"', None, datetime.date(2024, 2, 29)),
        (3, "größe", -7, None),
    ]


def test_tables_views_and_incremental_models_work(dbt, rows):
    for _ in range(2):
        outcome = dbt("run", "--select", "+reader", "+reader_view", "grows")
        assert outcome.success, outcome.log
    assert rows("select count(*), sum(n) from main.reader") == [(97, 100)]
    assert rows("select count(*) from main.reader_view") == [(207,)]
    assert rows("select count(*) from main.grows") == [(20,)]


def test_the_error_of_a_rejected_statement_is_short(dbt):
    outcome = dbt("show", "--inline", "select * from main.nowhere")
    told = str(outcome.exception) + outcome.log
    assert not outcome.success
    assert "TABLE_OR_VIEW_NOT_FOUND" in told
    assert "UnresolvedRelation" not in told
    assert "at org.apache.spark" not in told


@pytest.mark.exhaustive
def test_show_prints_rows(dbt):
    assert dbt("show", "--inline", "select 41 + 1 as answer").success


@pytest.mark.slow
def test_an_incremental_model_continues_a_zordered_table(dbt, rows):
    assert dbt("run", "--select", "grows", "--full-refresh", variant="clustered").success
    outcome = dbt("run", "--select", "grows")
    assert outcome.success, outcome.log
    assert rows("select count(*), count(distinct id) from main.grows") == [(20, 10)]
    assert dbt("run", "--select", "grows", "--full-refresh").success
    assert rows("select count(*) from main.grows") == [(10,)]


def test_variables_of_the_process_are_not_substituted_in_statements(dbt):
    assert dbt.rows_of(r"select '${env:HOME}' a, '${system:user.home}' b") == [("${env:HOME}", "${system:user.home}")]


def test_a_profile_does_not_inherit_the_scan_log_of_the_one_before(dbt, spark, tmp_path):
    settings = {"spark.zlayout.scanLog": str(tmp_path), "spark.zlayout.scanLogConstants": "false"}
    now = {key: spark.conf.get(key, None) for key in settings}
    (applied,) = launch._APPLIED
    try:
        assert session_for({**applied[1], **settings}).conf.get("spark.zlayout.scanLog") == str(tmp_path)
    finally:
        again = session_for(applied[1])
    assert {key: again.conf.get(key, None) for key in settings} == now


def test_what_spark_still_plans_at_a_cancellation_runs_no_further(dbt, lake, spark):
    handle = SessionHandle(spark)
    folder = lake / "planned"
    query = (
        "select /*+ repartition(50) */ id from range(20000) where java_method('java.lang.Thread', 'sleep', 5L) is null"
    )
    try:
        cursor = handle.cursor()
        cursor.execute(query)
        handle.cancel()
        # As if the thread had been in Spark all the time: its statement runs after the cancellation.
        with pytest.raises(Exception, match=r"cancelled"):
            spark.sql(f"insert overwrite directory '{folder}' using parquet {query}")
        with pytest.raises(CancelledError):
            cursor.run()
    finally:
        handle.close()
    assert not list(folder.rglob("*.parquet"))
    assert spark.range(3).count() == 3
