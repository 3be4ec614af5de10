"""Models with table_type merge_on_read: relations, writes, conversions, compaction."""

from __future__ import annotations

import itertools
import json

import pytest

from dbt.adapters.zlayout import ZTable

COLUMNS = "id, part, told, amount, seen"
NAMES = ("upserted", "upserted__ro", "upserted__files")


@pytest.fixture(scope="module")
def arrived(dbt):
    """The rows of each round, by id."""
    return {
        number: {row[0]: row for row in dbt.rows_of("select * from ({{ arriving() }})", round=number)}
        for number in (1, 2, 3)
    }


@pytest.fixture
def table(dbt):
    """Rebuilds `upserted` with the rows of the first round."""
    dbt.operation("drop_it", identifier="upserted")
    return run(dbt, "upserted")


def run(dbt, model, *flags, **variables):
    outcome = dbt("run", "--select", model, *flags, **variables)
    assert outcome.success, outcome.log
    return outcome


def rows_by_id(spark, model="upserted"):
    found = [tuple(row) for row in spark.sql(f"select {COLUMNS} from main.{model}").collect()]
    assert len({row[0] for row in found}) == len(found)
    return {row[0]: row for row in found}


def is_one_table(dbt, name):
    names = [name, f"{name}__ro", f"{name}__files"]
    told = dbt.operation("kinds_of", identifiers=names).printed.splitlines()
    return told == [f"{name} table", f"{name}__ro none", f"{name}__files none"]


def in_catalog(spark, word="upserted"):
    return {row.tableName for row in spark.sql(f"show tables in main like '{word}*'").collect()}


def test_the_first_run_makes_a_table_and_the_next_writes_logs(dbt, spark, table, arrived):
    assert table.message("upserted").startswith("200 rows in 1 file")
    assert is_one_table(dbt, "upserted")
    assert in_catalog(spark) == set(NAMES)
    assert rows_by_id(spark) == arrived[1]
    outcome = run(dbt, "upserted", round=2)
    known = len(arrived[1].keys() & arrived[2].keys())
    new = len(arrived[2]) - known
    response = outcome.response("upserted")
    assert (response["rows_inserted"], response["rows_updated"], response["rows_deleted"]) == (new, known, 0)
    assert (response["rows_affected"], response["files_removed"]) == (new + known, 0)
    assert response["groups_touched"] == response["files_added"] == 1
    assert response["log_bytes"] == response["bytes_written"] > 0
    assert outcome.message("upserted") == f"v1 +{new} ~{known} -0 rows in 1 new file"
    assert rows_by_id(spark) == {**arrived[1], **arrived[2]}
    assert spark.table("main.upserted__ro").count() == 200
    assert spark.table("main.upserted").where("came_later").count() == len(arrived[2])
    run(dbt, "upserted", round=3, strategy="delete+insert")
    assert rows_by_id(spark) == {**arrived[1], **arrived[2], **arrived[3]}


def test_descriptions_of_the_model_are_on_the_table(dbt, spark, table):
    described = {row.col_name: row.comment for row in spark.sql("describe main.upserted").collect() if row.comment}
    assert described == {"id": "tells rows apart"}
    assert ("team", "lake") in {tuple(row) for row in spark.sql("show tblproperties main.upserted").collect()}
    outcome = dbt("docs", "generate", "--select", "upserted")
    assert outcome.success, outcome.log
    found = {
        node["metadata"]["name"]: node
        for node in dbt.artifact("catalog.json")["nodes"].values()
        if node["metadata"]["name"].startswith("upserted")
    }
    assert list(found) == ["upserted"]
    metadata, columns = found["upserted"]["metadata"], found["upserted"]["columns"]
    assert (metadata["type"], metadata["comment"]) == ("table", "one row an id")
    assert columns["id"]["comment"] == "tells rows apart"
    assert list(columns) == ["id", "part", "told", "amount", "seen", "came_later"]


