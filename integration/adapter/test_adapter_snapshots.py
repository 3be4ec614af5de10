"""Snapshots: three rounds of a source that changes, loses and regains rows, under each way to treat deletes."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

KEPT = ("kept_ignore", "kept_invalidate", "kept_legacy", "kept_new_record", "kept_check", "kept_check_at")


@pytest.fixture(scope="module", autouse=True)
def rounds(dbt):
    """The outcomes of three rounds."""
    found = []
    for number in (1, 2, 3):
        outcome = dbt("build", "--select", "tag:kept", round=number)
        assert outcome.success, outcome.log
        found.append(outcome)
    return found


@pytest.fixture
def states(spark):
    """The states of each key in a snapshot: (id, word, whether it is still valid), oldest first."""

    def found(table, valid_to="dbt_valid_to", valid_from="dbt_valid_from", current="null"):
        valid = f"coalesce({valid_to} = {current}, {valid_to} is null)"
        query = f"select id, word, {valid} as valid from main.{table} order by id, {valid_from}, {valid_to} nulls last"
        return [tuple(row) for row in spark.sql(query).collect()]

    return found


def test_a_timestamp_snapshot_keeps_deleted_rows_by_default(states):
    assert states("kept_ignore") == [
        (1, "a", False),
        (1, "A", True),
        (2, "b", False),
        (2, "b", True),
        (3, "c", True),
        (4, "d", False),
        (4, "e", True),
    ]


def test_the_times_of_a_timestamp_snapshot_are_those_of_the_source(rows):
    assert rows(
        "select word, cast(dbt_valid_from as date), cast(dbt_valid_to as date) from main.kept_ignore where id = 1"
    ) == (rows("select * from values ('A', date'2024-01-02', null), ('a', date'2024-01-01', date'2024-01-02')"))


@pytest.mark.parametrize(
    ("table", "current"), [("kept_invalidate", "to_timestamp('9999-12-31')"), ("kept_legacy", "null")]
)
def test_invalidate_closes_rows_of_deleted_keys(states, rows, table, current):
    assert states(table, current=current) == [
        (1, "a", False),
        (1, "A", True),
        (2, "b", False),
        (2, "b", True),
        (3, "c", False),
        (4, "d", False),
        (4, "e", True),
    ]
    assert rows(f"select count(*) from main.{table} where dbt_valid_to is null") == [(0 if "9999" in current else 3,)]


def test_new_record_adds_a_row_for_a_delete(spark):
    query = (
        "select id, word, dbt_is_deleted, dbt_valid_to is null from main.kept_new_record order by id, dbt_valid_from"
    )
    assert [tuple(row) for row in spark.sql(query).collect()] == [
        (1, "a", "False", False),
        (1, "A", "False", False),
        (1, "A", "False", True),
        (2, "b", "False", False),
        (2, "b", "True", False),
        (2, "b", "False", True),
        (3, "c", "False", False),
        (3, "c", "True", True),
        (4, "d", "False", False),
        (4, "e", "False", True),
    ]


def test_a_check_snapshot_compares_its_columns_and_renames_those_of_dbt(states, spark):
    assert states("kept_check", "until", "since") == [
        (1, "a", False),
        (1, "A", True),
        (2, "b", True),
        (3, "c", True),
        (4, "d", False),
        (4, "e", True),
    ]
    assert {"until", "since", "state_id"} <= set(spark.table("main.kept_check").columns)


def test_validity_ranges_have_no_gaps(rows):
    gaps = """
        select id, dbt_valid_to, lead(dbt_valid_from) over (partition by id order by dbt_valid_from) as next
        from main.{}"""
    for table in ("kept_ignore", "kept_new_record", "kept_check_at"):
        assert rows(f"select * from ({gaps.format(table)}) where dbt_valid_to <> next") == []


@pytest.mark.parametrize("table", KEPT)
def test_a_new_column_of_the_source_is_null_in_older_states(rows, table):
    assert rows(f"select id, loud from main.{table} where word = 'e'") == [(4, "E")]
    assert rows(f"select count(loud) from main.{table} where word in ('a', 'c', 'd')") == [(0,)]


def test_each_round_is_one_version_with_its_counts(rounds):
    response = rounds[1].response("kept_invalidate")
    assert response["version"] == rounds[0].response("kept_invalidate")["version"] + 1
    # Key 1 ends and begins anew, key 2 ends, key 4 begins.
    assert (response["rows_inserted"], response["rows_updated"], response["rows_deleted"]) == (2, 2, 0)


def test_a_round_without_changes_writes_nothing(dbt, rows):
    before = rows("select * from main.kept_ignore")
    outcome = dbt("snapshot", "--select", "kept_ignore", round=3)
    assert outcome.success, outcome.log
    assert outcome.response("kept_ignore")["files_added"] == 0
    assert rows("select * from main.kept_ignore") == before


def test_a_column_becomes_wider_with_its_source(dbt, rows):
    def states(**variables):
        for _ in range(2):
            outcome = dbt("snapshot", "--select", "kept_wider", **variables)
            assert outcome.success, outcome.log
        return rows("select v, dbt_valid_to is null from main.kept_wider order by dbt_valid_from, v")

    assert states() == [(5, True)]
    # An unchanged row is not added once more in the second run.
    assert states(wider="5.5D", more=", 'x' as x") == [(5.0, False), (5.5, True)]
    assert states(wider="'word'") == [("5.0", False), ("5.5", False), ("word", True)]
