"""The incremental strategies of a copy-on-write table: which files are rewritten, and with which rows.

A condition decides for delete and replace-where, the partition for insert-overwrite, and the key for merge and
delete+insert.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions

from dbt.adapters.zlayout.config.column_names import spelled_as
from dbt.adapters.zlayout.config.incremental import MergeRules
from dbt.adapters.zlayout.curve.model import PartitionKey
from dbt.adapters.zlayout.errors import ConfigError, WriteError
from dbt.adapters.zlayout.index.statistics.partitions import one_spelling
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict
from dbt.adapters.zlayout.spark.catalog.schema_evolution import cast_to
from dbt.adapters.zlayout.spark.files.file_report import FileReport
from dbt.adapters.zlayout.spark.read.conditions import filtered, verdict_of_files
from dbt.adapters.zlayout.spark.schema.table_schema import DELETED, FILE
from dbt.adapters.zlayout.spark.schema.types import fields_of
from dbt.adapters.zlayout.spark.write.change_plan import KEYS_TAKEN, Rewrite, RowCounts, Target
from dbt.adapters.zlayout.spark.write.incoming_rows import (
    IncomingRows,
    has_deleted_column,
    known_keys,
    places_of,
    upserts_of,
)
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HIT = "__zl_hit"
_KEY = "__zl_key"
_COUNTED = "__zl_counted"
# A table of so few bytes is searched in one task: the groups then need no shuffle, and no second job.
_ONE_TASK_BYTES = 32 << 20


def append(frame: DataFrame) -> Rewrite:
    """Plans to add rows."""
    return Rewrite(frame, lambda _: (), lambda written, _: RowCounts(inserted=written))


def delete(target: Target, condition: str, *, frame: DataFrame | None = None) -> Rewrite:
    """Plans to delete rows, and to insert others in their place.

    If the index shows that every row of a file meets the condition, or none does, the file is not read.

    Args:
        condition: SQL, as in a WHERE clause. Rows for which it is not TRUE stay.
        frame: Incoming rows, in the table's future columns. None if there are none.

    Raises:
        ConfigError: The condition does not fit the table.
    """
    found = verdict_of_files(target.opened, filtered(target.rows(), condition, target.subject))
    whole = found == Verdict.ALL_ROWS
    hits = _hits(target, condition, found == Verdict.READ)
    touched = target.mask(hits)
    counted = target.opened.files["row_count"].to_numpy()
    partly = target.mask([number for number, rows in hits.items() if rows < counted[number]])
    rows = frame
    if partly.any():
        kept = cast_to(target.rows(partly).where(f"not coalesce(({condition}), false)"), target.layout.schema_json)
        rows = kept if frame is None else kept.unionByName(frame)
    gone, deleted = touched | whole, sum(hits.values()) + target.row_count(whole)
    stay = target.row_count(partly) - sum(rows for number, rows in hits.items() if partly[number])

    def key_conflict(added: DataFiles) -> str | None:
        meets = filtered(target.rows_of(added), condition, target.subject).limit(1).count()
        return f"it wrote rows that meet {condition}" if meets else None

    return Rewrite(
        rows=rows,
        removes=lambda _: target.paths(gone),
        counts=lambda written, _: RowCounts(inserted=written - stay, deleted=deleted),
        # A plain delete may count as done before the other commit. A delete that inserts rows may not.
        key_conflict=None if frame is None else key_conflict,
    )


def overwrite(target: Target, frame: DataFrame, partitions: Sequence[Mapping[str, object]] | str | None) -> Rewrite:
    """Plans to replace whole partitions.

    Args:
        frame: Incoming rows, in the table's future columns.
        partitions: None for the partitions of these rows (the whole table if it has no partitions), 'all' for the
            whole table, or a list of exactly the partitions to replace.

    Raises:
        ConfigError: A partition does not name exactly the table's partition columns.
    """
    columns = target.layout.partition_by
    whole = partitions == "all" or (partitions is None and not columns)
    types = {each.name.lower(): each.spark_type for each in fields_of(target.opened.schema_json)}
    kinds = [types[name.lower()] for name in columns]

    def key_of(values: Iterable[str | None]) -> PartitionKey:
        return tuple(one_spelling(value, kind) for value, kind in zip(values, kinds, strict=True))

    listed = None if whole or partitions is None else set(map(key_of, _keys(partitions, columns, target.subject)))
    replaced: set[PartitionKey] = set(listed or ())

    def removes(written: Sequence[FileReport]) -> tuple[str, ...]:
        came = {key_of(value for _, value in each.file.partition) for each in written}
        if listed is not None and (outside := sorted(came - listed, key=repr)):
            shown = ", ".join(f"{name}={value}" for name, value in zip(columns, outside[0], strict=True))
            raise WriteError(
                f"{target.subject}: the query has rows of partition {shown}, which is not among those to replace; "
                "filter the query, or list that partition too. The table is unchanged"
            )
        replaced.update(came)
        goes = np.array([whole or key_of(key) in replaced for key in target.opened.partition_keys], dtype=np.bool_)
        return target.paths(goes[target.opened.partition_of_file])

    def key_conflict(added: DataFiles) -> str | None:
        theirs = {key_of(value for _, value in each.partition) for each in added}
        return "it wrote rows of a partition that this overwrite replaces" if whole or theirs & replaced else None

    return Rewrite(frame, removes, lambda written, before: RowCounts(inserted=written, deleted=before), key_conflict)


def _hits(target: Target, condition: str, files: np.ndarray) -> dict[int, int]:
    """Returns how many rows of each file meet the condition, by the file's number. Files without any are left out."""
    if not files.any():
        return {}
    matching = _in_few_tasks(target, target.rows_with_file(None if files.all() else files).where(condition))
    found = matching.groupBy(FILE).agg(functions.count("*").alias("rows")).collect()
    return {target.file_number(row[FILE]): row["rows"] for row in found}


