"""Plans dbt's strategies for a merge-on-read table: which log records a change writes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions

from dbt.adapters.zlayout.config.incremental import MergeRules
from dbt.adapters.zlayout.config.table_type import TableTypeConfig
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.merge_on_read.partial_rows import rows_that_may_match, whole_rows
from dbt.adapters.zlayout.spark.merge_on_read.tagging import Records, Tagger
from dbt.adapters.zlayout.spark.read.record_tables import rows_of
from dbt.adapters.zlayout.spark.schema.table_schema import DELETED
from dbt.adapters.zlayout.spark.write.change_plan import Target
from dbt.adapters.zlayout.spark.write.incoming_keys import Source, known_keys
from dbt.adapters.zlayout.spark.write.incoming_rows import has_deleted_column, precombined, upserts_of
from dbt.adapters.zlayout.spark.write.strategies import updated_columns
from dbt.adapters.zlayout.spark.write.strict_evaluation import filtered

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_INSTEAD = "set table_type to copy_on_write for it"


def upsert(target: Target, frame: DataFrame) -> Records:
    """Plans an upsert: an incoming row replaces the row of its key, or is inserted."""
    return _tagger(target).upsert(whole_rows(target, frame))


def merge(target: Target, frame: DataFrame, rules: MergeRules) -> Records:
    """Plans a merge.

    Args:
        target: The table.
        frame: Incoming rows, in the table's future columns.
        rules: What to do with matched and unmatched rows. The key must be the table's, and predicates are not allowed.

    Raises:
        ConfigError: The rules do not fit the table.
        WriteError: Incoming rows share a key and there is no ordering column, or a key is null.
    """
    tagger = _tagger(target)
    columns = upserts_of(frame).columns
    _check_key(rules.unique_key, tagger.table_type, columns, target.subject)
    if rules.predicates:
        raise ConfigError(
            [f"predicates: a merge_on_read table has one row per key, whatever the predicates match; {_INSTEAD}"],
            target.subject,
        )
    names = updated_columns(rules, columns, target.subject)
    frame = whole_rows(target, frame)
    if names == columns and rules.unconditional:
        return tagger.upsert(frame)
    return tagger.upsert(_merged(target, precombined(frame, tagger.table_type), rules, names))


def delete_insert(
    target: Target, frame: DataFrame, unique_key: Sequence[str] | str, predicates: tuple[str, ...]
) -> Records:
    """Plans delete+insert, which is an upsert here: an incoming row replaces the row of its key.

    Raises:
        ConfigError: The key is not the table's, or predicates are given.
    """
    tagger = _tagger(target)
    _check_key(unique_key, tagger.table_type, frame.columns, target.subject)
    if predicates:
        raise ConfigError(
            [f"predicates: a row that they keep would have the same key as an incoming row; {_INSTEAD}"], target.subject
        )
    return tagger.upsert(frame)


def replace_where(target: Target, frame: DataFrame, condition: str) -> Records:
    """Plans to delete the rows that meet a condition, and to upsert the incoming rows."""
    tagger = _tagger(target)
    return tagger.upsert(frame, ordered=False, deletes=_matching(target, condition, tagger.table_type))


def delete(target: Target, condition: str) -> Records:
    """Plans to delete the rows that meet a condition."""
    tagger = _tagger(target)
    return tagger.delete(_matching(target, condition, tagger.table_type))


def _tagger(target: Target) -> Tagger:
    return Tagger(target, target.layout.config.table_type)


def _matching(target: Target, condition: str, table_type: TableTypeConfig) -> DataFrame:
    rows = filtered(rows_of(target.catalog, target.opened), condition, target.subject)
    return rows.select(*(backquoted(each) for each in table_type.unique_key))


def _check_key(
    unique_key: Sequence[str] | str, table_type: TableTypeConfig, columns: Sequence[str], subject: str
) -> None:
    given = known_keys(unique_key, columns, subject)
    if set(given) != set(table_type.unique_key):
        listed = ", ".join(table_type.unique_key)
        raise ConfigError([f"unique_key: {', '.join(given)} is not the key of the table, which is {listed}"], subject)


def _merged(target: Target, frame: DataFrame, rules: MergeRules, names: Sequence[str]) -> DataFrame:
    """Returns the rows that a merge writes: updated rows with all columns, new rows, and the deletes of a feed."""
    keys = target.layout.config.table_type.unique_key
    source = Source(frame, keys)
    there = rows_that_may_match(target, source).alias(rules.target_alias)
    rows = upserts_of(source.hinted)
    come = rows.alias(rules.source_alias)
    pairs = [f"{rules.target_alias}.{backquoted(key)} = {rules.source_alias}.{backquoted(key)}" for key in keys]
    on = functions.expr(" and ".join(pairs))
    new = {name.lower() for name in names}
    parts: list[DataFrame] = []
    if not rules.skip_matched_step:
        sides = {name: rules.source_alias if name.lower() in new else rules.target_alias for name in rows.columns}
        columns = [functions.expr(f"{alias}.{backquoted(name)}").alias(name) for name, alias in sides.items()]
        matched = there.join(come, on, "inner")
        parts.append((matched.where(rules.matched_condition) if rules.matched_condition else matched).select(*columns))
    if not rules.skip_not_matched_step:
        rest = come.join(there, on, "left_anti")
        parts.append(rest.where(rules.not_matched_condition) if rules.not_matched_condition else rest)
    if has_deleted_column(frame):
        parts = [each.withColumn(DELETED, functions.lit(False)) for each in parts]
        parts.append(_deletes(source, there, on, rules))
    if not parts:
        return frame.limit(0)
    return reduce(lambda left, right: left.unionByName(right), parts)


def _deletes(source: Source, there: DataFrame, on: Column, rules: MergeRules) -> DataFrame:
    """Returns the deletes of a feed, except those of rows that do not meet the condition for matched rows."""
    deletes = source.hinted.where(DELETED).alias(rules.source_alias)
    if rules.matched_condition is None:
        return deletes
    left_alone = functions.expr(f"not coalesce(({rules.matched_condition}), false)")
    return deletes.join(there, on & left_alone, "left_anti")
