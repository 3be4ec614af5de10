"""Turns a seed's rows into a Spark DataFrame, with the types that dbt detected or the project sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from dbt_common.clients.agate_helper import from_csv

from dbt.adapters.zlayout.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BINARY_TYPES: Mapping[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    "bigint": (pa.int64(), int),
    "double": (pa.float64(), float),
    "boolean": (pa.bool_(), bool),
    "date": (pa.date32(), lambda value: value),
}


def whole_file(rows: Any, config: Mapping[str, Any]) -> Any:
    """Reads all rows of a seed's file, from which dbt detects the types. ``dbt seed --empty`` passes no rows.

    Args:
        rows: The file as dbt passes it, an agate table.
        config: The seed's config.
    """
    named = [name for name in config.get("column_types") or () if name in rows.column_names]
    return from_csv(rows.original_abspath, text_columns=named, delimiter=config.get("delimiter") or ",")


def seed_frame(
    session: SparkSession, rows: Any, found_types: Sequence[str], types: Sequence[str], names: Sequence[str]
) -> DataFrame:
    """Returns the rows of a seed as one Spark DataFrame.

    Args:
        rows: The file as dbt read it, an agate table.
        found_types: The Spark type that matches the type dbt detected, for each column.
        types: The type that each column gets.
        names: The column names, quoted as in a statement.

    Raises:
        ConfigError: A number does not fit its type.
    """
    columns = [
        _column(column.name, column.values(), found) for column, found in zip(rows.columns, found_types, strict=True)
    ]
    plain = [f"c{number}" for number in range(len(columns))]
    frame = _frame(session, pa.table(columns, names=plain))
    # Spark casts text, and times in the session's time zone, as it reads literals.
    return frame.selectExpr(
        *(f"cast({column} as {kind}) as {name}" for column, kind, name in zip(plain, types, names, strict=True))
    )


def _column(name: str, values: Sequence[Any], found_type: str) -> pa.Array:
    if found_type not in _BINARY_TYPES:
        return pa.array([None if value is None else _text(value) for value in values], pa.string())
    arrow_type, convert = _BINARY_TYPES[found_type]
    try:
        return pa.array([None if value is None else convert(value) for value in values], arrow_type)
    except (OverflowError, pa.ArrowInvalid) as error:
        raise ConfigError(
            [f"column_types: a value of column '{name}' does not fit {found_type} ({error}); set its type"]
        ) from error


def _text(value: Any) -> str:
    return value.isoformat(sep=" ") if hasattr(value, "hour") and hasattr(value, "year") else str(value)


def _frame(session: SparkSession, rows: pa.Table) -> DataFrame:
    if not session.version.startswith("3."):
        return session.createDataFrame(rows)
    schema = ", ".join(f"{field.name} {_spark_name(field.type)}" for field in rows.schema)
    return session.createDataFrame(list(zip(*(column.to_pylist() for column in rows.columns), strict=True)), schema)


def _spark_name(kind: pa.DataType) -> str:
    return next((name for name, (arrow_type, _) in _BINARY_TYPES.items() if arrow_type == kind), "string")


def check_seed(table: DataFrame, rows: DataFrame, seed: str) -> None:
    """Checks that a file has the same columns as the existing table.

    Raises:
        ConfigError: The columns differ. A full refresh would replace them.
    """
    old = {field.name.lower(): field.dataType.simpleString() for field in table.schema.fields}
    new = {field.name.lower(): field.dataType.simpleString() for field in rows.schema.fields}
    if old == new:
        return
    changes = [f"'{name}' is new" for name in new.keys() - old.keys()]
    changes += [f"'{name}' is missing" for name in old.keys() - new.keys()]
    changes += [f"'{name}' is {kind}, was {old[name]}" for name, kind in new.items() if old.get(name, kind) != kind]
    raise ConfigError(
        [f"columns: {', '.join(sorted(changes))}; run dbt seed --full-refresh to replace the table"], f"seed {seed}"
    )
