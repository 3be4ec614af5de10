"""Several writers of one table: batches run side by side, other writers wait and say for whom."""

from __future__ import annotations

import os
import platform
import threading

import pytest

from dbt.adapters.zlayout.spark.commit.catalog_entries import drop_table
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions import writer_priority
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction


@pytest.fixture
def batches(dbt, spark):
    yield dbt
    drop_table(spark, "main", "by_day")


def test_batches_of_a_model_are_open_at_the_same_time(batches, rows, monkeypatch):
    dbt = batches
    span = ("--event-time-start", "2024-03-01", "--event-time-end", "2024-03-05")
    for model in ("events", "by_day"):
        done = dbt("run", "--select", model, *span, "--threads", "4", hours=96)
        assert done.success, done.log
    meet, began = threading.Barrier(2), Transaction.begin.__func__
    held = []

    def begin(cls, timeline, *arguments, **options):
        transaction = began(cls, timeline, *arguments, **options)
        if "/by_day" in timeline.store.root_uri and len(held) in (1, 2):
            held.append(transaction.base.version)
            # The two batches between the first and the last wait here until both have begun.
            meet.wait(60)
        else:
            held.append(None)
        return transaction

    monkeypatch.setattr(Transaction, "begin", classmethod(begin))
    done = dbt("run", "--select", "by_day", *span, "--threads", "4", hours=96)
    assert done.success, done.log
    assert "rerunning the query" not in done.log
    assert held[1] == held[2]
    assert rows("select cast(at as date), count(*) from main.by_day group by all") == [
        (day, 24) for (day,) in rows("select explode(sequence(date'2024-03-01', date'2024-03-04'))")
    ]


@pytest.mark.slow
def test_batches_that_share_a_file_all_end(batches, spark):
    dbt = batches
    span = ("--event-time-start", "2024-03-01", "--event-time-end", "2024-03-13")
    for variant in ("first", "changed"):
        assert dbt("run", "--select", "events", hours=288, variant=variant).success
        done = dbt("run", "--select", "by_day", *span, "--threads", "8", hours=288, variant=variant)
        assert done.success, done.log
        made = spark.sql("select made_by, count(*) from main.by_day group by all").collect()
        assert [tuple(row) for row in made] == [(variant, 288)]
        table = ZTable.for_name(spark, "main.by_day")
        table.cluster(rewrite_all=True)
        assert len(table.snapshot().files) == 1


@pytest.mark.parametrize("model", ["kept_orders", pytest.param("ups", marks=pytest.mark.slow)])
def test_a_writer_waits_for_another_and_says_for_whom(dbt, spark, monkeypatch, model):
    spark.sql("create schema if not exists main")
    drop_table(spark, "main", model, None)
    ZTable.write(spark, "main.feed_orders", spark.sql("select 1L id, 2L v, date'2024-01-01' day"))
    assert dbt("run", "--select", model).success
    table = ZTable.for_name(spark, f"main.{model}")
    timeline = Timeline(open_store(table.location))
    other = Transaction.begin(timeline, Action.COMMIT, Operation.MERGE)
    looked, is_live = [], writer_priority._is_live

    def looks(*arguments):
        looked.append(ZTable.for_name(spark, table.name).version)
        if len(looked) == 3:
            other.rollback()
        return is_live(*arguments)

    monkeypatch.setattr(writer_priority, "_is_live", looks)
    done = dbt("run", "--select", model)
    assert done.success, done.log
    line = f"waits for the merge {other.instant} of process {os.getpid()} on {platform.node()}"
    assert done.log.count(line) == 1, done.log
    assert looked == [table.version] * 3
