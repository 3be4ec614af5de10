"""The schema of a published Delta table: Spark's schema with the types that Delta has, and the protocol they need."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

# Written by no other software, so engines that write Delta tables refuse to write to this one. All can read it.
WRITER_FEATURE = "zlayoutManaged"

_TIMESTAMP_NTZ = "timestamp_ntz"
_WORDS = frozenset(
    ("boolean", "byte", "short", "integer", "long", "float", "double", "date", "timestamp", _TIMESTAMP_NTZ)
) | {"string", "binary"}
_WITH_NUMBERS = re.compile(r"decimal\(\d+,\s*\d+\)|(var)?char\(\d+\)")
# The other keys of a field's metadata mean something to Delta only with features that the table does not declare.
_KEPT_METADATA = ("comment", "__CHAR_VARCHAR_TYPE_STRING")
_DEFAULT = "EXISTS_DEFAULT"
_COLLATIONS = "__COLLATIONS"
# The folder names of such partitions depend on the session that wrote or reads them.
_NO_FOLDERS = {
    "Delta": {"timestamp": "its folder names are local times", "binary": "its folder names are not text"},
    "Iceberg": {
        "timestamp": "its folder names are local times",
        "binary": "its folder names are not text",
        **dict.fromkeys(("float", "double"), "readers round the values of such folders"),
    },
}


def delta_schema(schema_json: str) -> str:
    """Returns the ``schemaString`` for Spark's JSON of a schema. Every column may be null."""
    return json.dumps(_type(json.loads(schema_json)), separators=(",", ":"), ensure_ascii=False)


def protocol(schema_json: str) -> dict[str, Any]:
    """Returns the ``protocol`` action for a schema."""
    if _TIMESTAMP_NTZ not in {word for _, word in _words(json.loads(schema_json), "")}:
        return {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [WRITER_FEATURE]}
    features = ["timestampNtz"]
    writer_features = [*features, WRITER_FEATURE]
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": writer_features,
    }


def unpublishable_columns(format_: str, schema_json: str, partition_by: Collection[str]) -> list[str]:
    """Returns a sentence for each column that a Delta or an Iceberg table cannot have.

    Args:
        format_: The format, for the sentences. Both have the same types.
        schema_json: Spark's JSON of the columns.
        partition_by: The partition columns among them.
    """
    schema = json.loads(schema_json)
    problems = [
        f"publish: column '{name}' has type {word}, which {format_} tables do not have; cast it, or do not publish"
        for name, word in _words(schema, "")
        if word not in _WORDS and not _WITH_NUMBERS.fullmatch(word)
    ]
    for each in schema["fields"]:
        metadata, name, kind = each.get("metadata") or {}, each["name"], each["type"]
        if _DEFAULT in metadata:
            problems.append(
                f"publish: column '{name}' has a default, which {format_} readers would not see in old files"
            )
        if _COLLATIONS in metadata:
            problems.append(f"publish: column '{name}' has a collation, which {format_} readers do not know")
        if name in partition_by and isinstance(kind, str) and kind in _NO_FOLDERS[format_]:
            problems.append(
                f"publish: partition column '{name}' has type {kind}: {_NO_FOLDERS[format_][kind]}; cast it"
            )
    return problems


def _words(kind: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yields the name and type of each leaf, as Spark's JSON has them."""
    if isinstance(kind, str):
        yield name, kind
        return
    if kind["type"] == "struct":
        for each in kind["fields"]:
            yield from _words(each["type"], f"{name}.{each['name']}" if name else each["name"])
    elif kind["type"] in ("array", "map"):
        for part in ("elementType", "keyType", "valueType"):
            if part in kind:
                yield from _words(kind[part], name)
    else:
        yield name, str(kind["type"])


def _type(kind: Any) -> Any:
    """Returns a type without constraints on nulls and without metadata that only Spark understands."""
    if isinstance(kind, str):
        return "string" if re.fullmatch(r"(var)?char\(\d+\)", kind) else kind
    if kind["type"] == "struct":
        return {"type": "struct", "fields": list(map(_field, kind["fields"]))}
    nested = {part: _type(kind[part]) for part in ("elementType", "keyType", "valueType") if part in kind}
    nullable = {"array": "containsNull", "map": "valueContainsNull"}[kind["type"]]
    return {"type": kind["type"], **nested, nullable: True}


def _field(each: Any) -> dict[str, Any]:
    metadata = {key: value for key, value in (each.get("metadata") or {}).items() if key in _KEPT_METADATA}
    return {"name": each["name"], "type": _type(each["type"]), "nullable": True, "metadata": metadata}
