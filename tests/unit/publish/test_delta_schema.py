"""The schema of a published Delta table: what Delta has a type for, and which protocol it needs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dbt.adapters.zlayout.publish.delta_schema import delta_schema, protocol, unpublishable_columns


def schema(kind: Any, **metadata: Any) -> str:
    field = {"name": "c", "type": kind, "nullable": False, "metadata": metadata}
    return json.dumps({"type": "struct", "fields": [field]})


@pytest.mark.parametrize(
    "kind",
    [
        *(
            "boolean",
            "byte",
            "short",
            "integer",
            "long",
            "float",
            "double",
            "decimal(38,18)",
            "string",
            "binary",
            "date",
        ),
        *("timestamp", "timestamp_ntz"),
        {"type": "array", "elementType": "long", "containsNull": True},
        {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True},
        {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]},
    ],
)
def test_types_that_delta_has_stay_as_they_are(kind: Any) -> None:
    assert unpublishable_columns("Delta", schema(kind), ()) == []
    (field,) = json.loads(delta_schema(schema(kind)))["fields"]
    assert field == {"name": "c", "type": kind, "nullable": True, "metadata": {}}


def test_only_what_delta_understands_is_kept_of_metadata() -> None:
    text = schema("varchar(5)", comment="why", **{"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)", "delta.invariants": "x"})
    (field,) = json.loads(delta_schema(text))["fields"]
    assert field["type"] == "string"
    assert field["metadata"] == {"comment": "why", "__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}


@pytest.mark.parametrize(
    ("text", "partition_by", "told"),
    [
        (schema("variant"), (), "column 'c' has type variant"),
        (schema("interval day to second"), (), "column 'c' has type interval day to second"),
        (schema("time(6)"), (), "column 'c' has type time(6)"),
        (schema("void"), (), "column 'c' has type void"),
        (schema({"type": "array", "elementType": "time(6)", "containsNull": True}), (), "column 'c' has type time(6)"),
        (schema({"type": "udt", "class": "x"}), (), "column 'c' has type udt"),
        (schema("timestamp"), ("c",), "partition column 'c' has type timestamp: its folder names are local times"),
        (schema("binary"), ("c",), "partition column 'c' has type binary: its folder names are not text"),
        (schema("long", EXISTS_DEFAULT="5"), (), "column 'c' has a default"),
        (schema("string", __COLLATIONS={"c": "icu.UNICODE_CI"}), (), "column 'c' has a collation"),
    ],
)
def test_what_delta_cannot_have_is_named(text: str, partition_by: tuple[str, ...], told: str) -> None:
    (problem,) = unpublishable_columns("Delta", text, partition_by)
    assert told in problem


def test_a_time_without_zone_needs_a_feature_of_readers_and_nothing_else_does() -> None:
    plain = protocol(schema("timestamp"))
    assert plain == {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["zlayoutManaged"]}
    nested = {"type": "array", "elementType": "timestamp_ntz", "containsNull": True}
    assert protocol(schema(nested)) == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timestampNtz"],
        "writerFeatures": ["timestampNtz", "zlayoutManaged"],
    }
