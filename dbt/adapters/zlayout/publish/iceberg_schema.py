"""The schema of a published Iceberg table: Spark's schema in Iceberg's types, its partition spec and its name mapping.

Readers find a column in a file by its field id, whatever the column is called. An id is a function of the column's
path. So all files of all tables agree on it, nothing is stored, and switching publishing off and on changes nothing.
Readers of ids find what Spark finds, which looks columns up by name.
Source: the Iceberg table specification, https://iceberg.apache.org/spec/
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from dbt.adapters.zlayout.index.statistics.tracked import decimal_type
from dbt.adapters.zlayout.predicate.expr import ColumnPath

# The parts of lists and maps. The mark keeps them apart from fields of structs.
ELEMENT, KEY, VALUE = ("[]", "element"), ("[]", "key"), ("[]", "value")
# Ids above 2,147,483,446 are reserved.
_IDS = 2_000_000_000
_KEY = b"PARQUET:field_id"


@lru_cache(maxsize=100_000)
def field_id(path: ColumnPath) -> int:
    """Returns the id of a column, a field of a struct, or a part of a list or map.

    >>> field_id(("order_date",))
    1523736388
    """
    digest = hashlib.sha256("\x00".join(path).encode()).digest()
    return int.from_bytes(digest[:8], "big") % _IDS + 1


def with_field_ids(schema: pa.Schema) -> pa.Schema:
    """Returns a schema whose columns carry their ids, as Arrow's writer puts them into a Parquet file."""
    return pa.schema([_with_id(each, (each.name,)) for each in schema], schema.metadata)


def _with_id(column: pa.Field, path: ColumnPath) -> pa.Field:
    kind = column.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_with_id(each, (*path, each.name)) for each in kind])
    elif pa.types.is_map(kind):
        keys, items = _with_id(kind.key_field, (*path, *KEY)), _with_id(kind.item_field, (*path, *VALUE))
        kind = pa.map_(keys, items, keys_sorted=kind.keys_sorted)
    elif pa.types.is_list(kind):
        kind = pa.list_(_with_id(kind.value_field, (*path, *ELEMENT)))
    metadata = {**(column.metadata or {}), _KEY: str(field_id(path)).encode()}
    return pa.field(column.name, kind, column.nullable, metadata)


def ids_in(schema: pa.Schema) -> dict[ColumnPath, int | None]:
    """Returns the ids that the columns of a file have, by path; None for a column without one."""
    found: dict[ColumnPath, int | None] = {}
    for each in schema:
        _collect(each, (each.name,), found)
    return found


def _collect(column: pa.Field, path: ColumnPath, found: dict[ColumnPath, int | None]) -> None:
    text = (column.metadata or {}).get(_KEY)
    found[path] = None if text is None else int(text)
    for part, below in _parts_of_column(column, path):
        _collect(part, below, found)


def _parts_of_column(column: pa.Field, path: ColumnPath) -> list[tuple[pa.Field, ColumnPath]]:
    kind = column.type
    if pa.types.is_struct(kind):
        return [(each, (*path, each.name)) for each in kind]
    if pa.types.is_map(kind):
        return [(kind.key_field, (*path, *KEY)), (kind.item_field, (*path, *VALUE))]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [(kind.value_field, (*path, *ELEMENT))]
    return []


