"""Where files are, and that dropping a relation deletes them all."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def rooted(project_at, lake):
    return project_at(schema="rooted", location_root=str(lake / "root"))


def test_tables_are_under_the_location_root_of_the_profile(rooted, lake, rows):
    outcome = rooted("build", "--select", "+reader", "rates")
    assert outcome.success, outcome.log
    for identifier in ("clustered", "reader", "rates"):
        assert list((lake / "root" / "rooted" / identifier).rglob("*.parquet"))
    assert rows("select sum(n) from rooted.reader") == [(100,)]


@pytest.mark.exhaustive
def test_a_models_own_location_root_takes_precedence(rooted, lake, rows):
    outcome = rooted("run", "--select", "elsewhere", elsewhere=str(lake / "own" / "place"))
    assert outcome.success, outcome.log
    assert list((lake / "own" / "place" / "elsewhere").rglob("*.parquet"))
    assert rows("select count(*) from rooted.elsewhere") == [(10,)]
    assert rooted.operation("drop_it", identifier="elsewhere").success
    assert not (lake / "own" / "place" / "elsewhere").exists()


def test_an_alias_that_leads_out_of_the_root_fails_before_a_write(rooted, lake):
    own = lake / "own" / "deep" / "down"
    outcome = rooted("run", "--select", "elsewhere", elsewhere=str(own), alias="../../escaped")
    assert not outcome.success
    assert "table name '../../escaped': allowed are letters a to z, digits and '_'; give another name" in outcome.log
    assert not list(lake.rglob("escaped*"))
    assert not own.exists()


@pytest.mark.parametrize("identifier", ["clustered", "reader", "rates"])
def test_a_dropped_relation_leaves_no_folder(rooted, lake, identifier):
    assert rooted("build", "--select", "+reader", "rates").success
    outcome = rooted.operation("drop_it", identifier=identifier)
    assert outcome.success, outcome.log
    assert not (lake / "root" / "rooted" / identifier).exists()


@pytest.mark.slow
def test_a_renamed_table_keeps_its_rows_and_its_old_name_can_be_reused(rooted, rows, lake):
    assert rooted("run", "--select", "clustered").success
    outcome = rooted.operation("rename_it", identifier="clustered", to="renamed")
    assert outcome.success, outcome.log
    assert rows("select count(*) from rooted.renamed where id < 10") == [(10,)]
    assert rooted("run", "--select", "clustered", variant="changed").success
    assert rows("select max(added) from rooted.clustered") == [("new",)]
    assert rows("select max(dropped) from rooted.renamed") == [("payload 9999",)]
    for identifier in ("renamed", "clustered"):
        assert rooted.operation("drop_it", identifier=identifier).success
    assert not [path for path in (lake / "root" / "rooted").iterdir() if path.name.startswith(("renamed", "clustered"))]


@pytest.mark.exhaustive
def test_a_dropped_schema_leaves_no_folder(project_at, lake, spark):
    project = project_at(schema="gone", location_root=str(lake / "root"))
    assert project("build", "--select", "+reader", "+reader_view", "rates").success
    outcome = project.operation("drop_the_schema")
    assert outcome.success, outcome.log
    assert not spark.catalog.databaseExists("gone")
    assert not (lake / "root" / "gone").exists()
