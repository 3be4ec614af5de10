"""Incoming rows, and the files that may hold their keys.

A change feed marks some rows as deletes. Precombining keeps one of several rows that share a key.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions

from dbt.adapters.zlayout.config.column_names import folded_set, spelled_as
from dbt.adapters.zlayout.config.table_type import TableTypeConfig
from dbt.adapters.zlayout.curve.keys import is_orderable
from dbt.adapters.zlayout.errors import ConfigError, WriteError
from dbt.adapters.zlayout.index.bloom.filter_slices import Positions
from dbt.adapters.zlayout.index.bloom.hashing import Hashes, combined, hashes_of_rows
from dbt.adapters.zlayout.index.lookup.lookup_key import LookupKey
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags
from dbt.adapters.zlayout.spark.catalog.session_catalog import DECLARED_TYPE
from dbt.adapters.zlayout.spark.history.changes import NET_CHANGE
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, why_failed
from dbt.adapters.zlayout.spark.jvm.scala import active_session, members
from dbt.adapters.zlayout.spark.read.skipping_stages import session_stages
from dbt.adapters.zlayout.spark.read.values_condition import (
    EVERY_ROW,
    Spelling,
    is_exact,
    spelling_of,
    values_condition,
)
from dbt.adapters.zlayout.spark.rewrite.file_writer import check_whole
from dbt.adapters.zlayout.spark.schema.table_schema import DELETED
from dbt.adapters.zlayout.spark.schema.types import fields_of, raw_fields, schema_json_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.log.file_slices import base_files

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from dbt.adapters.zlayout.spark.write.change_plan import Target

# The number of a row among those with the same key, from 1.
RANK = "_zl_rank"
# The ordering value of the latest delete before an incoming row, in a struct; null where none comes before it.
LATEST_DELETE, VALUES_AT = "__zl_latest_delete", "__zl_values_at"
_ARRIVAL, _DELETES = "__zl_arrival", "__zl_deletes"
# Up to this many rows, the values of a key column are looked up in the index one by one. Beyond that, ranges are.
_MOST_VALUES = 20_000
_MOST_RANGES = 100
_BROADCAST_ROWS = 500_000
_TIMES = "__zl_times"


@dataclass(frozen=True)
class ChangeFeed:
    """Describes which incoming rows are deletes, for a table that does not exist yet.

    Attributes:
        deleted_when: SQL condition over the incoming columns. A row that meets it is a delete.
        unique_key: Columns that identify the row to delete.
        stored_columns: Columns that are stored even if only the condition reads them.
    """

    deleted_when: str
    unique_key: tuple[str, ...]
    stored_columns: tuple[str, ...] = ()


def with_deletes(
    frame: DataFrame, condition: str, stored: Collection[str], subject: str, progress: Progress | None
) -> DataFrame:
    """Adds the column `DELETED` to the rows and drops columns that only the condition reads.

    Args:
        frame: Incoming rows. Their query has not run yet.
        condition: SQL over their columns. A row is a delete only if the condition is TRUE for it.
        stored: Columns that the table has or will have. They are always kept.
        progress: Called with a line that names the columns left out.

    Raises:
        ConfigError: The condition does not fit the rows.
    """
    try:
        # Checked as a filter first, because a filter accepts nothing but a condition.
        frame.where(condition)
        read = columns_read(frame, condition)
    except (AnalysisException, ParseException) as error:
        why = why_failed(error)
        columns = f"the columns {', '.join(frame.columns)}"
        raise ConfigError(
            [f"deleted_when: {condition!r} is not a condition over {columns}: {why}; write SQL as after WHERE"],
            subject,
        ) from error
    known = {name.lower() for name in stored}
    only_read = {name for name in read if name.lower() not in known}
    left_out = [name for name in frame.columns if name in only_read]
    # Users do not want the change type of `net_changes` stored, so it is not mentioned.
    unstored = [name for name in left_out if name != NET_CHANGE]
    if unstored and progress is not None:
        columns, are = ("columns", "are") if len(unstored) > 1 else ("column", "is")
        progress(f"only deleted_when uses the {columns} {', '.join(unstored)}, which {are} not stored")
    deleted = functions.coalesce(functions.expr(condition), functions.lit(False))
    kept = [functions.col(backquoted(name)) for name in frame.columns if name not in only_read]
    return frame.select(*kept, deleted.alias(DELETED))


def columns_read(frame: DataFrame, expression: str) -> list[str]:
    """Returns the columns of a frame that an SQL expression reads.

    Raises:
        AnalysisException, ParseException: It does not fit the frame.
    """
    selected: Any = frame.select(functions.expr(expression))
    return [str(each.name()) for each in members(selected._jdf.queryExecution().analyzed().references().toSeq())]


def with_deleted_column(schema_json: str) -> str:
    """Returns the table's columns as Spark's JSON, with `DELETED` appended."""
    return schema_json_of(
        [*raw_fields(schema_json), {"name": DELETED, "type": "boolean", "nullable": True, "metadata": {}}]
    )


def has_deleted_column(frame: DataFrame) -> bool:
    """Returns whether the rows carry the column `DELETED`, so that some may be deletes."""
    return DELETED in frame.columns


def upserts_of(frame: DataFrame) -> DataFrame:
    """Returns the rows that are not deletes, without the column `DELETED`."""
    return frame.where(f"not {DELETED}").drop(DELETED) if has_deleted_column(frame) else frame


def precombined(frame: DataFrame, table_type: TableTypeConfig) -> DataFrame:
    """Returns one row per key: the one with the greatest value of the ordering column, and the last one of equals.

    With partial rows, a column that is null in that row has the newest value of the rows before it.

    Args:
        frame: Incoming rows. Without an ordering column they are returned unchanged.
        table_type: Gives the key and the ordering column.
    """
    rows = with_origins(frame, table_type)
    return rows.drop(LATEST_DELETE, VALUES_AT) if table_type.keeps_old_values else rows


def with_origins(frame: DataFrame, table_type: TableTypeConfig) -> DataFrame:
    """Returns the rows of `precombined`. Partial rows also say how old their values are.

    With an ordering column, they have `VALUES_AT`, a struct: field ``c<n>`` is the ordering value of the row that the
    value of column n of the frame comes from. In a feed, they have `LATEST_DELETE` too.
    """
    if table_type.ordering is None:
        return frame
    arrived = frame.withColumn(_ARRIVAL, functions.monotonically_increasing_id())
    keys = [backquoted(each) for each in table_type.unique_key]
    ordering = backquoted(table_type.ordering)
    if table_type.keeps_old_values:
        arrived = _with_nulls_filled(arrived, keys, ordering)
    return first_of(arrived, keys, f"{ordering} desc nulls last, {_ARRIVAL} desc").drop(_ARRIVAL, RANK)


def _with_nulls_filled(arrived: DataFrame, keys: Sequence[str], ordering: str) -> DataFrame:
    """Returns the rows with each null replaced by the newest earlier value for the key, back to its last delete."""
    within, value = ", ".join(keys), "{}"
    so_far = f"order by {ordering} asc nulls first, {_ARRIVAL} rows between unbounded preceding and current row"
    if has_deleted_column(arrived):
        latest = f"struct(max(if({DELETED}, {ordering}, null)) over (partition by {within}) as at)"
        deletes = f"count_if({DELETED}) over (partition by {within} {so_far})"
        arrived = arrived.selectExpr("*", f"{latest} as {LATEST_DELETE}", f"{deletes} as {_DELETES}")
        within, value = f"{within}, {_DELETES}", f"if({DELETED}, null, {{}})"
    fixed = {*keys, ordering, *map(backquoted, (DELETED, LATEST_DELETE, _DELETES, _ARRIVAL))}
    names = list(map(backquoted, arrived.columns))
    values = {name: value.format(name) for name in names if name not in fixed}
    filled = {
        name: f"coalesce({name}, last({own}, true) over (partition by {within} {so_far})) as {name}"
        for name, own in values.items()
    }
    origins = [
        f"last(if({own} is null, null, {ordering}), true) over (partition by {within} {so_far}) as c{names.index(name)}"
        for name, own in values.items()
    ]
    origin = f"struct({', '.join(origins)}) as {VALUES_AT}"
    rows = arrived.selectExpr(*(filled.get(name, name) for name in names), origin)
    if has_deleted_column(rows):
        rows = rows.withColumn(LATEST_DELETE, functions.expr(f"if({_DELETES} > 0, {LATEST_DELETE}, null)"))
    return rows.drop(_DELETES)


def first_of(frame: DataFrame, keys: Sequence[str], order: str) -> DataFrame:
    """Returns the first row of each key, with `RANK` as a further column.

    Args:
        frame: The rows to choose from.
        keys: Key columns, as SQL.
        order: SQL, as after ORDER BY.
    """
    rank = functions.expr(f"row_number() over (partition by {', '.join(keys)} order by {order})")
    return frame.withColumn(RANK, rank).where(f"{RANK} = 1")


class IncomingRows:
    """Incoming rows whose query runs only once.

    Args:
        frame: Incoming rows, in the table's columns.
        keys: Columns that identify a row.

    Attributes:
        frame: The computed rows. Reading them does not run the query again.
        keys: The key columns, as given.
    """

    def __init__(self, frame: DataFrame, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)
        self.frame = frame.localCheckpoint(eager=True)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._counted[0]

    @property
    def few(self) -> bool:
        """Whether there are so few rows that the driver knows all their keys."""
        return self._few_keys is not None

    @property
    def nulls(self) -> Mapping[str, int]:
        """Number of rows in which each key column is null, by its name."""
        return self._counted[1]

    @property
    def hinted(self) -> DataFrame:
        """The rows, with a broadcast hint if there are few of them."""
        return functions.broadcast(self.frame) if self.rows <= _BROADCAST_ROWS else self.frame

    def whole_keys(self) -> DataFrame:
        """Returns the rows without a null in their key, which are the only rows that can match."""
        return self.frame.where(" and ".join(f"{backquoted(key)} is not null" for key in self.keys))

    def check_unique(self, subject: str) -> None:
        """Checks that no two rows share a key. Rows with a null in the key are ignored.

        Raises:
            WriteError: Keys are duplicated. The message shows three of them.
        """
        few = self._few_keys
        if few is None or any(times > 1 and None not in key for key, times in few.items()):
            check_unique(self.whole_keys(), self.keys, subject)

    def may_match(self, table: DataFrame) -> DataFrame:
        """Returns the table's rows whose key may be among these rows'. Spark pushes the filter down to skip files."""
        for condition in self._conditions:
            table = table.where(condition)
        return table

    @cached_property
    def exact_condition(self) -> str | None:
        """SQL that is TRUE for exactly the table's rows whose key is among these rows'. None if it takes a join."""
        if self._few_keys is None or len(self.keys) > 1 or not self._conditions or self._conditions[0] == EVERY_ROW:
            return None
        # Spark compares a CHAR with a constant differently than with a column.
        field = self.frame.schema[self.keys[0]]
        return self._conditions[0] if DECLARED_TYPE not in field.metadata else None

    @cached_property
    def whole_few_keys(self) -> Sequence[tuple[Any, ...]] | None:
        """The distinct keys without a null, in fetched values. None if the driver does not know all of them exactly."""
        few = self._few_keys
        if few is None or not all(is_exact(value) for key in few for value in key):
            return None
        types = {field.name: field for field in self.frame.schema}
        # Spark does not compare a CHAR with a column byte by byte.
        plain = all(key in self._spellings and DECLARED_TYPE not in types[key].metadata for key in self.keys)
        return [key for key in few if None not in key] if plain else None

    @property
    def fetched_as_stored(self) -> bool:
        """Whether the driver knows the keys in values that Spark takes back as they are."""
        return all(key in self._spellings and self._spellings[key].fetched == "{}" for key in self.keys)

    def fetched_as_arrow(self, key: str, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
        """Returns fetched values of a key column as Arrow values.

        Args:
            key: The column.
            values: The values, none of them null.
            kind: The type to return.

        Raises:
            pyarrow.ArrowException: A value is not of this type.
        """
        if self._spellings[key].fetched == "{}":
            return pa.array(values, kind)
        return pa.array(values).cast(kind) if values else pa.array([], kind)

    @cached_property
    def _spellings(self) -> Mapping[str, Spelling]:
        """Spelling of each key column that can skip files: its values can be SQL constants and compare by bytes."""
        types = {field.name: field.dataType for field in self.frame.schema}
        return {
            field.name: spelling_of(types[field.name], field.name)
            for field in fields_of(self.frame.schema.json())
            if field.name in self.keys and field.arrow_type is not None and is_orderable(field.arrow_type)
            if not field.collated
        }

    @cached_property
    def _few_keys(self) -> Mapping[tuple[Any, ...], int] | None:
        """Number of rows by their key, in Python values. None if there are too many rows.

        One query replaces several. For a key column without a spelling, the key only says whether it is null.
        """
        columns = [
            self._spellings[key].fetched.format(backquoted(key))
            if key in self._spellings
            else f"if({backquoted(key)} is null, null, true)"
            for key in self.keys
        ]
        # One task, because the rows are computed already: a limit over several tasks runs a job for each few of them.
        found = self.frame.selectExpr(*columns).coalesce(1).limit(_MOST_VALUES + 1).collect()
        return Counter(tuple(map(_hashable, row)) for row in found) if len(found) <= _MOST_VALUES else None

    @cached_property
    def _counted(self) -> tuple[int, Mapping[str, int]]:
        if self._few_keys is None:
            rows, *nulls = map(int, self.frame.agg(functions.count("*"), *_nulls(self.keys)).head() or ())
        else:
            few = self._few_keys.items()
            rows = sum(self._few_keys.values())
            nulls = [sum(times for key, times in few if key[number] is None) for number in range(len(self.keys))]
        return rows, dict(zip(self.keys, nulls, strict=True))

    @cached_property
    def _conditions(self) -> list[str]:
        """One condition for each key column that has a spelling. Every incoming key meets it."""
        if self._few_keys is None:
            columns = {key: self.frame.select(backquoted(key)) for key in self._spellings}
            return [
                values_condition(each, backquoted(key), _MOST_VALUES, _MOST_RANGES) for key, each in columns.items()
            ]
        number = self.keys.index
        return [
            spelling.condition(backquoted(key), {row[number(key)] for row in self._few_keys})
            for key, spelling in self._spellings.items()
        ]


def _hashable(value: Any) -> Any:
    """Returns a value that is equal for keys that Spark holds to be equal."""
    if isinstance(value, float) and math.isnan(value):
        return math.nan  # this object equals itself as a key, other NaN do not
    return bytes(value) if isinstance(value, bytearray) else value


def check_keys(rows: DataFrame, keys: Sequence[str], subject: str) -> None:
    """Checks that every row has a key without nulls that no other row has.

    Raises:
        WriteError: A key column holds nulls (the message counts them), or keys are duplicated (it shows three).
    """
    check_whole(null_counts(rows, keys), subject)
    check_unique(rows, keys, subject)


def null_counts(rows: DataFrame, columns: Sequence[str]) -> dict[str, int]:
    """Returns the number of rows in which each column is null, by its name."""
    return dict(zip(columns, map(int, rows.agg(*_nulls(columns)).head() or ()), strict=True))


def _nulls(columns: Sequence[str]) -> list[Column]:
    return [functions.count_if(functions.col(backquoted(each)).isNull()) for each in columns]


def check_unique(rows: DataFrame, keys: Sequence[str], subject: str) -> None:
    """Checks that no two rows share a key.

    Raises:
        WriteError: Keys are duplicated. The message shows three of them.
    """
    counted = rows.groupBy(*map(backquoted, keys)).agg(functions.count("*").alias(_TIMES))
    found = counted.where(f"{_TIMES} > 1").limit(3).collect()
    if found:
        shown = "; ".join(
            f"{', '.join(f'{key} = {row[key]!r}' for key in keys)} ({row[_TIMES]} times)" for row in found
        )
        raise WriteError(
            f"{subject}: the query has several rows with the same unique_key, so it is unclear which of them to keep: "
            f"{shown}; make the query return one row per key. The table is unchanged"
        )


def known_keys(unique_key: Sequence[str] | str, columns: Sequence[str], subject: str) -> tuple[str, ...]:
    """Returns the key columns, spelled as in the table.

    Raises:
        ConfigError: A key column is not in the table, or no key column is given.
    """
    wanted = [unique_key] if isinstance(unique_key, str) else list(dict.fromkeys(unique_key))
    found = spelled_as(columns, wanted)
    missing = [name for name, column in zip(wanted, found, strict=True) if column is None]
    if missing or not wanted:
        have = f"the table, which has {', '.join(columns)}"
        if missing:
            are = "is not a column" if len(missing) == 1 else "are not columns"
            problem = f"unique_key: {', '.join(map(repr, missing))} {are} of {have}"
        else:
            problem = f"unique_key: no column is named; give one or more of {have}"
        raise ConfigError([problem], subject)
    return tuple(dict.fromkeys(column for column in found if column is not None))


@dataclass(frozen=True)
class KeyPlaces:
    """The files that hold some keys.

    Attributes:
        keys: The keys, as tuples of fetched values in the order of the incoming rows' key columns.
        key_of_hit: int64[m], the position of a key, once for each file that holds it.
        file_of_hit: int64[m], the position of that file in the table.
        unknown: For each file of the table whether it may hold some of the keys, because nothing is known about it.
    """

    keys: Sequence[tuple[Any, ...]]
    key_of_hit: Positions
    file_of_hit: Positions
    unknown: Flags

    @property
    def candidates(self) -> Flags | None:
        """The files that may hold one of the keys; None for all."""
        found = self.unknown.copy()
        found[self.file_of_hit] = True
        return None if found.all() else found

    def in_one_base_file(self, opened: TableSnapshot) -> tuple[Positions, Positions, Flags]:
        """Returns the keys whose place the index knows fully: those in one base file and in no log.

        Returns:
            The positions of these keys, of the file of each, and which files hold any of the other keys.
        """
        paths = opened.files["path"].combine_chunks()
        is_base = pc.is_in(paths, value_set=base_files(opened.files)["path"].combine_chunks())
        outside = ~is_base.to_numpy(zero_copy_only=False)[self.file_of_hit]
        count = np.bincount(self.key_of_hit, minlength=len(self.keys))
        elsewhere = np.bincount(self.key_of_hit, weights=outside, minlength=len(self.keys))
        alone = ((count == 1) & (elsewhere == 0))[self.key_of_hit]
        others = np.zeros(len(opened.files), dtype=bool)
        others[self.file_of_hit[~alone]] = True
        return self.key_of_hit[alone], self.file_of_hit[alone], others


def places_of(source: IncomingRows, target: Target) -> KeyPlaces | None:
    """Returns where the keys of incoming rows are. Keys with a null are nowhere, because null equals nothing.

    Returns:
        None if the table has no lookup index of exactly the key columns, if the driver does not know all keys, or if
        the session has switched lookup indexes off.
    """
    opened = target.opened
    index = _index_of(source.keys, opened)
    if index is None:
        return None
    with active_session(target.catalog.spark):
        if "lookup" not in session_stages(target.catalog.jvm):
            return None
    keys, found = source.whole_few_keys, opened.statistics.lookups(opened.files)
    if keys is None or found is None:
        return None
    try:
        hashes = _hashes(index, source, keys)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None  # a date after the year 9999, which Arrow does not read
    distinct, first = np.unique(hashes, return_index=True)
    places = found.places(index, distinct)
    if len(distinct) < len(hashes):
        return None  # two keys of one hash
    return KeyPlaces(keys, first[places.hash], places.file, places.unknown)


def _index_of(keys: Sequence[str], opened: TableSnapshot) -> LookupKey | None:
    wanted = folded_set(tuple((name,) for name in keys))
    every = TableLayout.of_version(opened.snapshot).looked_up
    return next((each for each in every if folded_set(each.paths) == wanted), None)


def _hashes(index: LookupKey, source: IncomingRows, keys: Sequence[tuple[Any, ...]]) -> Hashes:
    position = {name.lower(): number for number, name in enumerate(source.keys)}
    parts = []
    for column in index.columns:
        number = position[column.path[0].lower()]
        values = source.fetched_as_arrow(source.keys[number], [key[number] for key in keys], column.type)
        parts.append(hashes_of_rows(values, column.type))
    return combined(parts) if len(parts) > 1 else parts[0]
