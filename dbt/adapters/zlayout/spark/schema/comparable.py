"""Converts values to a form that Spark can group by, and that differs whenever the values differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from dbt.adapters.zlayout.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import Column

_NEVER = ("variant", "geometry", "geography")


def groups_by_value(kind: DataType) -> bool:
    """Whether Spark can group values of a type and treats only identical values as equal.

    Raises:
        UnsupportedError: The type has no form that could be grouped.
    """
    if isinstance(kind, ArrayType):
        return groups_by_value(kind.elementType)
    if isinstance(kind, StructType):
        return all(groups_by_value(each.dataType) for each in kind.fields)
    if isinstance(kind, MapType):
        return False
    if kind.typeName().startswith(_NEVER):
        raise UnsupportedError(
            f"values of type {kind.simpleString()} do not compare, so rows that were only carried into another file "
            "cannot be told from new ones; read both versions and compare them by a key"
        )
    return not (isinstance(kind, StringType) and "collate" in kind.simpleString())


def comparable(value: Column, kind: DataType) -> Column:
    """Returns the form of a value that can be grouped: maps as their entries in order, collated text as its bytes.

    Raises:
        UnsupportedError: The type has no such form.
    """
    if groups_by_value(kind):
        return value
    if isinstance(kind, MapType):
        entry = StructType().add("key", kind.keyType).add("value", kind.valueType)
        return comparable(functions.map_entries(value), ArrayType(entry))
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return functions.transform(value, lambda each: comparable(each, element))
    if isinstance(kind, StructType):
        fields = [
            comparable(value.getField(each.name), each.dataType).alias(f"f{number}")
            for number, each in enumerate(kind.fields)
        ]
        return functions.when(value.isNotNull(), functions.struct(*fields))
    return value.cast("binary")
