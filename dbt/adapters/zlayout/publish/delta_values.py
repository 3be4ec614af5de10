"""Values of the index as Delta spells them: partition values of files, and the statistics of an add action.

Source: the Delta transaction log protocol, sections Partition Value Serialization and Per-file Statistics.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.statistics.column_stats import column_paths
from dbt.adapters.zlayout.index.statistics.partitions import one_spelling, typed_partition_values
from dbt.adapters.zlayout.index.statistics.tracked import decimal_type
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.publish.publication import all_finite, misspelled_folder

_ARROW: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
}
_Texts = list[str | None]
# First and last day, and microsecond that can be rounded up, of the years 1 to 9999. Others have no agreed spelling.
_DAYS = (-719_162, 2_932_896)
_MICROSECONDS = (-62_135_596_800_000_000, 253_402_300_799_999_000)


def partition_texts(texts: pa.Array, name: str, spark_type: str) -> list[str | None]:
    """Returns the values of one partition column as Delta spells them. Other tools write ``p=1`` for a decimal of 1.00.

    >>> partition_texts(pa.array(["1", "0.5", None]), "p", "decimal(10,2)")
    ['1.00', '0.50', None]

    Args:
        texts: The raw values, string[n].
        name: The column.
        spark_type: Spark's JSON of its type.

    Raises:
        UnsupportedError: A text is not a value of the type.
    """
    kind = decimal_type(spark_type) or _ARROW.get(spark_type)
    if kind is None:
        return list(texts.to_pylist())
    spelled = texts
    if not pa.types.is_floating(kind):
        spelled = pa.array([one_spelling(each, spark_type) for each in texts.to_pylist()], pa.string())
    typed = typed_partition_values(spelled, kind)
    if not pc.all(typed.known, min_count=0).as_py():
        raise misspelled_folder(name, texts.filter(pc.invert(typed.known))[0].as_py(), spark_type, "delta")
    if pa.types.is_decimal(kind):
        return [None if each is None else format(each, "f") for each in typed.values.to_pylist()]
    return list(spelled.to_pylist())


def statistics_texts(
    paths: pa.Array, row_counts: pa.Array, column_stats: pa.Table, columns: Collection[str]
) -> list[str]:
    """Returns the ``stats`` of files.

    Args:
        paths: The files, string[n].
        row_counts: Their number of rows, int64[n].
        column_stats: What the index has about them, from `TableIndex.stored`. The others have only a row count.
        columns: The top-level columns of the table. The index also knows dropped columns, and those of logs.

    Returns:
        n JSON objects. A bound that is not proven or that JSON cannot spell is left out.
    """
    rows = pc.index_in(paths, value_set=contiguous(column_stats.column("path")))
    known = {
        path: contiguous(column_stats.column(name)).take(rows)
        for path, name in column_paths(column_stats.schema).items()
        if path[0] in columns
    }
    count = len(paths)
    parts = {
        "minValues": _objects({path: _bounds(stats, "min") for path, stats in known.items()}, count),
        "maxValues": _objects({path: _bounds(stats, "max") for path, stats in known.items()}, count),
        "nullCount": _objects(
            {path: _whole_numbers(stats.field("null_count")) for path, stats in known.items()}, count
        ),
    }
    numbers = _whole_numbers(row_counts)
    return [_object(("numRecords", *parts), row) or "{}" for row in zip(numbers, *parts.values(), strict=True)]


def _objects(texts: Mapping[ColumnPath, _Texts], count: int) -> _Texts:
    """Returns n JSON objects of columns; fields of structs are in objects of their own, and empty objects are None."""
    names = list(dict.fromkeys(path[0] for path in texts))
    columns = []
    for name in names:
        below = {path[1:]: values for path, values in texts.items() if path[0] == name}
        columns.append(below[()] if () in below else _objects(below, count))
    return [_object(names, row) for row in zip(*columns, strict=True)] if columns else [None] * count


def _object(names: Sequence[str], values: Sequence[str | None]) -> str | None:
    pairs = [f"{_json_text(name)}:{value}" for name, value in zip(names, values, strict=True) if value is not None]
    return "{" + ",".join(pairs) + "}" if pairs else None


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _whole_numbers(values: pa.Array) -> _Texts:
    texts: _Texts = values.cast(pa.string()).to_pylist()
    return texts


def _bounds(stats: pa.StructArray, side: str) -> _Texts:
    """Returns one bound of each file as JSON, rounded outwards where Delta's spelling is less exact."""
    values = stats.field(side)
    kind, up = values.type, side == "max"
    texts: _Texts = [None] * len(values)
    if pa.types.is_integer(kind):
        texts = _whole_numbers(values)
    elif pa.types.is_floating(kind):
        usable = pc.if_else(all_finite(stats), values, pa.scalar(None, kind))
        texts = [_number(value, up) for value in usable.to_pylist()]
    elif pa.types.is_decimal(kind):
        texts = [None if value is None else format(value, "f") for value in values.to_pylist()]
    elif pa.types.is_date32(kind):
        texts = _in_quotes(_within(values, pa.int32(), _DAYS).cast(pa.date32()).cast(pa.string()))
    elif pa.types.is_timestamp(kind):
        texts = _moments(values, up)
    elif pa.types.is_string(kind):
        texts = [None if value is None else _json_text(value) for value in values.to_pylist()]
    return texts


def _number(value: Any, up: bool) -> str | None:
    if value is None:
        return None
    if value == 0:
        # Some readers order -0.0 below 0.0, but a filter for either finds both.
        return "0.0" if up else "-0.0"
    return repr(float(value))


def _within(values: pa.Array, number: pa.DataType, limits: tuple[int, int]) -> pa.Array:
    numbers = values.cast(number)
    inside = pc.and_(pc.greater_equal(numbers, limits[0]), pc.less_equal(numbers, limits[1]))
    return pc.if_else(inside, numbers, pa.scalar(None, number))


def _moments(values: pa.Array, up: bool) -> _Texts:
    """Returns times with exactly three decimals: the minimum rounded down and the maximum up, as readers expect."""
    microseconds = _within(values.cast(pa.timestamp("us", values.type.tz)), pa.int64(), _MICROSECONDS)
    floored = pc.subtract(microseconds, _remainder(microseconds))
    rounded = pc.add(floored, pc.if_else(pc.greater(pc.subtract(microseconds, floored), 0), 1000, 0)) if up else floored
    moments = rounded.cast(pa.timestamp("us")).cast(pa.timestamp("ms"))
    form = "%Y-%m-%dT%H:%M:%SZ" if values.type.tz is not None else "%Y-%m-%dT%H:%M:%S"
    return _in_quotes(pc.strftime(moments, form))


def _remainder(microseconds: pa.Array) -> pa.Array:
    """Returns what exceeds the last whole millisecond, also for times before 1970."""
    cut = pc.subtract(microseconds, pc.multiply(pc.divide(microseconds, 1000), 1000))
    return pc.if_else(pc.less(cut, 0), pc.add(cut, 1000), cut)


def _in_quotes(texts: pa.Array) -> _Texts:
    return [None if text is None else f'"{text}"' for text in texts.to_pylist()]