def _in_few_tasks(target: Target, rows: DataFrame) -> DataFrame:
    return rows.coalesce(1) if target.opened.files.total_bytes <= _ONE_TASK_BYTES else rows


def _keys(partitions: object, columns: tuple[str, ...], subject: str) -> set[PartitionKey]:
    if isinstance(partitions, str) or not isinstance(partitions, Sequence):
        raise ConfigError(
            [f"partitions: {partitions!r} is not allowed; give None, 'all' or [{{'day': '2024-01-01'}}, …]"],
            subject,
        )
    found: set[PartitionKey] = set()
    for each in partitions:
        named = {str(key).lower(): value for key, value in each.items()} if isinstance(each, Mapping) else {}
        if set(named) != {name.lower() for name in columns}:
            raise ConfigError(
                [f"partitions: {each!r} must name exactly the partition columns ({', '.join(columns) or 'none'})"],
                subject,
            )
        found.add(tuple(None if named[name.lower()] is None else str(named[name.lower()]) for name in columns))
    return found


def merge(target: Target, frame: DataFrame, rules: MergeRules) -> Rewrite:
    """Plans a merge.

    Args:
        frame: Incoming rows, in the table's future columns.
        rules: What to do with matched and unmatched rows.

    Raises:
        ConfigError: The rules name a column that the table does not have.
        WriteError: Incoming rows share a key.
    """
    names = upserts_of(frame).columns
    keys = known_keys(rules.unique_key, names, target.subject)
    source = IncomingRows(frame, keys)
    source.check_unique(target.subject)
    updated_names = updated_columns(rules, names, target.subject)
    if rules.unconditional and updated_names == names and not has_deleted_column(frame):
        matched = _rows_per_file(target, source)
        if matched is not None:
            updates = sum(matched.values())
            return _replacement(target, source, matched, RowCounts(source.rows - updates, updated=updates))
    matching = _Matching(target, source, rules)
    found = matching.files()
    rewritten = [number for number, each in found.items() if each.updated or each.deleted]
    parts: list[DataFrame] = []
    gone = target.mask(rewritten)
    if rewritten:
        parts.append(matching.updated_rows(cast_to(target.rows(gone), target.layout.schema_json), updated_names))
    if not rules.skip_not_matched_step:
        parts.append(matching.new_rows(target.rows(target.mask(found)) if found else None))
    updates, deletes = (sum(getattr(each, name) for each in found.values()) for name in ("updated", "deleted"))
    return Rewrite(
        rows=_union(parts),
        removes=lambda _: target.paths(gone),
        counts=lambda written, before: RowCounts(written - before + deletes, updates, deletes),
        key_conflict=matching.key_conflict,
    )