@pytest.mark.slow
def test_compactions_are_planned_and_executed_and_a_test_limits_the_lag(dbt, spark, table, arrived):
    run(dbt, "upserted", round=2)
    assert dbt("test", "--select", "logs_are_few").success
    run(dbt, "upserted", round=3)
    failed = dbt("test", "--select", "logs_are_few", "--store-failures")
    assert failed.results["logs_are_few"].failures == 1
    (row,) = spark.table("main_dbt_test__audit.logs_are_few").collect()
    assert (row.measure, row.found, row.at_most) == ("commits", 2, 1)
    assert "compact the table" in row.what_to_do
    assert row.what_to_do in failed.log
    before = rows_by_id(spark)
    planned = dbt.operation("zlayout_compact", model="upserted", schedule=True)
    assert planned.success, planned.log
    assert "main.upserted: planned" in planned.printed
    info = json.loads(dbt.operation("zlayout_info", model="upserted", json=True).printed)
    assert (info["verdict"]["level"], info["rows"]) == ("poor", len(before))
    assert dbt("docs", "generate", "--select", "upserted").success
    stats = dbt.artifact("catalog.json")["nodes"]["model.adapter_suite.upserted"]["stats"]
    assert (stats["rows"]["value"], stats["log_records"]["value"]) == (len(before), info["log_records"])
    assert (info["slices_with_logs"], info["log_files"], info["unmerged_commits"]) == (1, 2, 2)
    (instant,) = info["pending_compactions"]
    waiting = dbt("test", "--select", "logs_are_few")
    assert "zlayout_compact with execute: true" in waiting.log
    refused = dbt.operation("zlayout_compact", model="upserted", plan=instant, strategy="age")
    assert "strategy: only applies to a new plan" in str(refused.exception) + refused.log
    done = dbt.operation("zlayout_compact", model="upserted", plan=int(instant))
    assert done.success, done.log
    assert "main.upserted: merged the logs of 1 file group: 3 files" in done.printed
    assert rows_by_id(spark) == before
    assert spark.table("main.upserted__ro").count() == len(before)
    assert dbt("test", "--select", "logs_are_few", dbt_vars={"commits": 0}).success
    again = dbt.operation("zlayout_compact", json=True)
    (report,) = [each for each in json.loads(again.printed) if each["table"] == "main.upserted"]
    assert (report["groups"], report["scheduled"]) == (0, False)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--full-refresh",)])
def test_a_run_converts_a_table_to_the_type_of_its_model(dbt, spark, table, arrived, flags):
    run(dbt, "upserted", round=2)
    outcome = run(dbt, "upserted", *flags, kind="copy_on_write", strategy="merge", round=3)
    expected = arrived[3] if flags else {**arrived[1], **arrived[2], **arrived[3]}
    assert rows_by_id(spark) == expected
    assert in_catalog(spark) == {"upserted"}
    assert is_one_table(dbt, "upserted")
    assert "groups_touched" not in outcome.response("upserted")
    outcome = run(dbt, "upserted", *flags, round=2)
    assert ("log_bytes" in outcome.response("upserted")) == (not flags)
    assert rows_by_id(spark) == (arrived[2] if flags else {**expected, **arrived[2]})
    assert in_catalog(spark) == set(NAMES)
    assert is_one_table(dbt, "upserted")
    assert ZTable.for_name(spark, "main.upserted").merges_on_read
    described = {row.col_name: row.comment for row in spark.sql("describe main.upserted").collect() if row.comment}
    assert described == {"id": "tells rows apart"}


@pytest.mark.exhaustive
def test_a_table_is_renamed_and_dropped_with_its_files_and_views(dbt, spark, table, arrived, folders):
    run(dbt, "upserted", round=2)
    before = rows_by_id(spark)
    renamed = dbt.operation("rename_it", identifier="upserted", to="renamed")
    assert renamed.success, renamed.log
    assert in_catalog(spark) == set()
    assert in_catalog(spark, "renamed") == {"renamed", "renamed__ro", "renamed__files"}
    assert is_one_table(dbt, "renamed")
    assert rows_by_id(spark, "renamed") == before
    run(dbt, "upserted", round=3)
    assert (rows_by_id(spark), rows_by_id(spark, "renamed")) == (arrived[3], before)
    ZTable.for_name(spark, "main.renamed").delete("id < 100")
    assert rows_by_id(spark, "renamed") == {key: row for key, row in before.items() if key >= 100}
    there = folders()
    assert dbt.operation("drop_it", identifier="renamed").success
    assert in_catalog(spark, "renamed") == set()
    assert len(there - folders()) == 1
    assert rows_by_id(spark) == arrived[3]