_WORDS = {
    **{word: word for word in ("boolean", "long", "float", "double", "date", "string", "binary")},
    **dict.fromkeys(("byte", "short", "integer"), "int"),
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
_TEXT = re.compile(r"(var)?char\(\d+\)")
_FIRST_PARTITION_FIELD = 1000
# What a column's type may become while files with the old type remain readable.
_WIDER = {("int", "long"), ("float", "double")}


@dataclass(frozen=True)
class IcebergSchema:
    """Columns and partition columns in Iceberg's terms.

    Attributes:
        fields: The columns, as Iceberg's JSON has them.
    """

    fields: Sequence[Mapping[str, Any]]
    partition_by: tuple[str, ...]

    @classmethod
    def of(cls, schema_json: str, partition_by: Sequence[str]) -> IcebergSchema:
        """Returns the schema for Spark's JSON of the columns. Every column may be null."""
        return cls(_struct(json.loads(schema_json), ())["fields"], tuple(partition_by))

    def ids(self) -> dict[int, ColumnPath]:
        """Returns the paths of all columns, fields and parts by id."""
        return {field_id(path): path for path, _ in _all_parts(self.fields)}

    def leaves(self) -> dict[ColumnPath, str]:
        """Returns the types of the columns that have statistics: those outside lists and maps."""
        return {path: kind for path, kind in _all_parts(self.fields) if isinstance(kind, str) and "[]" not in path}

    def types(self) -> dict[int, str]:
        """Returns the type of each column, field and part by its id; only the kind of nested ones."""
        return {
            field_id(path): kind if isinstance(kind, str) else kind["type"] for path, kind in _all_parts(self.fields)
        }

    def to_json(self, schema_id: int) -> dict[str, Any]:
        """Returns the schema as table metadata has it."""
        return {"type": "struct", "schema-id": schema_id, "fields": list(self.fields)}

    def spec(self, spec_id: int) -> dict[str, Any]:
        """Returns the partition spec as table metadata has it."""
        fields = [
            {
                "source-id": field_id((name,)),
                "field-id": _FIRST_PARTITION_FIELD + number,
                "transform": "identity",
                "name": name,
            }
            for number, name in enumerate(self.partition_by)
        ]
        return {"spec-id": spec_id, "fields": fields}

    def last_partition_id(self) -> int:
        """Returns the highest id of a partition field."""
        return _FIRST_PARTITION_FIELD - 1 + len(self.partition_by)

    def name_mapping(self) -> list[dict[str, Any]]:
        """Returns the mapping by which readers find the columns of files without ids."""
        return [_mapped((each["name"],), each["type"]) for each in self.fields]


def may_follow(old: Mapping[int, str], new: Mapping[int, str]) -> bool:
    """Returns whether a reader may see files of both schemas in one table.

    Both are `IcebergSchema.types`.
    """
    return all(old[each] == kind or _is_wider(old[each], kind) for each, kind in new.items() if each in old)


def columns_taken_for_one(schema_json: str) -> list[str]:
    """Returns a sentence for each pair of columns that Iceberg's readers would take for one.

    Their ids are the same by chance, or their names: readers join the names of a path by dots, and refuse the table if
    a column ``a.b`` is beside a struct ``a`` with a field ``b``.
    """
    seen: dict[int | str, ColumnPath] = {}
    problems = []
    for path, _ in _all_parts(IcebergSchema.of(schema_json, ()).fields):
        parts = tuple(each for each in path if each != "[]")
        for what, key in (("id", field_id(path)), ("name", ".".join(parts))):
            other = seen.setdefault(key, parts)
            if other != parts:
                names = " and ".join("`" + "`.`".join(each) + "`" for each in (other, parts))
                problems.append(f"publish: columns {names} would have the same {what} in Iceberg; rename one of them")
    return problems


def _is_wider(old: str, new: str) -> bool:
    before, after = decimal_type(old), decimal_type(new)
    if before is not None and after is not None:
        return bool(before.scale == after.scale and before.precision <= after.precision)
    return (old, new) in _WIDER


def _type(kind: Any, path: ColumnPath) -> Any:
    if isinstance(kind, str):
        return _word(kind)
    if kind["type"] == "struct":
        return _struct(kind, path)
    if kind["type"] == "array":
        element = (*path, *ELEMENT)
        return {
            "type": "list",
            "element-id": field_id(element),
            "element": _type(kind["elementType"], element),
            "element-required": False,
        }
    key, value = (*path, *KEY), (*path, *VALUE)
    return {
        "type": "map",
        "key-id": field_id(key),
        "key": _type(kind["keyType"], key),
        "value-id": field_id(value),
        "value": _type(kind["valueType"], value),
        "value-required": False,
    }


def _word(word: str) -> str:
    decimal = decimal_type(word)
    if decimal is not None:
        return f"decimal({decimal.precision}, {decimal.scale})"
    return "string" if _TEXT.fullmatch(word) else _WORDS[word]


def _struct(kind: Any, path: ColumnPath) -> dict[str, Any]:
    fields = []
    for each in kind["fields"]:
        below = (*path, each["name"])
        comment = (each.get("metadata") or {}).get("comment")
        fields.append(
            {
                "id": field_id(below),
                "name": each["name"],
                "required": False,
                "type": _type(each["type"], below),
                **({"doc": comment} if isinstance(comment, str) else {}),
            }
        )
    return {"type": "struct", "fields": fields}


def _parts(kind: Any, path: ColumnPath) -> list[tuple[ColumnPath, Any]]:
    """Returns the parts of a nested type of Iceberg's JSON."""
    if isinstance(kind, str):
        return []
    if kind["type"] == "struct":
        return [((*path, each["name"]), each["type"]) for each in kind["fields"]]
    if kind["type"] == "list":
        return [((*path, *ELEMENT), kind["element"])]
    return [((*path, *KEY), kind["key"]), ((*path, *VALUE), kind["value"])]


def _all_parts(fields: Sequence[Mapping[str, Any]]) -> Iterator[tuple[ColumnPath, Any]]:
    for below, kind in _parts({"type": "struct", "fields": fields}, ()):
        yield from _with_parts(below, kind)


def _with_parts(path: ColumnPath, kind: Any) -> Iterator[tuple[ColumnPath, Any]]:
    yield path, kind
    for below, part in _parts(kind, path):
        yield from _with_parts(below, part)


def _mapped(path: ColumnPath, kind: Any) -> dict[str, Any]:
    below = [_mapped(part, type_) for part, type_ in _parts(kind, path)]
    return {"field-id": field_id(path), "names": [path[-1]], **({"fields": below} if below else {})}


def mapping_of_file(columns: pa.Schema) -> list[dict[str, Any]]:
    """Returns the mapping of the names in a file, as `IcebergSchema.name_mapping`."""
    return [_mapped_column(each, (each.name,)) for each in columns]


def _mapped_column(column: pa.Field, path: ColumnPath) -> dict[str, Any]:
    below = [_mapped_column(part, part_path) for part, part_path in _parts_of_column(column, path)]
    return {"field-id": field_id(path), "names": [path[-1]], **({"fields": below} if below else {})}


def merged_mapping(first: Sequence[Mapping[str, Any]], more: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the names of two mappings. The first one wins where a name has two ids."""
    found: dict[str, Mapping[str, Any]] = {each["names"][0]: each for each in first}
    for each in more:
        (name,) = each["names"]
        old = found.setdefault(name, each)
        if old is not each and old["field-id"] == each["field-id"] and "fields" in each:
            found[name] = {**old, "fields": merged_mapping(old.get("fields", []), each["fields"])}
    return list(found.values())


def partition_types(schema: IcebergSchema) -> dict[str, str]:
    """Returns the Iceberg type of each partition column."""
    types = {each["name"]: each["type"] for each in schema.fields}
    return {name: types[name] for name in schema.partition_by}
