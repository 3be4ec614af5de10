"""Changes rows of a table: turns the keywords of `ZTable` into a request, and runs the plan for the table's type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.config.column_names import format_column_path, parse_column_list
from dbt.adapters.zlayout.config.incremental import MergeRules
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.spark.catalog.schema_evolution import OnSchemaChange
from dbt.adapters.zlayout.spark.catalog.session_catalog import Entry, TableRef, named
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit, CommitSummary
from dbt.adapters.zlayout.spark.merge_on_read.compaction import compact_inline
from dbt.adapters.zlayout.spark.merge_on_read.delta_commit import DeltaCommit, DeltaPlan
from dbt.adapters.zlayout.spark.merge_on_read.table_conversion import of_type
from dbt.adapters.zlayout.spark.read.session import newest_managed
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.write.change_plan import Rewrite
from dbt.adapters.zlayout.spark.write.incoming_rows import ChangeFeed
from dbt.adapters.zlayout.spark.write.modify import ChangePlanner, Modification, RowRewrite
from dbt.adapters.zlayout.timeline.files.action import Operation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def modification(
    table: TableRef,
    operation: Operation,
    frame: DataFrame | None,
    *,
    takes_deletes: bool,
    deleted_when: str | None = None,
    on_schema_change: OnSchemaChange | str = OnSchemaChange.FAIL,
    column_comments: Mapping[str, str] | None = None,
    not_null: Sequence[str] = (),
    **options: Any,
) -> Modification:
    """Returns the request that the keywords of a method of ``ZTable`` make.

    Args:
        takes_deletes: Whether rows of the frame can be deletes.
        **options: Further fields of the request.

    Raises:
        ConfigError: ``deleted_when`` is given, and rows cannot be deletes.
        UnsupportedError: The table was opened by its folder.
    """
    if deleted_when is not None and not takes_deletes:
        why = "only merge and upsert accept deletes; use one of them, or filter deleted rows out of df"
        raise ConfigError([f"deleted_when: {deleted_when!r} is given, and {why}"], str(table))
    return Modification(
        name=named(table, f"{operation.value.replace('_', ' ')} of rows"),
        operation=operation,
        frame=frame,
        on_schema_change=OnSchemaChange(on_schema_change),
        column_comments=dict(column_comments or {}),
        not_null=tuple(not_null),
        deleted_when=deleted_when,
        **options,
    )


def change_rows(
    spark: SparkSession, wanted: Modification, plan: ChangePlanner[Rewrite] | None, delta: DeltaPlan | None
) -> tuple[TableSnapshot, CommitSummary]:
    """Changes rows by the plan for the table's type. Converts the table first if ``wanted`` asks for the other type.

    Args:
        spark: The session.
        wanted: The request.
        plan: Plans the change of a copy-on-write table; None if there is no such change.
        delta: Plans the change of a merge-on-read table; None if there is no such change.

    Returns:
        The table at its new version, and what was done.

    Raises:
        ConfigError: The table's type does not have this change.
    """
    entry, opened = of_type(spark, wanted.name, wanted.settings, wanted.progress)
    if opened.merges_on_read:
        return _commit_delta(spark, wanted, delta, entry, opened)
    if plan is None:
        raise ConfigError(
            ["the table has the type copy_on_write, which stores no unique_key; use merge(df, unique_key)"],
            str(wanted.name),
        )
    return RowRewrite(spark, wanted, plan).run(entry, opened)


def _commit_delta(
    spark: SparkSession, wanted: Modification, delta: DeltaPlan | None, entry: Entry, opened: TableSnapshot
) -> tuple[TableSnapshot, CommitSummary]:
    if delta is None:
        why = "a merge_on_read table only takes rows by key; use upsert (in dbt incremental_strategy='merge')"
        raise ConfigError([f"{wanted.operation.value}: {why}, or replace the whole table"], str(wanted.name))
    opened, done = DeltaCommit(spark, wanted, delta).run(entry, opened)
    compacted = None
    after = AfterCommit(done.version, wanted.progress)
    with after.useful("compaction failed"):
        compacted = compact_inline(spark, wanted.name, opened, wanted.progress)
    if compacted is None:
        return opened, replace(done, unfinished=(*done.unfinished, *after.unfinished))
    after = AfterCommit(compacted.version, wanted.progress)
    with after.useful("this object sees the version before the compaction"):
        opened = newest_managed(spark, wanted.name)
    unfinished = (*done.unfinished, *compacted.unfinished, *after.unfinished)
    return opened, replace(done, compacted=compacted.to_dict(), unfinished=unfinished)


def change_feed(
    deleted_when: str | None, unique_key: Sequence[str] | str | None, stored_columns: Sequence[str], subject: str
) -> ChangeFeed | None:
    """Returns the change feed that ``ZTable.write`` is given; None if no row can be a delete.

    Raises:
        ConfigError: Deletes cannot be distinguished by these keys.
    """
    if deleted_when is None:
        return None
    problems: list[str] = []
    paths = parse_column_list("unique_key", unique_key, problems)
    keys = tuple(format_column_path(path) for path in paths)
    problems += MergeRules(keys, deleted_when=deleted_when).delete_problems()
    if problems:
        raise ConfigError(problems, subject)
    return ChangeFeed(deleted_when, tuple(path[0] for path in paths), tuple(stored_columns))
