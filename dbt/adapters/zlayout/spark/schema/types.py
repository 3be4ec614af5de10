"""Converts Spark types to Arrow types, from the JSON that Spark itself writes for a schema."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
    "void": pa.null(),
}
# Types that have another name in Spark's SQL than in its JSON.
_SQL_WORDS: Mapping[str, str] = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_TEXT = re.compile(r"(char|varchar)\(\d+\)")
_TIME = re.compile(r"time\([0-6]\)")
# Spark 3 cannot send intervals to Python: its Arrow writer overruns its buffer in batches of more than 4,032 rows.
_SENDS_INTERVALS = not pyspark.__version__.startswith("3.")
_WRITES_TIMES = "write_time_adjusted_to_utc" in inspect.signature(pq.ParquetWriter).parameters
_COLLATIONS = "__COLLATIONS"
# What Spark's JSON of a field says besides its type.
_BESIDES_TYPES = frozenset(("name", "nullable", "metadata"))


@dataclass(frozen=True)
class SparkField:
    """One column or struct field of a Spark schema.

    Attributes:
        name: Name as the schema spells it.
        spark_type: Spark's JSON for the type: a word, or an object for nested types.
        arrow_type: The Arrow type of its values; None if Arrow has none (variant, year-month intervals …).
        collated: Whether its values compare by a collation and not by their UTF-8 bytes.
    """

    name: str
    spark_type: Any
    arrow_type: pa.DataType | None
    collated: bool

    @property
    def fields(self) -> tuple[SparkField, ...]:
        """The fields of a struct; empty for other types."""
        if isinstance(self.spark_type, dict) and self.spark_type.get("type") == "struct":
            return tuple(_field(each) for each in self.spark_type["fields"])
        return ()


def raw_fields(schema_json: str) -> list[dict[str, Any]]:
    """Returns the top-level columns of a schema as Spark's JSON has them, in new objects."""
    fields: list[dict[str, Any]] = json.loads(schema_json)["fields"]
    return fields


def columns_of(schema_json: str) -> list[tuple[str, Any]]:
    """Returns the names of the top-level columns, each with Spark's JSON for its type."""
    return [(each["name"], each["type"]) for each in raw_fields(schema_json)]


def fields_of(schema_json: str) -> tuple[SparkField, ...]:
    """Returns the top-level columns of a schema.

    Args:
        schema_json: Spark's ``StructType.json()``.
    """
    return tuple(_field(each) for each in raw_fields(schema_json))


def arrow_type(spark_type: Any) -> pa.DataType | None:
    """Returns the Arrow type that Spark sends for a type; None if Arrow cannot write what it sends to Parquet."""
    if isinstance(spark_type, str):
        return _arrow_of_word(spark_type)
    parts: Mapping[str, Any] = {
        "element": spark_type.get("elementType"),
        "key": spark_type.get("keyType"),
        "value": spark_type.get("valueType"),
    }
    parts = {name: each for name, each in parts.items() if each is not None}
    if spark_type["type"] == "struct":
        parts = {each["name"]: each["type"] for each in spark_type["fields"]}
    children = {name: arrow_type(each) for name, each in parts.items()}
    known = {name: each for name, each in children.items() if each is not None}
    if not known or len(known) < len(children):
        return None
    if spark_type["type"] == "array":
        return pa.list_(pa.field("element", known["element"]))
    if spark_type["type"] == "map":
        return pa.map_(known["key"], known["value"])
    return pa.struct(list(known.items()))


def type_word(spark_type: Any) -> str:
    """Returns a type as Spark's SQL writes it.

    >>> type_word({"type": "array", "elementType": "long", "containsNull": True})
    'array<bigint>'

    Args:
        spark_type: Spark's JSON for the type.
    """
    if isinstance(spark_type, str):
        return _SQL_WORDS.get(spark_type, spark_type)
    kind = spark_type["type"]
    if kind == "array":
        return f"array<{type_word(spark_type['elementType'])}>"
    if kind == "map":
        return f"map<{type_word(spark_type['keyType'])},{type_word(spark_type['valueType'])}>"
    if kind == "struct":
        fields = [f"{each['name']}:{type_word(each['type'])}" for each in spark_type["fields"]]
        return f"struct<{','.join(fields)}>"
    return str(kind)


