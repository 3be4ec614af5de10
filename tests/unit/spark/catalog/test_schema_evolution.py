"""Columns that get other comments."""

import json

from dbt.adapters.zlayout.spark.catalog.schema_evolution import SchemaPlan


def plan(**comments):
    fields = [
        {"name": name, "type": "long", "nullable": True, "metadata": {"comment": comment} if comment else {}}
        for name, comment in comments.items()
    ]
    return SchemaPlan(json.dumps({"type": "struct", "fields": fields}))


def comments_of(found):
    return {each["name"]: each["metadata"].get("comment") for each in json.loads(found.schema_json)["fields"]}


def test_a_comment_replaces_another_whatever_the_case_of_the_name():
    found = plan(Id="old", name=None, other="kept").with_comments({"id": "new", "name": "first", "gone": "x"})
    assert comments_of(found) == {"Id": "new", "name": "first", "other": "kept"}
    assert found.described == ("Id", "name")
    assert found.changes


def test_the_same_comments_change_nothing():
    before = plan(id="same")
    assert before.with_comments({"ID": "same"}) is before
    assert not before.changes
