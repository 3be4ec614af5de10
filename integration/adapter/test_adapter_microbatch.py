"""Batches by event time: each replaces only itself."""

from __future__ import annotations

import pytest

SPAN = ("--event-time-start", "2024-03-01", "--event-time-end", "2024-03-04")
BY_DAY = "select cast(at as date), made_by, count(*) from main.by_day group by all"


def days(rows):
    return [(day.day, made_by, n) for day, made_by, n in rows(BY_DAY)]


@pytest.fixture(scope="module", autouse=True)
def batches(dbt):
    assert dbt("run", "--select", "events").success
    outcome = dbt("run", "--select", "by_day", *SPAN)
    assert outcome.success, outcome.log
    return outcome


def test_each_batch_is_a_version_of_its_own(dbt, rows):
    assert days(rows) == [(1, "first", 24), (2, "first", 24), (3, "first", 24)]
    history = dbt.operation("zlayout_info", model="by_day", json=True)
    assert '"version": 2' in history.printed


def test_a_repeated_batch_replaces_itself(dbt, rows):
    assert dbt("run", "--select", "events", variant="changed").success
    outcome = dbt(
        "run",
        "--select",
        "by_day",
        "--event-time-start",
        "2024-03-02",
        "--event-time-end",
        "2024-03-03",
        variant="changed",
    )
    assert outcome.success, outcome.log
    assert days(rows) == [(1, "first", 24), (2, "changed", 24), (3, "first", 24)]


@pytest.mark.slow
@pytest.mark.parametrize("how", [[], ["--full-refresh"]])
def test_failed_batches_are_retried_without_losses_or_duplicates(dbt, rows, how):
    assert dbt("run", "--select", "events", variant="failing").success
    failed = dbt("run", "--select", "by_day", *SPAN, *how, variant="failing")
    assert not failed.success
    done = failed.results["by_day"].batch_results
    assert (len(done.successful), len(done.failed)) == (1, 2)
    assert [row[:2] for row in days(rows)][:1] == [(1, "failing")]
    assert sum(row[2] for row in days(rows)) == (24 if how else 72)
    mended = dbt.folder / "models" / "batches" / "by_day.sql"
    text = mended.read_text()
    mended.write_text(text.replace("timestamp'2024-03-02'", "timestamp'2124-03-02'"))
    try:
        outcome = dbt("retry", variant="failing")
        assert outcome.success, outcome.log
        assert days(rows) == [(1, "failing", 24), (2, "failing", 24), (3, "failing", 24)]
    finally:
        mended.write_text(text)


def test_microbatch_on_a_zordered_table_is_an_error(dbt):
    outcome = dbt("run", "--select", "by_day_clustered", wrong=True)
    assert not outcome.success
    assert "materialized='incremental'" in outcome.message("by_day_clustered")
