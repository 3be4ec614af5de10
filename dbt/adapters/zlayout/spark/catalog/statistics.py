"""Builds catalog statistics of a table for Spark's optimizer: sizes, counts and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from dbt.adapters.zlayout.spark.jvm.scala import Jvm

_CATALOG = "org.apache.spark.sql.catalyst.catalog."


@dataclass(frozen=True)
class ColumnFacts:
    """Exact facts about one column, in the text form of Spark's catalog. Unknown values are None."""

    minimum: str | None
    maximum: str | None
    null_count: int | None


class StatisticsBuilder:
    """Builds ``CatalogStatistics`` inside the JVM, because Py4J would turn a Scala ``BigInt`` into a Python int."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._column_type = jvm.companion(_CATALOG + "CatalogColumnStat")
        self._none = jvm.none()
        self._version = getattr(self._column_type, "apply$default$8")()
        big = jvm.static("scala.math.BigInt", "apply", "(J)Lscala/math/BigInt;")
        some = jvm.static("scala.Option", "apply", "(Ljava/lang/Object;)Lscala/Option;")
        self._some_big = jvm.then(jvm.as_object(big, "(J)Ljava/lang/Object;"), some)
        make = jvm.constructor(
            _CATALOG + "CatalogStatistics", "(Lscala/math/BigInt;Lscala/Option;Lscala/collection/immutable/Map;)V"
        )
        self._make = jvm.with_filters(make, 0, [big])

    def table(self, size_bytes: int, row_count: int, columns: Mapping[str, ColumnFacts]) -> Any:
        """Returns the ``CatalogStatistics`` of a table."""
        native = self._jvm.root.java.util.HashMap()
        for name, facts in columns.items():
            native.put(name, self._column(facts))
        columns_map = self._jvm.root.PythonUtils.toScalaMap(native)
        return self._make.invokeWithArguments(self._jvm.array_list([size_bytes, self._count(row_count), columns_map]))

    def _column(self, facts: ColumnFacts) -> Any:
        some, none = self._jvm.some, self._none
        low = some(facts.minimum) if facts.minimum is not None else none
        high = some(facts.maximum) if facts.maximum is not None else none
        nulls = self._count(facts.null_count) if facts.null_count is not None else none
        return self._column_type.apply(none, low, high, nulls, none, none, none, self._version)

    def _count(self, value: int) -> Any:
        return self._some_big.invokeWithArguments(self._jvm.array_list([value]))


def statistics_builder(jvm: Jvm) -> StatisticsBuilder:
    """Returns the builder of an application. It is cached, because creating one takes a dozen calls."""
    if jvm not in _BUILDERS:
        _BUILDERS[jvm] = StatisticsBuilder(jvm)
    return _BUILDERS[jvm]


_BUILDERS: WeakKeyDictionary[Jvm, StatisticsBuilder] = WeakKeyDictionary()
