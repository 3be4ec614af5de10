"""Post-hooks, run-operations and tests that maintain indexes."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout import ZTable


@pytest.fixture(autouse=True)
def feed(spark, dbt, tmp_path):
    """A table that another pipeline loads."""
    folder = tmp_path / "feed"
    for number in range(4):
        load(folder, number)
    spark.sql("create schema if not exists main")
    spark.sql("drop table if exists main.feed")
    spark.sql(f"create table main.feed (id bigint) using parquet location '{folder}'")
    dbt.operation("drop_it", identifier="looked_after")
    yield folder
    spark.sql("drop table if exists main.feed")


def load(folder, number):
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": range(number * 100, number * 100 + 100)}), folder / f"load-{number}.parquet")


def kept(dbt, table, predicate):
    outcome = dbt.operation("zlayout_explain", model=table, predicate=predicate, json=True)
    assert outcome.success, outcome.log
    (explained,) = json.loads(outcome.printed)
    return explained["kept_files"], explained["total_files"]


@pytest.mark.slow
def test_hooks_bring_the_indexes_of_a_source_and_of_the_model_up_to_date(dbt, spark, feed):
    assert dbt("run", "--select", "looked_after").success
    assert kept(dbt, "main.feed", "id = 250") == (1, 4)
    load(feed, 4)
    outcome = dbt("run", "--select", "looked_after", **{"from": 400, "stats_columns": ["id", "word"]})
    assert outcome.success, outcome.log
    assert "main.feed: index at version 1; 1 file added" in outcome.log
    assert kept(dbt, "main.feed", "id = 450") == (1, 5)
    assert spark.table("main.looked_after").count() == 500
    # The first run's file knew nothing of `word`; now it does.
    assert "1 file rebuilt" in outcome.log
    assert kept(dbt, "looked_after", "word = 'x'") == (0, 2)
    assert dbt("test", "--select", "looked_after").success


@pytest.mark.exhaustive
def test_the_operation_refreshes_one_table_or_all_with_an_index(dbt, feed):
    outcome = dbt.operation("zlayout_refresh_index", model="main.feed")
    assert outcome.success, outcome.log
    assert outcome.printed == "main.feed: index at version 0; 4 files added"
    load(feed, 5)
    outcome = dbt.operation("zlayout_refresh_index", json=True)
    assert outcome.success, outcome.log
    done = {each["table"]: each for each in json.loads(outcome.printed)}
    assert done["main.feed"]["files_added"] == 1
    again = dbt.operation("zlayout_refresh_index", model="main.feed")
    assert again.printed == "main.feed: index at version 1; nothing to do"


@pytest.mark.slow
def test_the_operation_builds_and_drops_a_lookup_index_of_an_expression(dbt):
    assert dbt("run", "--select", "looked_after").success
    condition = "concat(word, '!') = 'nobody!'"
    assert kept(dbt, "looked_after", condition) == (1, 1)
    for lookup in (["concat(word, '!')"], "concat(word, '!'), id"):
        outcome = dbt.operation("zlayout_index", model="looked_after", lookup=lookup)
        assert outcome.success, outcome.log
        assert "concat(word, '!')" in outcome.printed
        assert kept(dbt, "looked_after", condition) == (0, 1)
    outcome = dbt.operation("zlayout_index", model="looked_after", lookup=["rand()"])
    assert not outcome.success
    assert "lookup: 'rand()' can have no lookup index: it is not deterministic" in str(outcome.exception) + outcome.log
    assert dbt.operation("zlayout_index", model="looked_after", lookup="concat(word, '!'), id", drop=True).success
    assert kept(dbt, "looked_after", condition) == (1, 1)


@pytest.mark.exhaustive
def test_take_orphans_appends_orphans(dbt, spark):
    assert dbt("run", "--select", "looked_after").success
    folder = Path(unquote(urlsplit(ZTable.for_name(spark, "main.looked_after").location).path))
    pq.write_table(pa.table({"id": [9000], "word": ["orphan"]}), folder / "orphan.parquet")
    assert dbt.operation("zlayout_refresh_index", model="looked_after").printed.endswith("nothing to do")
    outcome = dbt.operation("zlayout_refresh_index", model="looked_after", take_orphans=True)
    assert outcome.printed.endswith("1 file added"), outcome.log
    assert spark.table("main.looked_after").where("word = 'orphan'").count() == 1
    pq.write_table(pa.table({"id": ["9000"], "word": ["orphan"]}), folder / "orphan2.parquet")
    outcome = dbt.operation("zlayout_refresh_index", model="looked_after", take_orphans=True)
    assert not outcome.success
    assert 'column `id` is "string", not "long"' in str(outcome.exception) + outcome.log
    (folder / "orphan2.parquet").unlink()


@pytest.mark.slow
def test_verify_and_the_test_name_each_wrong_cell(dbt, spark, feed):
    assert dbt("run", "--select", "looked_after").success
    outcome = dbt.operation("zlayout_verify", model="looked_after", data=True)
    assert outcome.printed == "main.looked_after: no wrong cells"
    folder = Path(unquote(urlsplit(ZTable.for_name(spark, "main.looked_after").location).path))
    (file,) = folder.glob("*.parquet")
    kept_file, status = file.read_bytes(), file.stat()
    # Somebody writes a file of the table anew, behind its back.
    changed = pq.read_table(file).slice(5)
    pq.write_table(changed, file)
    outcome = dbt.operation("zlayout_verify", model="main.looked_after")
    assert "index: 0; file: 5" in outcome.printed
    tested = dbt("test", "--select", "looked_after", "--store-failures")
    assert not tested.success
    assert all(result.failures >= 3 for result in tested.results.values())
    stored = spark.table(f"main_dbt_test__audit.{next(iter(tested.results.values())).node.alias}").collect()
    assert ("id", "min_exact", "0", "5") in {(row.column, row.cell, row.stored, row.found) for row in stored}
    file.write_bytes(kept_file)
    assert status.st_size == len(kept_file)
    found = json.loads(dbt.operation("zlayout_verify", model="looked_after", json=True).printed)
    assert found == [{"table": "main.looked_after", "wrong": []}]


def test_the_error_names_what_cannot_be_indexed(dbt, spark):
    spark.sql("create or replace view main.only_a_view as select 1 as a")
    outcome = dbt.operation("zlayout_refresh_index", model="main.only_a_view")
    assert not outcome.success
    assert "is a view" in str(outcome.exception) + outcome.log
    spark.sql("drop view main.only_a_view")
