import json

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.spark.schema.types import (
    arrow_schema,
    arrow_type,
    fields_of,
    split_partition_columns,
    type_word,
)


def schema(*fields):
    raw = [{"name": name, "type": kind, "nullable": True, "metadata": metadata} for name, kind, metadata in fields]
    return json.dumps({"type": "struct", "fields": raw})


@pytest.mark.parametrize(
    ("spark", "word"),
    [
        ("long", "bigint"),
        ("decimal(38,10)", "decimal(38,10)"),
        ({"type": "array", "elementType": "long", "containsNull": True}, "array<bigint>"),
        (
            {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": True},
            "map<string,int>",
        ),
        (
            {"type": "struct", "fields": [{"name": "a", "type": "short"}, {"name": "b", "type": "date"}]},
            "struct<a:smallint,b:date>",
        ),
    ],
)
def test_a_type_has_its_word_of_sparks_sql(spark, word):
    assert type_word(spark) == word


@pytest.mark.parametrize(
    ("spark", "arrow"),
    [
        ("long", pa.int64()),
        ("decimal(38,10)", pa.decimal128(38, 10)),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("varchar(20)", pa.string()),
        ("interval day to second", pa.duration("us")),
        ("interval hour", pa.duration("us")),
        ("interval year to month", None),
        ("time(0)", pa.time64("us")),
        ("time(6)", pa.time64("us")),
        ("time(9)", None),
        ("variant", None),
        ({"type": "array", "elementType": "integer", "containsNull": True}, pa.list_(pa.field("element", pa.int32()))),
        ({"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": True}, None),
    ],
)
def test_spark_types_have_their_arrow_type_or_none(spark, arrow):
    assert arrow_type(spark) == arrow


def test_a_column_with_a_collation_is_marked_wherever_the_schema_says_it():
    plain, by_metadata, by_type = fields_of(
        schema(
            ("a", "string", {}),
            ("b", "string", {"__COLLATIONS": {"b": "icu.UNICODE_CI"}}),
            ("c", "string collate UTF8_LCASE", {}),
        )
    )
    assert [plain.collated, by_metadata.collated, by_type.collated] == [False, True, True]


def test_a_struct_has_its_fields_and_other_types_have_none():
    nested = {"type": "struct", "fields": [{"name": "x.y", "type": "double", "nullable": True, "metadata": {}}]}
    number, struct = fields_of(schema(("a", "long", {}), ("s", nested, {})))
    assert number.fields == ()
    assert [(each.name, each.arrow_type) for each in struct.fields] == [("x.y", pa.float64())]


def test_columns_without_an_arrow_type_are_left_out_of_the_arrow_schema():
    assert arrow_schema(schema(("a", "long", {}), ("v", "variant", {}))).names == ["a"]


def test_partition_columns_go_apart_in_their_own_order():
    data, folders = split_partition_columns(
        schema(("a", "long", {}), ("p", "date", {}), ("q", "string", {})), ("q", "p")
    )
    assert [each["name"] for each in json.loads(data)["fields"]] == ["a"]
    assert [each["name"] for each in json.loads(folders)["fields"]] == ["q", "p"]