def delete_insert(
    target: Target, frame: DataFrame, unique_key: Sequence[str] | str, predicates: tuple[str, ...]
) -> Rewrite:
    """Plans to delete every row whose key is among the incoming rows, and to insert all incoming rows.

    Args:
        frame: Incoming rows, in the table's future columns. Several may share a key.
        unique_key: Columns whose equality makes rows match. A null equals nothing.
        predicates: SQL over the table, with or without its alias. Rows that do not meet them stay.

    Raises:
        ConfigError: A key column is not in the table.
    """
    keys = known_keys(unique_key, frame.columns, target.subject)
    source = IncomingRows(frame, keys)
    rows = None if predicates else _rows_per_file(target, source)
    if rows is not None:
        return _replacement(target, source, rows, RowCounts(source.rows, deleted=sum(rows.values())))
    matching = _Matching(target, source, MergeRules(keys, predicates=predicates), one_row_a_key=False)
    matched = matching.files()
    gone = target.mask(matched)
    kept = matching.unmatched_rows(target.rows(gone), target.layout.schema_json) if matched else None
    deleted = sum(each.matched for each in matched.values())
    return Rewrite(
        rows=_union([source.frame] if kept is None else [kept, source.frame]),
        removes=lambda _: target.paths(gone),
        counts=lambda *_: RowCounts(inserted=source.rows, deleted=deleted),
        key_conflict=matching.key_conflict,
    )


def _rows_per_file(target: Target, source: IncomingRows) -> Mapping[int, int] | None:
    """Returns how many rows of each file have an incoming key, by the file's number; files without any are left out.

    No join is needed, because the few incoming keys are constants of the query. None if a join is needed: there are
    many keys, or they have no exact constants, or several rows of the table share a key.
    """
    if source.exact_condition is None:
        return None
    matching = _in_few_tasks(target, target.rows_with_file().where(source.exact_condition))
    counted = functions.expr(f"struct(count(*), min({FILE})) {_COUNTED}")
    by_key = matching.groupBy(*map(backquoted, source.keys)).agg(counted)
    # The keys stay behind: Python has no dates after the year 9999.
    found = [row[0] for row in by_key.select(_COUNTED).collect()]
    if any(rows > 1 for rows, _ in found):
        return None
    return Counter(target.file_number(file) for _, file in found)


def _replacement(target: Target, source: IncomingRows, matched: Mapping[int, int], counts: RowCounts) -> Rewrite:
    """Plans to replace the rows that have incoming keys with all incoming rows."""
    condition = source.exact_condition
    gone = target.mask(matched)
    parts = [source.frame]
    if matched:
        kept = target.rows(gone).where(f"not coalesce({condition}, false)")
        parts.insert(0, cast_to(kept, target.layout.schema_json))

    def key_conflict(added: DataFiles) -> str | None:
        return KEYS_TAKEN if target.rows_of(added).where(str(condition)).limit(1).count() else None

    return Rewrite(
        rows=_union(parts),
        removes=lambda _: target.paths(gone),
        counts=lambda *_: counts,
        key_conflict=key_conflict,
    )


@dataclass(frozen=True)
class _Matches:
    """How many rows of a file match, and how many of those will be updated or deleted."""

    matched: int
    updated: int
    deleted: int


