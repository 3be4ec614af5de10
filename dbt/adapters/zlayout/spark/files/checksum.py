"""Checks that two sets of rows are the same in any order, by a count and by sums of hashes for each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions
from pyspark.sql.types import ArrayType, DataType, StructType

from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.predicate.literals import backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NO_HASH = ("map", "variant")


def checksums(rows: DataFrame) -> dict[str, Any]:
    """Returns a checksum of each column by name, and the number of rows under an empty name.

    A column's checksum is the sum of the hashes of its values, as decimals so that it cannot overflow.
    """
    sums = [
        functions.sum(
            functions.xxhash64(_hashable(field.name, field.dataType), functions.lit(position)).cast("decimal(38,0)")
        )
        for position, field in enumerate(rows.schema.fields)
    ]
    found = rows.agg(functions.count("*"), *sums).collect()[0]
    return dict(zip(["", *rows.columns], found, strict=True))


def check_same_rows(before: DataFrame, after: DataFrame, subject: str) -> None:
    """Checks that the checksums of all columns are equal.

    Raises:
        WriteError: Some columns differ. The message names them. Nothing was committed.
    """
    old, new = checksums(before), checksums(after)
    wrong = [name or "the number of rows" for name in old if old[name] != new[name]]
    if wrong:
        raise WriteError(f"{subject}: the rewritten files differ in {', '.join(wrong)}; nothing was committed")


def _hashable(name: str, kind: DataType) -> Any:
    """Returns a column in a form that Spark can hash. Maps and variants have no hash, so they become JSON text."""
    column = functions.col(backquoted(name))
    return functions.to_json(functions.struct(column)) if _has_no_hash(kind) else column


def _has_no_hash(kind: DataType) -> bool:
    if kind.typeName() in _NO_HASH:
        return True
    if isinstance(kind, ArrayType):
        return _has_no_hash(kind.elementType)
    return isinstance(kind, StructType) and any(_has_no_hash(field.dataType) for field in kind.fields)
