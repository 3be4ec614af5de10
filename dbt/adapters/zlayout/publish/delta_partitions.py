"""Partition values of Delta: the text of folders in the one spelling that all readers understand.

Source: the Delta transaction log protocol, section Partition Value Serialization.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.statistics.partitions import one_spelling, typed_partition_values
from dbt.adapters.zlayout.publish.publication import misspelled_folder

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
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
    decimal = _DECIMAL.fullmatch(spark_type)
    kind = pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _ARROW.get(spark_type)
    if kind is None:
        return list(texts.to_pylist())
    spelled = texts
    if not pa.types.is_floating(kind):
        spelled = pa.array([one_spelling(each, spark_type) for each in texts.to_pylist()], pa.string())
    typed = typed_partition_values(spelled, kind)
    if not pc.all(typed.known, min_count=0).as_py():
        raise misspelled_folder(name, texts.filter(pc.invert(typed.known))[0].as_py(), spark_type, "delta")
    if decimal:
        return [None if each is None else format(each, "f") for each in typed.values.to_pylist()]
    return list(spelled.to_pylist())