class _Matching:
    """The match between the table's rows and the incoming rows."""

    def __init__(self, target: Target, source: IncomingRows, rules: MergeRules, *, one_row_a_key: bool = True) -> None:
        self._target, self._source, self._rules = target, source, rules
        self._source_alias, self._target_alias = rules.source_alias, rules.target_alias
        self._join = "inner" if one_row_a_key else "left_semi"
        self._side, names = source.hinted, [backquoted(key) for key in source.keys]
        if not one_row_a_key:
            # Only the keys, renamed, so that a bare name in a predicate means the table's column, as in a DELETE.
            names = [f"{_KEY}{number}" for number in range(len(source.keys))]
            named = zip(source.keys, names, strict=True)
            self._side = source.hinted.select(*(functions.col(backquoted(key)).alias(name) for key, name in named))
        pairs = zip(source.keys, names, strict=True)
        equal = [f"{self._target_alias}.{backquoted(key)} = {self._source_alias}.{name}" for key, name in pairs]
        self._on = functions.expr(" and ".join([*equal, *(f"({each})" for each in rules.predicates)]))

    def files(self) -> dict[int, _Matches]:
        """Returns the match counts of each file that holds a matching row, by the file's number."""
        places = places_of(self._source, self._target) if len(self._source.keys) > 1 else None
        # The filters hand the values of each key column to the file index. Several columns are selective only together.
        matches = self._matches(self._target.rows_with_file(None if places is None else places.candidates))
        wanted = "false" if self._rules.skip_matched_step else self._rules.matched_condition or "true"
        counts = [f"count_if(({wanted}) and not {self._deleted})", f"count_if(({wanted}) and {self._deleted})"]
        acted_on = map(functions.expr, counts if self._join == "inner" else ("0", "0"))
        found = matches.groupBy(FILE).agg(functions.count("*"), *acted_on).collect()
        return {self._target.file_number(file): _Matches(*counted) for file, *counted in found}

    @property
    def _deleted(self) -> str:
        """SQL that is TRUE for an incoming row that is a delete."""
        return f"{self._source_alias}.{DELETED}" if has_deleted_column(self._source.frame) else "false"

    def updated_rows(self, rows: DataFrame, updated_names: Sequence[str]) -> DataFrame:
        """Returns the rows of rewritten files that stay. Matching rows get new values, the others are unchanged."""
        source = self._source.hinted.withColumn(_HIT, functions.lit(True))
        both = rows.alias(self._target_alias).join(source.alias(self._source_alias), self._on, "left")
        hit = f"{self._source_alias}.{_HIT} and ({self._rules.matched_condition or 'true'})"
        columns = []
        for name in rows.columns:
            now, then = (f"{alias}.{backquoted(name)}" for alias in (self._source_alias, self._target_alias))
            value = f"case when {hit} then {now} else {then} end" if name in updated_names else then
            columns.append(functions.expr(value).alias(name))
        if has_deleted_column(self._source.frame):
            both = both.where(f"not coalesce({hit} and {self._deleted}, false)")
        return both.select(*columns)

    def new_rows(self, matched: DataFrame | None) -> DataFrame:
        """Returns the incoming rows that match nothing and meet the condition for inserts, if there is one."""
        rows = upserts_of(self._source.frame).alias(self._source_alias)
        if matched is not None:
            others = self._source.may_match(matched)
            rows = rows.join(others.alias(self._target_alias), self._on, "left_anti")
        condition = self._rules.not_matched_condition
        return rows.where(condition) if condition else rows

    def unmatched_rows(self, rows: DataFrame, schema_json: str) -> DataFrame:
        """Returns the rows of rewritten files that match nothing, in the future columns."""
        left = rows.alias(self._target_alias).join(self._side.alias(self._source_alias), self._on, "left_anti")
        return cast_to(left, schema_json)

    def key_conflict(self, added: DataFiles) -> str | None:
        """Returns the reason for a conflict if files that another commit added hold a key of the incoming rows."""
        found = self._matches(self._target.rows_of(added)).limit(1).count()
        return KEYS_TAKEN if found else None

    def _matches(self, rows: DataFrame) -> DataFrame:
        candidates = self._source.may_match(rows).alias(self._target_alias)
        return candidates.join(self._side.alias(self._source_alias), self._on, self._join)


def updated_columns(rules: MergeRules, names: Sequence[str], subject: str) -> list[str]:
    """Returns the columns that a match updates, spelled as in the table.

    Raises:
        ConfigError: The rules name a column that the table does not have, or list both updated and excluded columns.
    """
    if rules.update_columns is not None and rules.exclude_columns:
        raise ConfigError(["merge_update_columns and merge_exclude_columns: set one of them, not both"], subject)
    found: dict[str, list[str]] = {}
    for key, listed in (
        ("merge_update_columns", rules.update_columns or ()),
        ("merge_exclude_columns", rules.exclude_columns),
    ):
        spelled = dict(zip(listed, spelled_as(names, listed), strict=True))
        missing = [name for name, column in spelled.items() if column is None]
        if missing:
            raise ConfigError(
                [f"{key}: {', '.join(map(repr, missing))} is not a column of the table; it has {', '.join(names)}"],
                subject,
            )
        found[key] = [column for column in spelled.values() if column is not None]
    if rules.update_columns is not None:
        return found["merge_update_columns"]
    return [name for name in names if name not in found["merge_exclude_columns"]]


def _union(parts: Sequence[DataFrame]) -> DataFrame | None:
    return reduce(lambda rows, more: rows.unionByName(more), parts) if parts else None
