"""Tags incoming rows: finds the file groups of their keys, and assigns new rows to groups or to new base files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import repeat

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, functions
from pyspark.sql.types import BooleanType, DateType, IntegralType, StringType, StructField, StructType

from dbt.adapters.zlayout.config.table_type import DELETE, INSTANT, OP, SEQ, UPSERT, TableTypeConfig
from dbt.adapters.zlayout.curve.model import PartitionKey
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags
from dbt.adapters.zlayout.spark.jobs.jobs import frame_of_rows
from dbt.adapters.zlayout.spark.read.record_tables import file_groups
from dbt.adapters.zlayout.spark.rewrite.file_writer import check_whole
from dbt.adapters.zlayout.spark.schema.table_schema import DELETED, FILE, GROUP, new_group_of
from dbt.adapters.zlayout.spark.write.change_plan import KEYS_TAKEN, RowCounts, Target
from dbt.adapters.zlayout.spark.write.incoming_rows import (
    RANK,
    IncomingRows,
    first_of,
    has_deleted_column,
    places_of,
    precombined,
)
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.naming import new_group
from dbt.adapters.zlayout.timeline.transactions.change import KeyConflictCheck

# Assumed size of a record while the table has no files to measure it from.
_UNKNOWN_RECORD_BYTES = 256
# New rows of a partition become base files if they fill at least this share of a file.
_SHARE_OF_A_FILE = 1 / 8
# Partition columns whose values in folder names mean the same in every session.
_TOLD_BY_FOLDERS = (StringType, IntegralType, DateType, BooleanType)
_SLOTS_PER_GROUP = 16
_MOST_SLOTS = 4096


@dataclass(frozen=True)
class GroupShare:
    """New rows that go to one file group.

    Attributes:
        group: Id of the file group.
        rows: Approximate number of rows.
    """

    group: str
    rows: int


def assign(
    rows_by_partition: Mapping[PartitionKey, int], files: DataFiles, small_file_bytes: int, target_file_bytes: int
) -> dict[PartitionKey, list[GroupShare]]:
    """Assigns new rows to file groups as log records.

    Many rows of one partition are better written as a base file at once. As log records, they would be written twice,
    and the base files of the small groups that they fill would be rewritten as well.

    Args:
        rows_by_partition: Number of new rows in each partition.
        files: All files of the table. The average size of a record comes from them.
        small_file_bytes: A group smaller than this is filled up to this size.
        target_file_bytes: Target size of a base file.

    Returns:
        The groups of each partition. Partitions whose rows become base files are left out.
    """
    record_bytes = max(1.0, files.total_bytes / files.total_rows) if files.total_rows else _UNKNOWN_RECORD_BYTES
    file_bytes = _SHARE_OF_A_FILE * target_file_bytes
    rows_by_partition = {key: rows for key, rows in rows_by_partition.items() if rows * record_bytes < file_bytes}
    small = _small_groups(files, small_file_bytes) if rows_by_partition else {}
    found: dict[PartitionKey, list[GroupShare]] = {}
    for key, rows in rows_by_partition.items():
        shares, left = [], rows
        for size_bytes, group in sorted(small.get(key, ())):
            fits = min(left, int((small_file_bytes - size_bytes) / record_bytes))
            if fits <= 0:
                break
            shares.append(GroupShare(group, fits))
            left -= fits
        if left:
            shares.append(GroupShare(new_group(), left))
        found[key] = shares
    return found


def _small_groups(files: DataFiles, below_bytes: int) -> dict[PartitionKey, list[tuple[int, str]]]:
    """Returns the sizes and names of the file groups below a size, by partition."""
    folders = {f"p{number}": files.partition_values(name) for number, name in enumerate(files.partition_by)}
    sizes = pa.table({**folders, "group": files["group"], "bytes": files["size_bytes"]})
    sums = sizes.group_by([*folders, "group"]).aggregate([("bytes", "sum")])
    small = sums.filter(pc.less(sums["bytes_sum"], below_bytes))
    found: dict[PartitionKey, list[tuple[int, str]]] = {}
    keys = zip(*(small[name].to_pylist() for name in folders), strict=True) if folders else repeat(())
    for key, size_bytes, group in zip(keys, small["bytes_sum"].to_pylist(), small["group"].to_pylist(), strict=False):
        found.setdefault(key, []).append((size_bytes, group))
    return found


def slots_of(shares: Mapping[PartitionKey, Sequence[GroupShare]]) -> tuple[int, list[tuple[PartitionKey, int, str]]]:
    """Spreads the slots of each partition over its file groups, in proportion to their rows.

    Returns:
        The number of slots, and a list of ``(partition, slot, group)``. The hash of a row's key gives its slot.
    """
    most = max((len(each) for each in shares.values()), default=1)
    count = 1 if most <= 1 else min(_MOST_SLOTS, most * _SLOTS_PER_GROUP)
    found = []
    for key, listed in shares.items():
        total, passed, position = sum(each.rows for each in listed), 0, 0
        for slot in range(count):
            while position < len(listed) - 1 and passed + listed[position].rows <= (slot + 0.5) * total / count:
                passed += listed[position].rows
                position += 1
            found.append((key, slot, listed[position].group))
    return count, found


_SLOT, _LIVE, _BEST, _LIVE_THERE = "__zl_slot", "__zl_live", "__zl_best", "__zl_live_there"
_PART = "__zl_part"
# Counts for one partition: all records, rows inserted, updated and deleted, and new rows without a file group.
_TALLY = (
    "struct(count(*), "
    f"count_if(not {DELETED} and not coalesce({_LIVE}, false)), "
    f"count_if(not {DELETED} and {_LIVE}), "
    f"count_if({DELETED} and {_LIVE}), "
    f"count_if(not {DELETED} and {GROUP} is null))"
)


@dataclass(frozen=True)
class Records:
    """The records that a delta commit writes.

    Attributes:
        frame: Log records: the table's columns, `OP` and `GROUP`. Already computed, so they may be read more than once.
        total: Number of log records.
        counts: How many rows are inserted, updated and deleted.
        key_conflict: Checks if files that another rewrite added in the meantime hold one of the keys, see `Change`.
        new_rows: Rows that become base files of new groups, in the table's columns. None if there are none.
    """

    frame: DataFrame
    total: int
    counts: RowCounts
    key_conflict: KeyConflictCheck
    new_rows: DataFrame | None = None


@dataclass(frozen=True)
class Tagger:
    """Tags records for one version of a merge-on-read table.

    Attributes:
        target: The version, and the table's future columns.
        table_type: The table's key, ordering column and sizes.
    """

    target: Target
    table_type: TableTypeConfig

    def upsert(self, frame: DataFrame, *, ordered: bool = True, deletes: DataFrame | None = None) -> Records:
        """Tags incoming rows.

        Args:
            frame: Incoming rows, in the table's future columns. A change feed also has `DELETED`.
            ordered: Whether an incoming row loses to a row of the table with a greater value of the ordering column.
            deletes: Keys to delete, unless an incoming row has the key.

        Raises:
            WriteError: A key is null, or rows share a key and there is no ordering column.
        """
        source = IncomingRows(precombined(self._as_stored(frame), self.table_type), self._keys)
        check_whole(source.nulls, self.target.subject)
        if self.table_type.ordering is None:
            source.check_unique(self.target.subject)
        located = self._located(source)
        feed = has_deleted_column(source.frame)
        rows = self._in_one_task(source.frame, source)
        rows = rows if feed else rows.withColumn(DELETED, functions.lit(False))
        rows = self._beside_known(self._where_they_stay(rows, located, feed), located)
        if ordered and self.table_type.ordering is not None:
            rows = rows.where(f"{_BEST} is null or coalesce({backquoted(self.table_type.ordering)} >= {_BEST}, false)")
        if feed:
            rows = rows.where(f"not {DELETED} or {self._worth_a_delete}")
        rows = self._computed_once(rows.selectExpr("*", f"{self._part} as {_PART}"), source)
        tally = {
            tuple(value or None for value in part): counted
            for part, counted in rows.groupBy(_PART).agg(functions.expr(_TALLY)).collect()
        }
        total, inserted, updated, deleted = (sum(each[number] for each in tally.values()) for number in range(4))
        without_group = {part: counted[-1] for part, counted in tally.items() if counted[-1]}
        shares = self._shares(without_group)
        placed, new_rows = self._with_new_groups(rows, shares), None
        if feed:
            # A delete of an unknown key is always a log record, even if new rows become base files.
            placed = placed.withColumn(
                GROUP, functions.expr(f"if({DELETED}, coalesce({GROUP}, {new_group_of(f'to_json({_PART})')}), {GROUP})")
            )
        for_base_files = sum(count for part, count in without_group.items() if part not in shares)
        if for_base_files:
            new_rows = self._records(placed.where(f"{GROUP} is null"), UPSERT)
            placed = placed.where(f"{GROUP} is not null")
        parts = [self._records(placed.where(f"not {DELETED}"), UPSERT)]
        if feed:
            parts.append(self._delete_records(placed.where(DELETED)))
        moved = None
        if not self._stays_in_place:
            moved = self._left_behind(rows.where(f"not {DELETED}"), located)
            parts.append(moved)
        sources = [source]
        if deletes is not None:
            others = deletes.select(*self._key_columns).distinct().join(source.frame, list(self._keys), "left_anti")
            sources.append(IncomingRows(others, self._keys))
            gone, count, records_of_gone = self._gone(sources[-1])
            total, deleted = total + records_of_gone, deleted + count
            parts.append(gone)
        records = reduce(lambda left, right: left.unionByName(right), parts)
        logged = total - for_base_files + (moved.count() if moved is not None else 0)
        return Records(records, logged, RowCounts(inserted, updated, deleted), self._key_conflict(sources), new_rows)

    def delete(self, keys: DataFrame) -> Records:
        """Tags rows to delete.

        Args:
            keys: Keys of the rows to delete.
        """
        source = IncomingRows(keys.select(*self._key_columns).distinct(), self._keys)
        gone, count, total = self._gone(source)
        return Records(gone, total, RowCounts(deleted=count), self._key_conflict([source]))

    def _gone(self, source: IncomingRows) -> tuple[DataFrame, int, int]:
        """Returns the deletes of the live rows that have a source's keys, and the numbers of these rows and deletes.

        Nothing is compared after such a delete. So it also replaces the ordered deletes of these keys, which other
        partitions may have kept.
        """
        located = self._located(source)
        gone = located.where(_LIVE)
        if self.table_type.ordering is None or self._stays_in_place:
            count = gone.count()
            return self._delete_records(gone), count, count
        keys = gone.select(*self._key_columns)
        records = located.where(f"{_LIVE} or {_BEST} is not null").join(keys, list(self._keys), "left_semi")
        count, total = records.selectExpr(f"count_if({_LIVE})", "count(*)").collect()[0]
        return self._delete_records(records), count, total

    @property
    def _worth_a_delete(self) -> str:
        """SQL that says whether a delete has an effect: it removes a row, or keeps out more late rows than before."""
        ordering = self.table_type.ordering
        if ordering is None:
            return f"coalesce({_LIVE}, false)"
        now = backquoted(ordering)
        return f"(coalesce({_LIVE}, false) or coalesce({now} > {_BEST}, {now} is not null and {_BEST} is null))"

    @property
    def _keys(self) -> tuple[str, ...]:
        return self.table_type.unique_key

    @property
    def _key_columns(self) -> list[str]:
        return [backquoted(each) for each in self._keys]

    @property
    def _partition_by(self) -> tuple[str, ...]:
        return self.target.layout.partition_by

    @property
    def _stays_in_place(self) -> bool:
        """Whether a key can never move to another partition, because the partition columns belong to the key."""
        return set(self._partition_by) <= set(self._keys)

    @property
    def _folders_give_partitions(self) -> bool:
        """Whether the folder of a file gives the partition columns of its rows, in any session.

        A row may stay in its partition only if the key is certainly there; two keys can share a hash.
        """
        if self._partition_by and not self.table_type.update_partition_path:
            return False
        kinds = {each.name: each.dataType for each in self._schema}
        return all(isinstance(kinds[name], _TOLD_BY_FOLDERS) for name in self._partition_by)

    @property
    def _within(self) -> list[str]:
        return [backquoted(each) for each in dict.fromkeys([*self._keys, *self._partition_by])]

    @cached_property
    def _names(self) -> list[str]:
        return [*self.target.layout.data_schema.names, *self._partition_by]

    def _as_stored(self, frame: DataFrame) -> DataFrame:
        """Returns the rows with partition values as folder names preserve them: no empty text, no negative zero."""
        for each in self._schema:
            if each.name in self._partition_by and each.dataType.typeName() in ("string", "float", "double"):
                name = backquoted(each.name)
                empty = f"nullif({name}, '')" if each.dataType.typeName() == "string" else f"if({name} = 0, 0, {name})"
                frame = frame.withColumn(each.name, functions.expr(empty).cast(each.dataType))
        return frame

    def _located(self, source: IncomingRows) -> DataFrame:
        """Returns the newest version of each key per partition: its group, whether it is live, its ordering value.

        A lookup index of the key says which files to read. For a key about which it knows everything, no file is read.
        """
        places = places_of(source, self.target)
        if places is None:
            return self._one_task_hinted(self._read_location(source, None), source)
        simple = self.table_type.ordering is None and self._folders_give_partitions and source.fetched_as_stored
        if not simple or places.unknown.any():
            return self._one_task_hinted(self._read_location(source, places.candidates), source)
        keys, positions, others = places.in_one_base_file(self.target.opened)
        files = self.target.opened.files.take(pa.array(positions))
        facts = [files["group"].to_pylist(), *(files.partition_values(name).to_pylist() for name in self._partition_by)]
        rows = [(*places.keys[key], *of_file) for key, *of_file in zip(keys.tolist(), *facts, strict=True)]
        types = [StructField(each.name, each.dataType) for each in source.frame.select(*self._key_columns).schema]
        texts = [StructField(name, StringType()) for name in (GROUP, *(f"{_PART}{n}" for n in range(len(facts) - 1)))]
        known = frame_of_rows(self.target.catalog.spark, rows, StructType([*types, *texts]))
        kinds = {each.name: each.dataType.simpleString() for each in self._schema}
        values = [
            f"cast({_PART}{n} as {kinds[name]}) as {backquoted(name)}" for n, name in enumerate(self._partition_by)
        ]
        located = known.selectExpr(*self._key_columns, *values, f"cast(null as int) {_BEST}", f"true {_LIVE}", GROUP)
        if others.any():
            read = self._read_location(source, others)
            located = located.unionByName(read.join(known.select(*self._key_columns), list(self._keys), "left_anti"))
        return self._one_task_hinted(located, source)

    def _read_location(self, source: IncomingRows, files: Flags | None) -> DataFrame:
        """Returns what `_located` does, from the rows of some files, or of all."""
        ordering = self.table_type.ordering
        best = backquoted(ordering) if ordering is not None else "cast(null as int)"
        found = self._with_key_of(source, self.target.rows_with_file(files))
        live = f"{OP} is null or {OP} = '{UPSERT}' as {_LIVE}"
        found = found.selectExpr(*self._within, f"{best} as {_BEST}", live, INSTANT, SEQ, FILE)
        newest = first_of(found, self._within, f"{INSTANT} desc nulls last, {SEQ} desc")
        return file_groups(self.target.catalog, self.target.opened, newest).drop(FILE, INSTANT, SEQ, RANK)

    def _one_task_hinted(self, located: DataFrame, source: IncomingRows) -> DataFrame:
        located = self._computed_once(located, source)
        return located.hint("merge") if source.few else located

    def _with_key_of(self, source: IncomingRows, rows: DataFrame) -> DataFrame:
        """Returns the table's rows whose key is among the source's."""
        if source.exact_condition is not None:
            return rows.where(source.exact_condition)
        keys = source.hinted.select(*self._key_columns)
        return source.may_match(rows).join(keys, list(self._keys), "left_semi")

    def _computed_once(self, rows: DataFrame, source: IncomingRows) -> DataFrame:
        """Returns rows that are materialized by the first query that reads all of them."""
        return self._in_one_task(rows.localCheckpoint(eager=False), source)

    def _in_one_task(self, rows: DataFrame, source: IncomingRows) -> DataFrame:
        """Returns rows that one task reads if they are few, so that neither a merge join nor a count moves them."""
        return rows.coalesce(1) if source.few else rows

    def _where_they_stay(self, rows: DataFrame, located: DataFrame, feed: bool) -> DataFrame:
        """Returns the rows, some of them moved to the partition that already holds their key.

        This concerns deletes, which may not know their partition, and every row of a table whose rows must not move.
        """
        moving = [name for name in self._partition_by if name not in self._keys]
        moves = self.table_type.update_partition_path
        if not moving or (moves and not feed):
            return rows
        old = {name: f"__zl_old_{number}" for number, name in enumerate(moving)}
        columns = [functions.col(backquoted(name)).alias(alias) for name, alias in old.items()]
        # A live row takes precedence over the deletes that are left in other partitions.
        there = first_of(located, self._key_columns, f"{_LIVE} desc, {_BEST} desc nulls last")
        there = there.select(*self._key_columns, *columns, functions.col(_LIVE).alias(_LIVE_THERE))
        joined = rows.join(there, list(self._keys), "left")
        stays = f"{_LIVE_THERE} is not null and ({DELETED} or ({str(not moves).lower()} and {_LIVE_THERE}))"
        kept = {name: functions.expr(f"if({stays}, {alias}, {backquoted(name)})") for name, alias in old.items()}
        named = [kept.get(name, functions.col(backquoted(name))).alias(name) for name in self._names]
        return joined.select(*named, DELETED)

    def _beside_known(self, rows: DataFrame, located: DataFrame) -> DataFrame:
        """Adds what the table knows of each row's key: whether it is live, its ordering value and its file group.

        A deleted key has the ordering value of its delete. The file group is the one in the row's partition that holds
        a version of the key, even a delete, or null if there is none.
        """
        if self._stays_in_place:
            return rows.join(located, list(self._keys), "left")
        best = f"if(max({_LIVE}), max(if({_LIVE}, {_BEST}, null)), max({_BEST}))"
        known = located.groupBy(*self._key_columns).agg(
            functions.max(_LIVE).alias(_LIVE), functions.expr(best).alias(_BEST)
        )
        rows = rows.join(known, list(self._keys), "left")
        there = located.select(*self._within, GROUP).alias("l")
        same = [functions.expr(f"r.{name} <=> l.{name}") for name in self._within]
        joined = rows.alias("r").join(there, reduce(lambda left, right: left & right, same), "left")
        return joined.select("r.*", f"l.{GROUP}")

    def _shares(self, counted: Mapping[PartitionKey, int]) -> Mapping[PartitionKey, Sequence[GroupShare]]:
        """Assigns file groups to the given number of new rows in each partition, see `assign`."""
        if not counted:
            return {}
        files, sizing = self.target.opened.snapshot.files, self.target.layout.config.file_sizing
        limit = min(self.table_type.small_file_bytes, sizing.target_file_bytes)
        return assign(counted, files, limit, sizing.target_file_bytes)

    def _with_new_groups(self, rows: DataFrame, shares: Mapping[PartitionKey, Sequence[GroupShare]]) -> DataFrame:
        """Returns the rows, with a group for those that have none if their partition was assigned groups."""
        if not shares:
            return rows
        count, slots = slots_of(shares)
        if len(slots) == 1 and not self._partition_by:
            (_, _, group) = slots[0]
            return rows.withColumn(GROUP, functions.expr(f"coalesce({GROUP}, '{group}')"))
        listed = [([value or "" for value in key], slot, group) for key, slot, group in slots]
        schema = f"{_PART} array<string>, {_SLOT} int, __zl_new string"
        places = functions.broadcast(self.target.catalog.spark.createDataFrame(listed, schema))
        slot = functions.expr(f"cast(pmod(xxhash64({', '.join(self._key_columns)}), {count}) as int)")
        joined = rows.withColumn(_SLOT, slot).join(places, [_PART, _SLOT], "left")
        return joined.withColumn(GROUP, functions.expr(f"coalesce({GROUP}, __zl_new)"))

    @property
    def _part(self) -> str:
        """SQL for a row's partition values as texts."""
        texts = [f"coalesce(cast({backquoted(name)} as string), '')" for name in self._partition_by]
        return f"array({', '.join(texts)})" if texts else "cast(array() as array<string>)"

    def _left_behind(self, rows: DataFrame, located: DataFrame) -> DataFrame:
        """Returns deletes for the partitions that rows have moved away from."""
        same = " and ".join(f"l.{backquoted(name)} <=> r.{backquoted(name)}" for name in self._partition_by)
        key = [functions.expr(f"l.{name} = r.{name}") for name in self._key_columns]
        on = reduce(lambda left, right: left & right, [*key, functions.expr(f"not ({same})")])
        moved = located.where(_LIVE).alias("l").join(rows.alias("r"), on, "left_semi")
        return self._delete_records(moved.localCheckpoint(eager=False))

    def _delete_records(self, rows: DataFrame) -> DataFrame:
        """Returns delete records: key, partition and, if they come from a feed, the ordering value."""
        ordering = self.table_type.ordering
        kept = [
            *self._within,
            *([backquoted(ordering)] if ordering and backquoted(ordering) not in self._within else []),
        ]
        have = set(map(backquoted, rows.columns))
        return self._records(rows.select(*(name for name in kept if name in have), GROUP), DELETE)

    def _records(self, rows: DataFrame, op: str) -> DataFrame:
        """Returns log records: the table's columns, null if a row lacks one, with operation and file group."""
        by_name = {each.name: each for each in self._schema}
        further = (StructField(each, StringType()) for each in (OP, GROUP))
        return rows.withColumn(OP, functions.lit(op)).to(StructType([*map(by_name.__getitem__, self._names), *further]))

    @cached_property
    def _schema(self) -> Sequence[StructField]:
        return StructType.fromJson(json.loads(self.target.layout.schema_json)).fields

    def _key_conflict(self, sources: Sequence[IncomingRows]) -> KeyConflictCheck:
        def key_conflict(added: DataFiles) -> str | None:
            for each in sources:
                if self._with_key_of(each, self.target.rows_of(added)).limit(1).count():
                    return KEYS_TAKEN
            return None

        return key_conflict
