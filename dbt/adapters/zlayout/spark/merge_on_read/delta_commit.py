"""Delta commits: which log records a change of rows writes, and the commit.

One commit writes changed rows as log files and many new rows as base files. It rewrites no file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions

from dbt.adapters.zlayout.config.incremental import MergeRules
from dbt.adapters.zlayout.config.table_type import OP, TableTypeConfig
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.errors import ConfigError, UnsupportedError, WriteError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.schema_evolution import cast_to
from dbt.adapters.zlayout.spark.jobs.jobs import failing_as_write_error, timed
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.merge_on_read.tagging import Records, Tagger
from dbt.adapters.zlayout.spark.read.conditions import filtered
from dbt.adapters.zlayout.spark.read.record_tables import queried, record_view, rows_of
from dbt.adapters.zlayout.spark.rewrite.arrow_rows import Written
from dbt.adapters.zlayout.spark.rewrite.build import written_files
from dbt.adapters.zlayout.spark.rewrite.file_writer import FileWriter, check_not_null, needs_spark, plain_frame
from dbt.adapters.zlayout.spark.rewrite.log_writer import log_build
from dbt.adapters.zlayout.spark.schema.table_schema import DELETED, GROUP
from dbt.adapters.zlayout.spark.write.change_plan import Target
from dbt.adapters.zlayout.spark.write.incoming_rows import (
    LATEST_DELETE,
    VALUES_AT,
    IncomingRows,
    has_deleted_column,
    known_keys,
    null_counts,
    precombined,
    upserts_of,
    with_origins,
)
from dbt.adapters.zlayout.spark.write.modify import ChangePlanner, Outcome, RowChange
from dbt.adapters.zlayout.spark.write.strategies import updated_columns
from dbt.adapters.zlayout.timeline.files.action import Action
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROWS_OF_ONE_TASK = 200_000
_THERE = "__zl_there"
_INSTEAD = "set table_type to copy_on_write for it"

DeltaPlan = ChangePlanner[Records]


def _rows_that_may_match(target: Target, source: IncomingRows) -> DataFrame:
    """Returns the table's rows whose key may be among the source's, in the table's future columns."""
    files = source.may_match(target.rows())
    return cast_to(queried(files, record_view(target.opened).merged), target.layout.schema_json)


def _whole_rows(target: Target, frame: DataFrame) -> DataFrame:
    """Returns incoming rows with their nulls filled from the table, if the table takes partial rows.

    A value from a row whose ordering value is below the table's replaces nothing, and only fills a null of the table's
    row. A row that fills none and replaces nothing is left out. Deletes stay as they are, and nothing from before a
    delete comes back.

    Args:
        frame: Incoming rows, in the table's future columns.
    """
    table_type = target.layout.config.table_type
    if not table_type.keeps_old_values:
        return frame
    source = IncomingRows(with_origins(frame, table_type), table_type.unique_key)
    there = _rows_that_may_match(target, source).withColumn(_THERE, functions.lit(True))
    keys = [backquoted(key) for key in table_type.unique_key]
    same = reduce(lambda left, right: left & right, (functions.expr(f"r.{key} = t.{key}") for key in keys))
    joined = source.hinted.alias("r").join(there.alias("t"), same, "left")
    alone, newer = f"{_THERE} is null", "true"
    values = {name: newer for name in map(backquoted, frame.columns) if name not in {*keys, backquoted(DELETED)}}
    if table_type.ordering is not None:
        name = backquoted(table_type.ordering)
        newer = f"(t.{name} is null or coalesce(r.{name} >= t.{name}, false))"
        origins = {each: f"r.{VALUES_AT}.c{number}" for number, each in enumerate(map(backquoted, frame.columns))}
        origins[name] = f"r.{name}"
        values = {each: f"(t.{name} is null or coalesce({origins[each]} >= t.{name}, false))" for each in values}
        if has_deleted_column(frame):
            deleted_since = f"t.{name} is null or coalesce(r.{LATEST_DELETE}.at >= t.{name}, false)"
            alone += f" or r.{LATEST_DELETE} is not null and ({deleted_since})"
    if has_deleted_column(frame):
        alone += f" or r.{DELETED}"
    fills = " or ".join(f"t.{each} is null and r.{each} is not null" for each in values) or "false"
    filled = {
        each: f"case when {alone} then r.{each} when {is_current} then coalesce(r.{each}, t.{each})"
        f" else coalesce(t.{each}, r.{each}) end as {each}"
        for each, is_current in values.items()
    }
    rows = joined.where(f"{alone} or {newer} or {fills}")
    return rows.selectExpr(*(filled.get(each, f"r.{each}") for each in map(backquoted, frame.columns)))


def upsert(target: Target, frame: DataFrame) -> Records:
    """Plans an upsert: an incoming row replaces the row of its key, or is inserted."""
    return _tagger(target).upsert(_whole_rows(target, frame))


