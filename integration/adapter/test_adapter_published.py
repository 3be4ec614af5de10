"""Tables that other engines read: the key `publish`, and the run-operation zlayout_publish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from dbt.adapters.zlayout.spark.commit.catalog_entries import drop_table
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


@pytest.mark.slow
def test_the_operation_switches_publishing_and_runs_without_the_key_keep_it(dbt, spark):
    build(dbt)
    assert publish(dbt, model="shared").printed.strip() == "main.shared: not published"
    outcome = publish(dbt, model="shared", formats=["delta"], json=True)
    assert json.loads(outcome.printed) == [{"table": "main.shared", "published": {"delta": 1}}]
    build(dbt, rows=7)
    assert DeltaTable(str(folder(spark))).to_pyarrow_table().num_rows == 7
    assert "main.shared: delta readers see version 2" in publish(dbt).printed
    assert publish(dbt, model="shared", formats=[]).printed.strip() == "main.shared: not published"
    build(dbt)
    assert not (folder(spark) / "_delta_log").exists()
    build(dbt, formats="delta")
    build(dbt, formats=[])
    assert not (folder(spark) / "_delta_log").exists()


def test_off_withdraws_what_was_published(dbt, spark):
    build(dbt, formats=["delta"])
    outcome = publish(dbt, model="shared", formats=["delta"], off=True)
    assert "off withdraws all formats; leave out formats and publish_catalog" in outcome.log
    assert (folder(spark) / "_delta_log").exists()
    # YAML takes `off` for false.
    outcome = dbt("run-operation", "zlayout_publish", "--args", "{model: shared, off: true}", sharing=True)
    assert outcome.printed.strip() == "main.shared: not published"
    assert not (folder(spark) / "_delta_log").exists()


def test_mistakes_are_named(dbt):
    build(dbt)
    outcome = publish(dbt, off=True)
    assert "zlayout_publish: off, formats and publish_catalog apply to one table" in outcome.log
    outcome = publish(dbt, formats=["delta"])
    assert not outcome.success
    assert "zlayout_publish: off, formats and publish_catalog apply to one table" in outcome.log
    outcome = publish(dbt, model="shared", formats=["parquet"])
    assert "publish: 'parquet' is not one of delta" in outcome.log
    outcome = dbt("run", "--select", "shared", sharing=True, formats="delta", column="interval '1' day")
    assert "publish: column 'v' has type interval day, which Delta tables do not have" in outcome.message("shared")


@pytest.mark.slow
def test_a_model_is_registered_in_its_catalog(dbt, spark, tmp_path, monkeypatch):
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    configuration, uri = tmp_path / ".pyiceberg.yaml", f"sqlite:///{tmp_path}/catalog.db"

    def rows():
        with load_catalog("lakehouse", uri=uri) as catalog:
            return catalog.load_table("main.shared").scan().to_arrow().num_rows

    outcome = build(dbt, formats=["iceberg"], catalog="lakehouse")
    told = "readers of main.shared in catalog 'lakehouse' do not see it yet: there is no catalog 'lakehouse' in pyiceberg's"
    assert told in outcome.log
    configuration.write_text(f"catalog:\n  lakehouse:\n    uri: {uri}\n")
    assert publish(dbt, model="shared").printed.strip() == "main.shared: iceberg readers see version 0"
    assert rows() == 100
    build(dbt, formats=["iceberg"], catalog="lakehouse", rows=50)
    assert rows() == 50
    # Runs without the keys keep it.
    build(dbt, rows=7)
    assert rows() == 7
    publish(dbt, model="shared", publish_catalog="")
    with pytest.raises(NoSuchTableError):
        rows()
    assert (folder(spark) / "metadata").exists()
    publish(dbt, model="shared", publish_catalog="lakehouse")
    assert rows() == 7
    outcome = dbt("run", "--select", "shared", sharing=True, formats=["delta"], catalog="lakehouse")
    assert (
        "publish_catalog: 'lakehouse' needs a table published as Iceberg, but publish is ['delta']"
        in outcome.message("shared")
    )
    assert "off, formats and publish_catalog apply to one table" in publish(dbt, publish_catalog="lakehouse").log
    publish(dbt, model="shared", formats=[])
    with pytest.raises(NoSuchTableError):
        rows()
