"""Reads what the session catalog documents about a relation: comments, and column types as Spark SQL writes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark keeps the declared type of a char or varchar column here, because its values are strings.
_DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class DocumentedColumn:
    """A column's type, and its comment or None."""

    type_text: str
    comment: str | None


@dataclass(frozen=True)
class Documented:
    """A relation's comment and its columns by name."""

    comment: str | None
    columns: dict[str, DocumentedColumn]


def documented(spark: SparkSession, schema: str, identifier: str) -> Documented:
    """Looks up a table or view.

    Returns:
        Its comment and columns; both empty if there is no such relation.
    """
    entry = Catalog(spark).find(TableName(schema, identifier))
    if entry is None:
        return Documented(None, {})
    comment = entry.native.comment()
    fields = StructType.fromJson(json.loads(entry.schema_json)).fields
    return Documented(
        comment=(str(comment.get()) or None) if comment.isDefined() else None,
        columns={
            field.name: DocumentedColumn(
                type_text=field.metadata.get(_DECLARED_TYPE) or field.dataType.simpleString(),
                comment=field.metadata.get("comment") or None,
            )
            for field in fields
        },
    )
