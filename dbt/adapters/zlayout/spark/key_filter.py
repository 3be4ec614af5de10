"""The keys of incoming rows as a filter on the table, in a form that skips files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, functions

from dbt.adapters.zlayout.curve.keys import is_orderable
from dbt.adapters.zlayout.errors import ConfigError, WriteError
from dbt.adapters.zlayout.spark.catalog import Catalog
from dbt.adapters.zlayout.spark.schema import quoted
from dbt.adapters.zlayout.spark.types import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import Column

_MOST_VALUES = 5_000
_BROADCAST_ROWS = 500_000


class Source:
    """Incoming rows, computed once.

    Args:
        catalog: The session's catalog.
        frame: The rows, in the table's columns.
        keys: Columns that tell rows apart.

    Attributes:
        frame: The rows; reading them again does not run the query again.
        keys: As given.
        rows: How many.
        nulls: In how many of them each key is null.
    """

    def __init__(self, catalog: Catalog, frame: DataFrame, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)
        self.frame = frame.localCheckpoint(eager=True)
        counted = self.frame.agg(functions.count("*"), *_nulls(self.keys)).head()
        self.rows, *without_key = map(int, counted or ())
        self.nulls = dict(zip(self.keys, without_key, strict=True))
        self._catalog = catalog

    @property
    def hinted(self) -> DataFrame:
        """The rows, to be sent to every task where they are few."""
        return functions.broadcast(self.frame) if self.rows <= _BROADCAST_ROWS else self.frame

    def whole_keys(self) -> DataFrame:
        """The rows whose keys can match anything: none of them is null."""
        return self.frame.where(" and ".join(f"{quoted(key)} is not null" for key in self.keys))

    def check_unique(self, subject: str) -> None:
        """Checks that no two rows have the same key; those with a null in it have none.

        Raises:
            WriteError: Shows three of the keys that come more than once.
        """
        _check_unique(self.whole_keys(), self.keys, subject)

    def may_match(self, table: DataFrame) -> DataFrame:
        """Rows of the table whose key may be among the source's; what Spark pushes down of it skips files."""
        for condition in self._conditions:
            filtered: Any = table._jdf.filter(condition)
            table = DataFrame(filtered, self._catalog.spark)
        return table

    @cached_property
    def _conditions(self) -> list[Any]:
        return [each for each in map(self._condition, self.keys) if each is not None]

    def _condition(self, key: str) -> Any:
        """A condition on a key column that holds for every key that comes, or None where its type has no order."""
        field = self.frame.schema[key]
        kind = arrow_type(field.dataType.jsonValue())
        if kind is None or not is_orderable(kind):
            return None
        jvm, native = self._catalog.jvm, self.frame.select(quoted(key)).where(f"{quoted(key)} is not null")
        values: Any = native.distinct().limit(_MOST_VALUES + 1)._jdf.collectAsList()
        column = jvm.root.org.apache.spark.sql.functions.col(quoted(key))
        if values.size() <= _MOST_VALUES:
            getter = jvm.fixed(jvm.virtual("org.apache.spark.sql.Row", "get", "(I)Ljava/lang/Object;"), 1, 0)
            return column.isInCollection(values.stream().map(jvm.function(getter)).toList())
        ends: Any = native.agg(functions.min(quoted(key)), functions.max(quoted(key)))._jdf.head()
        return column.between(ends.get(0), ends.get(1))


def check_keys(rows: DataFrame, keys: Sequence[str], subject: str) -> None:
    """Checks that every row has a whole key that no other has.

    Raises:
        WriteError: Counts the rows without one, or shows three of the keys that come more than once.
    """
    check_whole(null_counts(rows, keys), subject)
    _check_unique(rows, keys, subject)


def check_whole(nulls: Mapping[str, int], subject: str) -> None:
    """Checks that every row has a whole key.

    Args:
        nulls: Rows in which a column of the key is null, by its name.
        subject: The table.

    Raises:
        WriteError: Counts the rows without one.
    """
    if wrong := [f"{name} is null in {count:,} rows" for name, count in nulls.items() if count]:
        raise WriteError(
            f"{subject}: unique_key: {', '.join(wrong)}; a row of a merge_on_read table needs a whole key. "
            "The table is as it was before"
        )


def null_counts(rows: DataFrame, columns: Sequence[str]) -> dict[str, int]:
    """Rows in which a column is null, by its name."""
    return dict(zip(columns, map(int, rows.agg(*_nulls(columns)).head() or ()), strict=True))


def _nulls(columns: Sequence[str]) -> list[Column]:
    return [functions.count_if(functions.col(quoted(each)).isNull()) for each in columns]


def _check_unique(rows: DataFrame, keys: Sequence[str], subject: str) -> None:
    counted = rows.groupBy(*map(quoted, keys)).agg(functions.count("*").alias("__zl_times"))
    found = counted.where("__zl_times > 1").limit(3).collect()
    if found:
        shown = "; ".join(
            f"{', '.join(f'{key} = {row[key]!r}' for key in keys)} ({row['__zl_times']} times)" for row in found
        )
        raise WriteError(
            f"{subject}: the query has several rows of one unique_key, so that it is open which of them shall win: "
            f"{shown}; make the query give one row a key. The table is as it was before"
        )


def known_keys(unique_key: Sequence[str] | str, columns: Sequence[str], subject: str) -> tuple[str, ...]:
    """The key columns as the table spells them.

    Raises:
        ConfigError: One is no column of the table, or there is none.
    """
    wanted = [unique_key] if isinstance(unique_key, str) else list(dict.fromkeys(unique_key))
    by_name = {name.lower(): name for name in columns}
    missing = [name for name in wanted if name.strip("`").lower() not in by_name]
    if missing or not wanted:
        what = ", ".join(repr(name) for name in missing) or "nothing"
        raise ConfigError(
            [f"unique_key: {what} is no column of the table; it has {', '.join(columns)} (an expression is no key)"],
            subject,
        )
    return tuple(dict.fromkeys(by_name[name.strip("`").lower()] for name in wanted))
