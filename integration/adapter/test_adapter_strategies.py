"""Every incremental strategy, compared with what plain Spark computes on the same rows."""

from __future__ import annotations

import pytest

# A run's result in SQL, over the table as it was (`old`) and the rows that came (`new`); both have `arriving`'s columns.
_BY_ID = "select * from new union all select * from old where id not in (select id from new)"
# No row of the first round is a delete; some of the second's and the third's are, of keys that the table has or lacks.
_IS_DELETE = "amount > 300 and part = 1"
_DELETES = f"""
    select * from new where not ({_IS_DELETE}) union all select * from old where id not in (select id from new)"""
EXPECTED = {
    "append_plain": "select * from old union all select * from new",
    "append_parted": "select * from old union all select * from new",
    "overwrite_plain": "select * from new",
    "overwrite_parted": "select * from new union all select * from old where part not in (select part from new)",
    "overwrite_static": "select * from new",
    "merge_plain": _BY_ID,
    "merge_parted": _BY_ID,
    "merge_keys": """
        select * from new union all
        select * from old where not exists (select 1 from new where new.id = old.id and new.part = old.part)""",
    "merge_some_columns": """
        select old.id, old.part, coalesce(new.told, old.told), coalesce(new.amount, old.amount), old.seen
        from old left join new using (id) union all select * from new where id not in (select id from old)""",
    "merge_other_columns": """
        select old.id, old.part, old.told, coalesce(new.amount, old.amount), coalesce(new.seen, old.seen)
        from old left join new using (id) union all select * from new where id not in (select id from old)""",
    "merge_conditions": """
        select * from old where not exists (
            select 1 from new where new.id = old.id and old.id > 120 and new.amount > old.amount + 300)
        union all select new.* from new join old using (id) where old.id > 120 and new.amount > old.amount + 300
        union all select * from new where id % 3 = 0 and not exists (
            select 1 from old where new.id = old.id and old.id > 120)""",
    "merge_only_new": "select * from old union all select * from new where id not in (select id from old)",
    "merge_only_known": """
        select new.* from new join old using (id) union all
        select * from old where id not in (select id from new)""",
    "merge_deletes": _DELETES,
    "upsert_deletes": _DELETES,
    "merge_without_key": "select * from old union all select * from new",
    "delete_insert_plain": "select * from new union all select * from old where part not in (select part from new)",
    "delete_insert_parted": """
        select * from new union all
        select * from old where not exists (select 1 from new where new.id = old.id and new.seen = old.seen)""",
    "delete_insert_some": """
        select * from new union all select * from old where id not in (select id from new) or amount >= 180""",
    "only_later": "select * from old union all select * from new where id > (select max(id) from old)",
}
COLUMNS = "id, part, told, amount, seen"


@pytest.fixture(scope="module")
def rounds(dbt):
    """The outcomes of three runs: (outcome, rows by model)."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    found = []
    for number in (1, 2, 3):
        outcome = dbt("run", "--select", "tag:strategies", round=number)
        assert outcome.success, outcome.log
        found.append(
            (outcome, {model: spark.sql(f"select {COLUMNS} from main.{model}").collect() for model in EXPECTED})
        )
    return found


@pytest.fixture(scope="module")
def arrived(dbt):
    """The rows of each round."""
    return [dbt.rows_of("{{ arriving() }}", round=number) for number in (1, 2, 3)]


def test_the_first_run_makes_the_table(rounds, arrived):
    _, tables = rounds[0]
    for model in EXPECTED:
        assert sorted(tables[model]) == sorted(arrived[0]), model


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("model", EXPECTED)
def test_a_later_run_leaves_what_plain_spark_computes(spark, rounds, arrived, model, number):
    before, after = rounds[number - 2][1][model], rounds[number - 1][1][model]
    kind = "id bigint, part int, told string, amount bigint, seen date"
    spark.createDataFrame(before, kind).createOrReplaceTempView("old")
    spark.createDataFrame(arrived[number - 1], kind).createOrReplaceTempView("new")
    expected = [tuple(row) for row in spark.sql(EXPECTED[model]).collect()]
    assert sorted(tuple(row) for row in after) == sorted(expected)


def test_a_run_is_one_version_and_counts_its_changes(rounds, arrived):
    outcome, _ = rounds[1]
    response = outcome.response("merge_plain")
    known = sum(1 for row in arrived[1] if row[0] < 200)
    new = len(arrived[1]) - known
    assert response["version"] == rounds[0][0].response("merge_plain")["version"] + 1
    assert (response["rows_inserted"], response["rows_updated"], response["rows_deleted"]) == (new, known, 0)
    assert response["rows_affected"] == known + new
    assert 0 < response["files_removed"] < response["files_total"]
    assert response["bytes_written"] == response["bytes_added"] > 0
    assert outcome.message("merge_plain") == (
        f"v{response['version']} +{new} ~{known} -0 rows, "
        f"{response['files_removed']} of {response['files_total']} files rewritten"
    )
    appended = outcome.response("append_plain")
    assert (appended["rows_inserted"], appended["files_removed"]) == (len(arrived[1]), 0)
    assert outcome.message("append_plain").endswith(f"+{len(arrived[1])} ~0 -0 rows in 1 new file")


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("model", ["merge_deletes", "upsert_deletes"])
def test_a_run_counts_deleted_rows(rounds, arrived, model, number):
    known = {row[0] for row in rounds[number - 2][1][model]}
    came = arrived[number - 1]
    deletes = {row[0] for row in came if row[3] > 300 and row[1] == 1}
    gone = len(deletes & known)
    response = rounds[number - 1][0].response(model)
    assert response["rows_deleted"] == gone > 0
    assert response["rows_inserted"] == len({row[0] for row in came} - known - deletes)
    assert f" -{gone} rows" in rounds[number - 1][0].message(model)


def test_a_column_that_only_marks_deletes_is_not_stored_and_a_line_says_so(spark, rounds):
    assert spark.table("main.merge_deletes").columns == COLUMNS.split(", ")
    for outcome, _ in rounds:
        assert "only deleted_when uses the column op, which is not stored" in outcome.log


def test_a_full_refresh_is_one_version_with_only_the_rows_of_this_run(dbt, rounds, arrived):
    before = rounds[2][0].response("merge_plain")["version"]
    outcome = dbt("run", "--full-refresh", "--select", "merge_plain", "merge_parted", "overwrite_parted", round=2)
    assert outcome.success, outcome.log
    assert outcome.response("merge_plain")["version"] == before + 1
    for model in ("merge_plain", "merge_parted", "overwrite_parted"):
        assert sorted(dbt.rows_of(f"select {COLUMNS} from main.{model}")) == sorted(arrived[1])
