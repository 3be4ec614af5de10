"""The keys of incoming rows as a filter on the table, in a form that skips files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from dbt.adapters.zlayout.curve.keys import is_orderable
from dbt.adapters.zlayout.errors import ConfigError, WriteError
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.read.prune_by import Spelling, spelling_of, values_condition
from dbt.adapters.zlayout.spark.schema.table_schema import quoted
from dbt.adapters.zlayout.spark.schema.types import fields_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Up to so many values of a key column are looked up in the index one by one; of more of them ranges.
_MOST_VALUES = 5_000
_MOST_RANGES = 100
_BROADCAST_ROWS = 500_000
_TIMES = "__zl_times"


class Source:
    """Incoming rows, computed once.

    Args:
        frame: The rows, in the table's columns.
        keys: Columns that tell rows apart.

    Attributes:
        frame: The rows; reading them again does not run the query again.
        keys: As given.
    """

    def __init__(self, frame: DataFrame, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)
        self.frame = frame.localCheckpoint(eager=True)

    @property
    def rows(self) -> int:
        """How many there are."""
        return self._counted[0]

    @property
    def nulls(self) -> Mapping[str, int]:
        """In how many rows each key is null."""
        return self._counted[1]

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
        few = self._few_keys
        if few is None or any(times > 1 and None not in key for *key, times in few):
            _check_unique(self.whole_keys(), self.keys, subject)

    def may_match(self, table: DataFrame) -> DataFrame:
        """Rows of the table whose key may be among the source's; what Spark pushes down of it skips files."""
        for condition in self._conditions:
            table = table.where(condition)
        return table

    @cached_property
    def _spellings(self) -> Mapping[str, Spelling]:
        """Of the key columns by which files can be told apart: their values have constants, which compare by bytes."""
        types = {field.name: field.dataType for field in self.frame.schema}
        return {
            field.name: spelling_of(types[field.name], field.name)
            for field in fields_of(self.frame.schema.json())
            if field.name in self.keys and field.arrow_type is not None and is_orderable(field.arrow_type)
            if not field.collated
        }

    @cached_property
    def _few_keys(self) -> Sequence[Sequence[Any]] | None:
        """The distinct keys as Python holds them, and how many rows have each; None where they are many.

        One query answers what else would take several. Of a key column that has no spelling only null is told.
        """
        times = self.frame.groupBy(*map(quoted, self.keys)).agg(functions.count("*").alias(_TIMES))
        told = [
            self._spellings[key].fetched(functions.col(quoted(key)))
            if key in self._spellings
            else functions.expr(f"if({quoted(key)} is null, null, true)")
            for key in self.keys
        ]
        found = times.select(*told, _TIMES).limit(_MOST_VALUES + 1).collect()
        return found if len(found) <= _MOST_VALUES else None

    @cached_property
    def _counted(self) -> tuple[int, Mapping[str, int]]:
        if self._few_keys is None:
            rows, *nulls = map(int, self.frame.agg(functions.count("*"), *_nulls(self.keys)).head() or ())
        else:
            rows = sum(times for *_, times in self._few_keys)
            nulls = [
                sum(times for *key, times in self._few_keys if key[number] is None) for number in range(len(self.keys))
            ]
        return rows, dict(zip(self.keys, nulls, strict=True))

    @cached_property
    def _conditions(self) -> list[str]:
        """For each key column that has a spelling a condition that holds for every key that comes."""
        if self._few_keys is None:
            columns = {key: self.frame.select(quoted(key)) for key in self._spellings}
            return [values_condition(each, quoted(key), _MOST_VALUES, _MOST_RANGES) for key, each in columns.items()]
        number = self.keys.index
        return [
            spelling.condition(quoted(key), [row[number(key)] for row in self._few_keys])
            for key, spelling in self._spellings.items()
        ]


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
    if wrong := [f"{name} is null in {counted(count, 'row')}" for name, count in nulls.items() if count]:
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
    counted = rows.groupBy(*map(quoted, keys)).agg(functions.count("*").alias(_TIMES))
    found = counted.where(f"{_TIMES} > 1").limit(3).collect()
    if found:
        shown = "; ".join(
            f"{', '.join(f'{key} = {row[key]!r}' for key in keys)} ({row[_TIMES]} times)" for row in found
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
