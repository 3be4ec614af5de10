"""Obstacles to a run: plain tables, other writers, wrong settings, failing queries."""

from __future__ import annotations

import threading
import time

import pytest

from dbt.adapters.zlayout import ZTable
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog


@pytest.mark.slow
def test_a_plain_table_is_replaced_or_taken_over(dbt, spark, rows):
    spark.sql("create schema if not exists main")
    for model in ("append_plain", "reader"):
        dbt.operation("drop_it", identifier=model)
    spark.sql(
        "create table main.append_plain using parquet as select id, 0 as part, 'old' as told, id as amount, date'2023-01-01' as seen from range(7)"
    )
    spark.sql("create table main.reader using parquet as select 1 as old")
    outcome = dbt("run", "--select", "append_plain", "+reader")
    assert outcome.success, outcome.log
    assert "the plain Parquet table is now managed" in outcome.log
    assert rows("select count(*), count_if(told = 'old') from main.append_plain") == [(207, 7)]
    assert rows("select count(*) from main.reader") == [(97,)]
    assert "managed" in dbt.operation("zlayout_info", model="append_plain").printed


def test_a_first_run_warns_of_a_table_that_the_catalog_lost(dbt, spark, rows):
    assert "its folder" not in dbt("run", "--select", "append_plain", "--full-refresh").log
    before = ZTable.for_name(spark, "main.append_plain")
    catalog = Catalog(spark)
    catalog.remove(catalog.name("main.append_plain"))
    outcome = dbt("run", "--select", "append_plain")
    assert outcome.success, outcome.log
    assert f"its folder already held a table, up to v{before.version}, which the catalog did not know" in outcome.log
    assert ZTable.for_name(spark, "main.append_plain").version == before.version + 1
    assert dbt.operation("zlayout_rollback", model="append_plain", version=before.version).success
    assert "its folder" not in dbt("run", "--select", "append_plain").log


@pytest.mark.slow
def test_a_conflict_with_another_writer_runs_the_query_again(dbt, spark, rows):
    assert dbt("run", "--select", "slow", "--full-refresh").success
    theirs = spark.sql("select 1L as id, 'other' as made_by, false as slept")
    table = ZTable.for_name(spark, "main.slow")
    before = {path.name for path in pending(table)}

    def be_first():
        limit = time.monotonic() + 60
        while time.monotonic() < limit and not {path.name for path in pending(table)} - before:
            time.sleep(0.05)
        time.sleep(0.2)
        ZTable.for_name(spark, "main.slow").merge(theirs, ["id"])

    other = threading.Thread(target=be_first)
    other.start()
    outcome = dbt("run", "--select", "slow")
    other.join()
    assert outcome.success, outcome.log
    assert "rerunning the query (1 of 3)" in outcome.log
    assert rows("select id, made_by from main.slow") == [(0, "dbt"), (1, "dbt"), (2, "dbt")]


def pending(table):
    from pathlib import Path
    from urllib.parse import unquote, urlparse

    return list((Path(unquote(urlparse(table.location).path)) / ".zlayout" / "timeline").glob("*.inflight"))


def test_errors_for_an_unknown_strategy_or_key_column_name_what_is_allowed(dbt):
    outcome = dbt("run", "--select", "unknown", wrong=True)
    assert not outcome.success
    for word in (
        "'upsert' is not one of append, delete+insert, insert_overwrite, merge, microbatch",
        "'coalesce(id, 0)' is an expression",
        "`matched_conditon`: did you mean `matched_condition`?",
    ):
        assert word in outcome.message("unknown")


def test_a_failed_full_refresh_leaves_the_table_unchanged(dbt, rows):
    assert dbt("run", "--select", "turns", variant="grows").success
    failed = dbt("run", "--select", "turns", "--full-refresh", variant="failing")
    assert not failed.success
    assert rows("select count(*), max(made_by) from main.turns") == [(10, "grows")]