def _arrow_of_word(word: str) -> pa.DataType | None:
    if match := _DECIMAL.fullmatch(word):
        return pa.decimal128(int(match[1]), int(match[2]))
    if word.startswith("interval") and not re.search("year|month", word):
        return pa.duration("us") if _SENDS_INTERVALS else None
    if _TIME.fullmatch(word):
        return pa.time64("us")
    if _TEXT.fullmatch(word) or word.startswith("string collate"):
        return pa.string()
    return _PRIMITIVES.get(word)


def arrow_schema(schema_json: str) -> pa.Schema:
    """Returns the Arrow schema of the columns that have an Arrow type."""
    known = [pa.field(each.name, each.arrow_type) for each in fields_of(schema_json) if each.arrow_type is not None]
    return pa.schema(known)


def arrow_carries(schema_json: str) -> bool:
    """Returns whether Spark can hand rows of a schema to Python, and Arrow can write them.

    It cannot if a type has no Arrow form. Older releases of Arrow write times of the day in a form that Spark refuses.
    """
    kinds = [each.arrow_type for each in fields_of(schema_json)]
    return all(kind is not None and (_WRITES_TIMES or "time64" not in str(kind)) for kind in kinds)


def with_plain_texts(schema_json: str, *, collated: bool = False) -> str:
    """Returns Spark's JSON of a schema with texts of a fixed or greatest length as plain texts, at any depth.

    >>> with_plain_texts('{"type": "struct", "fields": [{"name": "c", "type": "char(3)"}]}')
    '{"type": "struct", "fields": [{"name": "c", "type": "string"}]}'

    Args:
        collated: Whether texts with a collation become plain texts too, so that they compare by their bytes.
    """
    return json.dumps(as_plain_text(json.loads(schema_json), collated=collated), ensure_ascii=False)


def as_plain_text(spark_type: Any, *, collated: bool) -> Any:
    """Returns Spark's JSON for a type as `with_plain_texts` does that of a schema."""
    if isinstance(spark_type, str):
        is_text = _TEXT.fullmatch(spark_type) or (collated and spark_type.startswith("string collate"))
        return "string" if is_text else spark_type
    if isinstance(spark_type, list):
        return [as_plain_text(each, collated=collated) for each in spark_type]
    if not isinstance(spark_type, dict):
        return spark_type
    # Metadata of a column names the collations in it.
    kept = {**spark_type, "metadata": {}} if collated and "metadata" in spark_type else spark_type
    return {
        key: each if key in _BESIDES_TYPES else as_plain_text(each, collated=collated) for key, each in kept.items()
    }


def _field(raw: Mapping[str, Any]) -> SparkField:
    spark_type = raw["type"]
    metadata = raw.get("metadata") or {}
    collated = bool(metadata.get(_COLLATIONS)) or "collate" in str(spark_type)
    return SparkField(raw["name"], spark_type, arrow_type(spark_type), collated)


def split_partition_columns(schema_json: str, partition_by: tuple[str, ...]) -> tuple[str, str]:
    """Returns the schemas of the files and of the partition columns, the latter in the order of ``partition_by``."""
    fields = raw_fields(schema_json)
    by_name = {each["name"]: each for each in fields}
    data = [each for each in fields if each["name"] not in partition_by]
    return schema_json_of(data), schema_json_of([by_name[name] for name in partition_by])


def with_added_columns(fields: Sequence[Any], added: Sequence[Any], partition_by: Collection[str]) -> str:
    """Returns Spark's JSON of a schema with these fields and added ones, partition columns last."""
    data = [each for each in fields if each["name"] not in partition_by]
    return schema_json_of([*data, *added, *(each for each in fields if each["name"] in partition_by)])


def schema_json_of(fields: Sequence[Any]) -> str:
    """Returns Spark's JSON of a schema with these fields, each as Spark's JSON has it."""
    return json.dumps({"type": "struct", "fields": fields}, ensure_ascii=False)
