"""Tables that other engines read: the key `publish`, and the run-operation zlayout_publish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from dbt.adapters.zlayout.spark.write.remove import drop_table
from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = pytest.mark.newest_spark


@pytest.fixture(autouse=True)
def no_table(spark):
    yield
    drop_table(spark, "main", "shared")


def folder(spark):
    return Path(ZTable.for_name(spark, "main.shared").location.removeprefix("file://"))


def build(dbt, **variables):
    outcome = dbt("run", "--select", "shared", sharing=True, **variables)
    assert outcome.success, outcome.log
    return outcome


def publish(dbt, **arguments):
    return dbt("run-operation", "zlayout_publish", "--args", json.dumps(arguments), sharing=True)


@pytest.mark.parametrize("kind", ["zordered_table", "incremental", pytest.param("table", marks=pytest.mark.slow)])
def test_a_model_is_published_by_every_run(dbt, spark, kind):
    for rows in (100, 50):
        build(dbt, formats=["delta"], kind=kind, rows=rows)
        expected = spark.table("main.shared").count()
        assert DeltaTable(str(folder(spark))).to_pyarrow_table().num_rows == expected
    assert publish(dbt, model="shared").printed.strip() == "main.shared: delta readers see version 1"


def test_the_operation_switches_publishing_and_runs_without_the_key_keep_it(dbt, spark):
    build(dbt)
    assert publish(dbt, model="shared").printed.strip() == "main.shared: not published"
    outcome = publish(dbt, model="shared", formats=["delta"], json=True)
    assert json.loads(outcome.printed) == [{"table": "main.shared", "published": {"delta": 1}}]
    build(dbt, rows=7)
    assert DeltaTable(str(folder(spark))).to_pyarrow_table().num_rows == 7
    assert "main.shared: delta readers see version 2" in publish(dbt).printed
    assert publish(dbt, model="shared", off=True).printed.strip() == "main.shared: not published"
    build(dbt)
    assert not (folder(spark) / "_delta_log").exists()
    build(dbt, formats="delta")
    build(dbt, formats=[])
    assert not (folder(spark) / "_delta_log").exists()


def test_mistakes_are_named(dbt):
    build(dbt)
    outcome = publish(dbt, formats=["delta"])
    assert not outcome.success
    assert "zlayout_publish switches formats of one table only" in outcome.log
    outcome = publish(dbt, model="shared", formats=["parquet"])
    assert "publish: 'parquet' is not one of delta" in outcome.log
    outcome = dbt("run", "--select", "shared", sharing=True, formats="delta", column="interval '1' day")
    assert "publish: column 'v' has type interval day, which Delta tables do not have" in outcome.message("shared")
