"""Relations of a schema with merge-on-read tables, as dbt sees them."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.relation import ZlayoutColumn, ZlayoutRelation, as_dbt_relations


def relation(identifier: str, kind: str = "table", **properties: str) -> Any:
    listed = ", ".join(f"{key}={value}" for key, value in properties.items())
    information = f"Database: s\nTable: {identifier}\nType: {kind}\nTable Properties: [{listed}]\nSchema: root\n"
    return ZlayoutRelation.create(schema="s", identifier=identifier, type=kind, information=information)


def merging(identifier: str, table_id: str = "1-a", **more: str) -> list[Any]:
    return [
        relation(identifier, "view", **{"team": "x", "zlayout.table_id": table_id, **more}),
        relation(f"{identifier}__ro", "view", **{"zlayout.base_rows_of": table_id}),
        relation(f"{identifier}__files", **{"zlayout.table_id": table_id}),
    ]


def seen(relations: list[Any]) -> dict[str, str]:
    return {str(each.identifier): str(each.type) for each in as_dbt_relations(relations)}


def test_a_merging_view_is_listed_as_a_table_without_its_parts() -> None:
    assert seen([*merging("t"), relation("plain", **{"zlayout.table_id": "2"}), relation("v", "view")]) == {
        "t": "table",
        "plain": "table",
        "v": "view",
    }
    (found, *_) = as_dbt_relations(merging("t"))
    assert isinstance(found, ZlayoutRelation)
    assert found.is_plain_table


@pytest.mark.parametrize(
    "other",
    [
        relation("t__files", **{"zlayout.table_id": "other"}),
        relation("t__files"),
        relation("t__ro", "view"),
        relation("t__ro", "view", **{"zlayout.base_rows_of": "other"}),
    ],
    ids=lambda each: str(each.information),
)
def test_unrelated_relations_with_such_a_name_are_listed(other: Any) -> None:
    assert seen([*merging("t")[:1], other]) == {"t": "table", other.identifier: other.type}


def test_a_temporary_view_is_in_no_schema() -> None:
    temporary = ZlayoutRelation.create(schema="", identifier="other", type="view", information="Type: VIEW")
    assert seen([relation("t"), temporary]) == {"t": "table"}


def test_a_table_of_files_without_its_view_can_be_dropped() -> None:
    assert seen(merging("t")[2:]) == {"t__files": "table"}


def test_a_relation_without_information_is_unchanged() -> None:
    bare = ZlayoutRelation.create(schema="s", identifier="v", type="view", information=None)
    assert as_dbt_relations([bare]) == [bare]


def test_a_column_with_a_backquote_in_its_name_is_quoted_whole() -> None:
    assert ZlayoutColumn("a`b", "string").quoted == "`a``b`"
