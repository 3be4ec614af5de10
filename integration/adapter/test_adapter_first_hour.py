"""What a new user meets: grants that Spark cannot give, descriptions that change, steps that take long."""

from __future__ import annotations

import re
import time

import pytest
import yaml

from dbt.adapters.zlayout.spark.jobs import jobs
from dbt.adapters.zlayout.table.ztable import ZTable

MODELS = {
    "described": """{{ config(materialized='incremental', incremental_strategy='append', zorder=['id']) }}
        select {{ var('round') }} as id, 'a' as Name""",
    "granted": """{{ config(materialized=var('kind', 'table'), grants={'select': ['reporting']}) }} select 1 as id""",
}
PROPERTIES = """
models:
  - name: described
    description: rows of {{ var('told', 'the first run') }}
    config: {persist_docs: {relation: true, columns: true}}
    columns:
      - {name: id, description: "number of {{ var('told', 'the first run') }}"}
      - {name: name, description: "text of {{ var('told', 'the first run') }}"}
"""


@pytest.fixture(scope="module")
def project(dbt, project_at, tmp_path_factory):
    folder = tmp_path_factory.mktemp("first") / "source"
    (folder / "models").mkdir(parents=True)
    for name, sql in MODELS.items():
        (folder / "models" / f"{name}.sql").write_text(sql, "utf-8")
    (folder / "models" / "properties.yml").write_text(PROPERTIES, "utf-8")
    (folder / "dbt_project.yml").write_text(yaml.safe_dump({"name": "first", "profile": "first"}), "utf-8")
    return project_at(source=folder, schema="first_hour", profile="first")


@pytest.mark.parametrize("kind", ["table", "view"])
def test_grants_are_refused_before_anything_is_written(project, spark, kind):
    done = project("run", "--select", "granted", dbt_vars={"kind": kind, "round": 1})
    assert not done.success
    message = done.message("granted")
    assert "grants: this Spark cannot grant (" in message
    assert "remove the key" in message
    assert not spark.catalog.tableExists("first_hour.granted")


def comments(spark):
    return {row.col_name: row.comment for row in spark.sql("describe first_hour.described").collect() if row.comment}


def test_comments_of_columns_change_with_an_incremental_run(project, spark):
    assert project("run", "--select", "described", dbt_vars={"round": 1}).success
    assert comments(spark) == {"id": "number of the first run", "Name": "text of the first run"}
    done = project("run", "--select", "described", dbt_vars={"round": 2, "told": "the second"})
    assert done.success, done.log
    assert comments(spark) == {"id": "number of the second", "Name": "text of the second"}
    assert spark.table("first_hour.described").count() == 2
    before = ZTable.for_name(spark, "first_hour.described")
    assert project("run", "--select", "described", dbt_vars={"round": 3, "told": "the second"}).success
    after = ZTable.for_name(spark, "first_hour.described")
    assert after.snapshot().schema_json == before.snapshot().schema_json


def test_a_step_without_news_tells_its_elapsed_time(spark, monkeypatch):
    monkeypatch.setattr(jobs, "_POLL_SECONDS", 0.1)
    monkeypatch.setattr(jobs, "_SILENT_SECONDS", 0.4)
    lines = []

    def action():
        spark.sparkContext.parallelize([2], 1).map(time.sleep).collect()

    jobs.run(spark, "rewriting", lines.append, action)
    unfinished = [line for line in lines if re.fullmatch(r"rewriting: 0 of 1 tasks, \d s", line)]
    assert len(unfinished) >= 2, lines
