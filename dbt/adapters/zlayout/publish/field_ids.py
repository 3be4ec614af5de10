"""Field ids: the number by which Iceberg's readers find a column in a file, whatever the column is called.

An id is a function of the column's path. So all files of all tables agree on it, nothing is stored, and switching
publishing off and on changes nothing. Readers of ids find what Spark finds, which looks columns up by name.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import pyarrow as pa

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
    kind = column.type
    if pa.types.is_struct(kind):
        parts = [(each, (*path, each.name)) for each in kind]
    elif pa.types.is_map(kind):
        parts = [(kind.key_field, (*path, *KEY)), (kind.item_field, (*path, *VALUE))]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        parts = [(kind.value_field, (*path, *ELEMENT))]
    else:
        parts = []
    for part, below in parts:
        _collect(part, below, found)
