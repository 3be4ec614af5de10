"""Spark's schemas in Iceberg's terms, as pyiceberg reads them."""

from __future__ import annotations

import io
import json
from contextlib import nullcontext

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import create_mapping_from_schema, parse_mapping_from_json

from dbt.adapters.zlayout.publish import iceberg_schema
from dbt.adapters.zlayout.publish.formats import problems_of
from dbt.adapters.zlayout.publish.iceberg_schema import (
    ELEMENT,
    KEY,
    VALUE,
    IcebergSchema,
    field_id,
    ids_in,
    may_follow,
    with_field_ids,
)


def spark(*columns, **metadata) -> str:
    fields = [{"name": n, "type": kind, "nullable": True, "metadata": metadata} for n, kind in columns]
    return json.dumps({"type": "struct", "fields": fields})


NESTED = spark(
    ("k", "long"),
    ("s", {"type": "struct", "fields": [{"name": "a", "type": "short", "nullable": False, "metadata": {}}]}),
    ("l", {"type": "array", "elementType": "string", "containsNull": False}),
    ("m", {"type": "map", "keyType": "string", "valueType": "decimal(20,3)", "valueContainsNull": True}),
)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        *(("boolean", "boolean"), ("byte", "int"), ("short", "int"), ("integer", "int"), ("long", "long")),
        *(("float", "float"), ("double", "double"), ("date", "date"), ("timestamp", "timestamptz")),
        *(("timestamp_ntz", "timestamp"), ("string", "string"), ("char(3)", "string"), ("varchar(9)", "string")),
        *(("binary", "binary"), ("decimal(10,2)", "decimal(10, 2)")),
    ],
)  # fmt: skip
def test_each_type_has_one_of_iceberg(word, kind) -> None:
    schema = IcebergSchema.of(spark(("x", word)), ())
    assert str(Schema.model_validate(schema.to_json(0)).find_field("x").field_type) == kind
    assert problems_of(["iceberg"], spark(("x", word)), ()) == []


def test_pyiceberg_reads_a_nested_schema_and_its_name_mapping() -> None:
    schema = IcebergSchema.of(NESTED, ())
    parsed = Schema.model_validate(schema.to_json(3))
    assert parsed.find_field("s.a").field_id == field_id(("s", "a"))
    assert {parsed.find_column_name(each) for each in schema.ids()} == {
        *("k", "s", "s.a", "l", "l.element", "m", "m.key", "m.value"),
    }  # fmt: skip
    assert parse_mapping_from_json(json.dumps(schema.name_mapping())) == create_mapping_from_schema(parsed)


@pytest.mark.parametrize(
    ("kind", "partition_by", "metadata", "told"),
    [
        ("variant", (), {}, "column 'x' has type variant, which Iceberg tables do not have"),
        ("interval day", (), {}, "column 'x' has type interval day"),
        ("time(6)", (), {}, "column 'x' has type time(6)"),
        ("double", ("x",), {}, "partition column 'x' has type double: readers round the values"),
        ("timestamp", ("x",), {}, "partition column 'x' has type timestamp"),
        ("string", (), {"EXISTS_DEFAULT": "'a'"}, "column 'x' has a default"),
        ("string", (), {"__COLLATIONS": {}}, "column 'x' has a collation"),
    ],
)
def test_columns_that_cannot_be_published_are_named(kind, partition_by, metadata, told) -> None:
    (problem,) = problems_of(["iceberg"], spark(("x", kind), **metadata), partition_by)
    assert told in problem


def test_columns_with_the_same_id_by_chance_are_named(monkeypatch) -> None:
    monkeypatch.setattr(iceberg_schema, "field_id", len)
    (problem,) = problems_of(["iceberg"], spark(("x", "long"), ("y", "long")), ())
    assert "columns `x` and `y` would have the same id in Iceberg; rename one of them" in problem


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (("a.b", "long"), "columns `a`.`b` and `a.b` would have the same name in Iceberg"),
        (("l.element", "long"), "columns `l`.`element` and `l.element` would"),
        (("m.value", "long"), "columns `m`.`value` and `m.value` would"),
        (("l.x", "long"), ""),
    ],
)
def test_columns_whose_names_joined_by_dots_are_the_same_are_named(column, told) -> None:
    struct = {"type": "struct", "fields": [{"name": "b", "type": "long", "nullable": True}]}
    lists = {"type": "array", "elementType": "long", "containsNull": True}
    maps = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
    schema = spark(("a", struct), ("l", lists), ("m", maps), column)
    problems = problems_of(["iceberg"], schema, ())
    assert bool(problems) == bool(told)
    assert told in "".join(problems)
    with pytest.raises(ValueError, match="multiple fields") if told else nullcontext():
        Schema.model_validate(IcebergSchema.of(schema, ()).to_json(0))


@pytest.mark.parametrize(
    ("old", "new", "may"),
    [
        *(("integer", "long", True), ("float", "double", True), ("long", "integer", False), ("long", "double", False)),
        *(("decimal(9,2)", "decimal(10,2)", True), ("decimal(9,2)", "decimal(10,3)", False)),
        *(("integer", "string", False), ("date", "timestamp", False), ("byte", "short", True)),
    ],
)
def test_only_types_that_iceberg_can_widen_go_on(old, new, may) -> None:
    before, after = (IcebergSchema.of(spark(("x", each), ("k", "long")), ()).types() for each in (old, new))
    assert may_follow(before, after) is may


def test_a_struct_that_becomes_a_list_does_not_go_on() -> None:
    kinds = [{"type": "struct", "fields": []}, {"type": "array", "elementType": "long", "containsNull": True}]
    before, after = (IcebergSchema.of(spark(("x", each)), ()).types() for each in kinds)
    assert not may_follow(before, after)


WITH_PARTS = pa.schema(
    [
        ("k", pa.int64()),
        ("s", pa.struct([("a", pa.string()), ("l", pa.list_(pa.struct([("x", pa.int32())])))])),
        ("m", pa.map_(pa.string(), pa.list_(pa.float64()))),
        ("element", pa.int8()),
    ]
)


def test_a_file_has_the_id_of_each_column_field_and_part() -> None:
    sink = io.BytesIO()
    schema = with_field_ids(WITH_PARTS)
    pq.write_table(schema.empty_table(), sink, store_schema=False)
    found = ids_in(pq.read_metadata(sink).schema.to_arrow_schema())
    assert found == {path: field_id(path) for path in found}
    assert set(found) == {
        *(("k",), ("s",), ("s", "a"), ("s", "l"), ("s", "l", *ELEMENT), ("s", "l", *ELEMENT, "x")),
        *(("m",), ("m", *KEY), ("m", *VALUE), ("m", *VALUE, *ELEMENT), ("element",)),
    }
    assert len(set(found.values())) == len(found)


def test_ids_change_no_type_and_files_without_them_have_none() -> None:
    assert with_field_ids(WITH_PARTS).equals(WITH_PARTS)
    assert set(ids_in(WITH_PARTS).values()) == {None}


def test_an_id_is_the_same_for_ever_and_none_is_reserved() -> None:
    assert field_id(("k",)) == 673393911
    assert field_id(("st", "a")) == 352098073
    assert all(0 < field_id((f"c{number}",)) <= 2_000_000_000 for number in range(1000))
