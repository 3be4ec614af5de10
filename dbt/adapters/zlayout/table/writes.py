"""Changes the rows of a table, of either type, in one commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Entry
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary
from dbt.adapters.zlayout.spark.merge_on_read.compaction import compact_inline
from dbt.adapters.zlayout.spark.merge_on_read.delta_commit import DeltaCommit, DeltaPlan
from dbt.adapters.zlayout.spark.merge_on_read.table_conversion import of_type
from dbt.adapters.zlayout.spark.read.session import open_managed
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.write.change_plan import Rewrite
from dbt.adapters.zlayout.spark.write.modify import Modification, Plan, RowRewrite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def change_rows(
    spark: SparkSession, wanted: Modification, plan: Plan[Rewrite] | None, delta: DeltaPlan | None
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
        return _delta_commit(spark, wanted, delta, entry, opened)
    if plan is None:
        raise ConfigError(
            ["the table has the type copy_on_write and no key of its own; use merge(df, unique_key)"],
            str(wanted.name),
        )
    return RowRewrite(spark, wanted, plan).run(entry, opened)


def _delta_commit(
    spark: SparkSession, wanted: Modification, delta: DeltaPlan | None, entry: Entry, opened: TableSnapshot
) -> tuple[TableSnapshot, CommitSummary]:
    if delta is None:
        why = "a merge_on_read table takes rows by their key; use upsert (in dbt incremental_strategy merge)"
        raise ConfigError([f"{wanted.operation.value}: {why}, or rewrite the table"], str(wanted.name))
    opened, done = DeltaCommit(spark, wanted, delta).run(entry, opened)
    compacted = compact_inline(spark, wanted.name, opened, wanted.progress)
    if compacted is None:
        return opened, done
    after = AfterCommit(compacted.version, wanted.progress)
    with after.useful("this object sees the version before the compaction"):
        opened = open_managed(spark, wanted.name)[1]
    unfinished = (*done.unfinished, *compacted.unfinished, *after.unfinished)
    return opened, replace(done, compacted=compacted.to_dict(), unfinished=unfinished)