@pytest.mark.exhaustive
def test_a_view_with_the_name_is_replaced_and_another_view_stays(dbt, spark, arrived):
    dbt.operation("drop_it", identifier="upserted")
    spark.sql("create or replace view main.upserted__ro as select 1 as mine")
    assert "needs the name main.upserted__ro" in dbt("run", "--select", "upserted").message("upserted")
    run(dbt, "upserted", kind="copy_on_write")
    assert "needs the name main.upserted__ro" in dbt("run", "--select", "upserted").message("upserted")
    assert spark.table("main.upserted__ro").columns == ["mine"]
    spark.sql("drop view main.upserted__ro")
    dbt.operation("drop_it", identifier="upserted")
    spark.sql("create view main.upserted as select 1 as id")
    run(dbt, "upserted")
    assert rows_by_id(spark) == arrived[1]
    assert in_catalog(spark) == set(NAMES)


@pytest.mark.exhaustive
def test_rows_move_between_partitions_and_plans_stay_pending(dbt, spark, arrived):
    dbt.operation("drop_it", identifier="moved")
    outcomes = [run(dbt, "moved", round=number) for number in (1, 2, 3)]
    assert rows_by_id(spark, "moved") == {**arrived[1], **arrived[2], **arrived[3]}
    assert "is planned; run zlayout_compact with execute: true" in outcomes[2].log
    assert outcomes[2].response("moved")["groups_touched"] > 1
    done = dbt.operation("zlayout_compact", model="moved", execute=True)
    assert "merged the logs of" in done.printed
    assert rows_by_id(spark, "moved") == {**arrived[1], **arrived[2], **arrived[3]}
    clustered = dbt.operation("zlayout_cluster", model="moved")
    assert clustered.success, clustered.log


@pytest.mark.slow
def test_a_repeated_batch_replaces_itself(dbt, spark):
    days = ("--event-time-start", "2024-03-01", "--event-time-end", "2024-03-03")
    run(dbt, "events")
    run(dbt, "records_by_day", *days)
    run(dbt, "events", variant="changed")
    run(dbt, "records_by_day", "--event-time-start", "2024-03-02", "--event-time-end", "2024-03-03", variant="changed")
    found = spark.sql("select day(at), made_by, count(*) from main.records_by_day group by all").collect()
    assert sorted(map(tuple, found)) == [(1, "first", 24), (2, "changed", 24)]


@pytest.mark.slow
@pytest.mark.newest_spark
def test_every_order_of_six_events_of_a_key_in_three_runs_ends_the_same(dbt, spark):
    """The last event of a key is an insert or a delete; each order of the six comes in runs of two."""
    events = [
        (f"{number}/{kinds}", order, kinds[order - 1], f"v{order}", "ab"[order % 2], 1 + place // 2)
        for number, orders in enumerate(itertools.permutations(range(1, 7)))
        for kinds in ("IUDIUD", "IUDIDI")
        for place, order in enumerate(orders)
    ]
    rows = spark.createDataFrame(events, "k string, o int, op string, v string, p string, batch int")
    spark.sql("create schema if not exists main")
    rows.write.mode("overwrite").saveAsTable("main.feed_events")
    run(dbt, "fed", "--full-refresh")
    for batch in (2, 3):
        run(dbt, "fed", batch=batch)
    found = spark.sql("select split_part(k, '/', 2) kinds, o, v, p, count(*) from main.fed group by all").collect()
    assert [tuple(row) for row in found] == [("IUDIDI", 6, "v6", "a", 720)]


def test_the_error_for_a_strategy_without_keys_names_one_with_keys(dbt):
    outcome = dbt("run", "--select", "wrong_records", wrong=True)
    assert not outcome.success
    assert "use one of merge, delete+insert" in outcome.message("wrong_records")


@pytest.mark.exhaustive
def test_dropping_the_schema_leaves_nothing(project_at, spark, dbt, folders):
    project = project_at(schema="records_gone")
    run(project, "upserted")
    assert any("records_gone" in each for each in folders())
    outcome = project.operation("drop_the_schema")
    assert outcome.success, outcome.log
    assert not any("records_gone" in each for each in folders())