def merge(target: Target, frame: DataFrame, rules: MergeRules) -> Records:
    """Plans a merge.

    Args:
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
            [f"predicates: a merge_on_read table has one row per key, regardless of any predicate; {_INSTEAD}"],
            target.subject,
        )
    names = updated_columns(rules, columns, target.subject)
    frame = _whole_rows(target, frame)
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
    table_type = target.layout.config.table_type
    keys, ordering = table_type.unique_key, table_type.ordering
    source = IncomingRows(frame, keys)
    there = _rows_that_may_match(target, source).alias(rules.target_alias)
    rows = upserts_of(source.hinted)
    come = rows.alias(rules.source_alias)
    pairs = [f"{rules.target_alias}.{backquoted(key)} = {rules.source_alias}.{backquoted(key)}" for key in keys]
    on = functions.expr(" and ".join(pairs))
    parts: list[DataFrame] = []
    if not rules.skip_matched_step:
        sides = {name: rules.source_alias if name in names else rules.target_alias for name in rows.columns}
        columns = [functions.expr(f"{alias}.{backquoted(name)}").alias(name) for name, alias in sides.items()]
        matched = there.join(come, on, "inner")
        if ordering is not None and ordering not in names:
            # The row keeps the table's value, so late rows have to be found here.
            then, now = (f"{alias}.{backquoted(ordering)}" for alias in (rules.target_alias, rules.source_alias))
            matched = matched.where(f"{then} is null or coalesce({now} >= {then}, false)")
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


def _deletes(source: IncomingRows, there: DataFrame, on: Column, rules: MergeRules) -> DataFrame:
    """Returns the deletes of a feed, except those of rows that do not meet the condition for matched rows."""
    deletes = source.hinted.where(DELETED).alias(rules.source_alias)
    if rules.matched_condition is None:
        return deletes
    left_alone = functions.expr(f"not coalesce(({rules.matched_condition}), false)")
    return deletes.join(there, on & left_alone, "left_anti")


class DeltaCommit(RowChange[Records]):
    """One change of rows of a merge-on-read table."""

    merges_on_read = True

    def _action(self) -> Action:
        return Action.DELTACOMMIT

    def _outcome(self, target: Target, rows: DataFrame | None, transaction: Transaction) -> Outcome:
        layout = target.layout
        if needs_spark(layout):
            raise UnsupportedError(
                f"{self.subject}: logs are written with Arrow, which does not support the type of a column; set "
                "table_type to copy_on_write"
            )
        if rows is not None and self.wanted.not_null:
            rows = self._checked(rows)
        with timed(self.phases, "plan"):
            records = self.plan(target, rows)
        along = (
            layout.stored_model(target.opened.store, target.opened.snapshot) if records.new_rows is not None else None
        )
        written = Written((), None, 0, {})
        if records.total or records.new_rows is not None:
            written = self._written(target, records, along, transaction)
        return Outcome(written, (), lambda *_: records.counts, records.key_conflict, keeps_curve=along is not None)

    def _checked(self, rows: DataFrame) -> DataFrame:
        rows = rows.localCheckpoint(eager=True)
        check_not_null(self.subject, null_counts(upserts_of(rows), self.wanted.not_null))
        return rows

    def _written(self, target: Target, records: Records, along: CurveModel | None, transaction: Transaction) -> Written:
        logs = self._logs(target, records, transaction) if records.total else Written((), None, 1, {})
        if records.new_rows is None:
            return logs
        writer = FileWriter(self.spark, self.subject, target.layout, progress=self.wanted.progress)
        bases = writer.write(target.opened.store, transaction, records.new_rows, along=along)
        phases = {
            name: logs.phases.get(name, 0.0) + bases.phases.get(name, 0.0) for name in {**logs.phases, **bases.phases}
        }
        return Written((*logs.files, *bases.files), bases.model, bases.data_passes, phases)

    def _logs(self, target: Target, records: Records, transaction: Transaction) -> Written:
        layout = target.layout
        build = log_build(self.spark, self.subject, layout, target.opened.store, transaction)
        count = records.total
        plain = plain_frame(layout, records.frame, OP, GROUP)
        phases: dict[str, float] = {}
        use_driver_python(self.spark)
        with failing_as_write_error(self.subject), timed(phases, "write"):
            tasks = 1 if count <= _ROWS_OF_ONE_TASK else int(self.spark.sparkContext.defaultParallelism)
            spread = plain.coalesce(1) if tasks == 1 else plain.repartition(tasks, plain.columns[-1])
            files = written_files(self.spark, "write", self.wanted.progress, spread, build.__call__)
        if (written := sum(each.file.row_count for each in files)) != count:
            raise WriteError(
                f"{self.subject}: {count:,} records were read and {written:,} written; nothing was committed"
            )
        return Written(files, None, 1, phases)
