"""Translates the cuts of a curve to a SQL expression, for rows that never leave the JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.curve.cuts import Tree
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.spark.schema.table_schema import string_literal

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock, as TIMESTAMP_NTZ is


def numbers_sql(
    model: CurveModel, tree: Tree, keys: Sequence[str], types: Sequence[pa.DataType], values: npt.NDArray[np.int32]
) -> str:
    """Returns an expression that gives each row a number, by the leaf that it falls into.

    Args:
        model: The curve. The tree's thresholds are ranks among its boundaries.
        tree: The cuts.
        keys: SQL of each key.
        types: Arrow type of each key.
        values: int32[leaves], the number of each leaf.
    """

    def walk(reference: int) -> str:
        if reference < 0:
            return str(int(values[-1 - reference]))
        column, threshold = int(tree.column[reference]), int(tree.threshold[reference])
        left, right = walk(int(tree.left[reference])), walk(int(tree.right[reference]))
        if left == right:
            return left
        below = _below(keys[column], types[column], model.boundaries[column].values, threshold)
        return f"CASE WHEN {below} THEN {left} ELSE {right} END"

    return walk(0 if len(tree.column) else -1)


def _below(key: str, kind: pa.DataType, boundaries: npt.NDArray[Any], rank: int) -> str:
    """Returns a condition that the rank of a key is below a rank. Null has rank 0, and values start at 1."""
    if rank <= 1:
        return f"{key} IS NULL" if rank == 1 else "FALSE"
    if rank - 2 >= len(boundaries):
        return "TRUE"
    boundary = boundaries[rank - 2]
    return f"({key} IS NULL OR {_comparable_sql(key, kind)} < {_literal(boundary, kind)})"


def _comparable_sql(key: str, kind: pa.DataType) -> str:
    if pa.types.is_string(kind):
        return f"CAST({key} AS BINARY)"
    return f"CAST({key} AS INT)" if pa.types.is_boolean(kind) else key


def _literal(boundary: Any, kind: pa.DataType) -> str:
    """Returns a boundary as a SQL literal, from its comparable form of ``curve.keys``."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return f"X'{bytes(boundary).hex()}'"
    if pa.types.is_decimal(kind):
        unscaled = int(boundary) if kind.precision <= 18 else _unbiased(bytes(boundary))
        text = format(Decimal(unscaled).scaleb(-kind.scale), "f")
        return f"CAST('{text}' AS DECIMAL({kind.precision}, {kind.scale}))"
    return _number_literal(int(boundary), kind)


def _number_literal(number: int, kind: pa.DataType) -> str:
    if pa.types.is_floating(kind):
        return f"DOUBLE('{_double(number)!r}')"
    if pa.types.is_date32(kind):
        return f"DATE '{date.fromordinal(date(1970, 1, 1).toordinal() + number).isoformat()}'"
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return f"TIMESTAMP_MICROS({number})"
    if pa.types.is_timestamp(kind):
        return f"TIMESTAMP_NTZ '{(_EPOCH + timedelta(microseconds=number)).isoformat(sep=' ')}'"
    return f"{number}L" if kind == pa.int64() else str(number)


def _unbiased(packed: bytes) -> int:
    return int.from_bytes(packed.ljust(16, b"\0"), "big") - (1 << 127)


def _double(ordered: int) -> float:
    bits = np.int64(ordered) if ordered >= 0 else np.int64(ordered) ^ np.int64(0x7FFFFFFFFFFFFFFF)
    return float(np.array([bits]).view(np.float64)[0])


def partition_sql(columns: Sequence[str], by_partition: Mapping[tuple[str | None, ...], str], default: str) -> str:
    """Returns an expression that selects the expression of a row's partition.

    Args:
        columns: SQL of the partition columns.
        by_partition: Expression of each partition, by the text of its values.
        default: Expression for all other partitions.
    """
    cases = []
    for key, expression in by_partition.items():
        tests = [
            f"{column} IS NULL" if text is None else f"CAST({column} AS STRING) = {string_literal(text)}"
            for column, text in zip(columns, key, strict=True)
        ]
        cases.append(f"WHEN {' AND '.join(tests)} THEN {expression}")
    return f"CASE {' '.join(cases)} ELSE {default} END" if cases else default
