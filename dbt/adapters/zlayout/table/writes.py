"""The writing half of ``ZTable``: rows come, change and go, each time in one atomic commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.config.merge_rules import SOURCE_ALIAS, TARGET_ALIAS, MergeRules
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.spark.catalog.schema_evolution import OnSchemaChange
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary
from dbt.adapters.zlayout.spark.merge_on_read import delta_plans
from dbt.adapters.zlayout.spark.merge_on_read.compaction import compact_inline
from dbt.adapters.zlayout.spark.merge_on_read.delta_commit import DeltaCommitting, DeltaPlan
from dbt.adapters.zlayout.spark.merge_on_read.table_conversion import of_type
from dbt.adapters.zlayout.spark.read.session import open_managed
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.write import replacing_rows
from dbt.adapters.zlayout.spark.write.change_plan import Rewrite, Target
from dbt.adapters.zlayout.spark.write.merge import delete_insert, merge
from dbt.adapters.zlayout.spark.write.modification import Modification
from dbt.adapters.zlayout.spark.write.modify import Modifying, Plan
from dbt.adapters.zlayout.timeline.files.action import Operation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableWrites:
    """Methods that change rows.

    All of them take these keywords, and ``delete`` only ``progress``:

    * ``on_schema_change``: 'fail' (default), 'ignore', 'append_new_columns' or 'sync_all_columns', as in dbt.
    * ``settings``: A `TableConfig` for files written from now on; None for the table's own.
    * ``description``: For people, from now on; None leaves it.
    * ``column_comments``: By column, for columns that are added.
    * ``not_null``: Columns that may hold no null; checked before the commit.
    * ``progress``: Gets a line every few seconds.

    All of them return what the commit did (``version``, ``rows_inserted``, ``rows_updated``, ``rows_deleted``,
    ``files_added``, ``files_removed``, ``bytes_written`` …), make no version where nothing changes, and raise:

    * ConfigError: Columns or conditions do not fit the table; nothing has run.
    * WriteError: The query failed, or its rows may not come in; the table is as it was.
    * ConflictError: Another writer committed meanwhile what this change cannot follow; run it again.
    """

    name: str
    location: str
    last_commit: CommitSummary | None
    _spark: SparkSession
    _opened: TableSnapshot

    def append(self, df: DataFrame, **options: Any) -> CommitSummary:
        """Adds rows; they lie on the table's curve.

        Args:
            df: The rows, whose query runs once.
            **options: See the class.
        """
        return self._modify(Operation.APPEND, df, lambda _, rows: replacing_rows.append(rows), **options)

    def overwrite(
        self, df: DataFrame, partitions: Sequence[Mapping[str, object]] | str | None = None, **options: Any
    ) -> CommitSummary:
        """Replaces whole partitions by rows.

        Args:
            df: The rows, whose query runs once.
            partitions: None replaces the partitions that the rows have, and everything in a table without partitions;
                'all' replaces everything; a list such as ``[{'day': '2024-01-01'}]`` exactly these, and rows of others
                are an error.
            **options: See the class.
        """
        return self._modify(
            Operation.INSERT_OVERWRITE,
            df,
            lambda target, rows: replacing_rows.overwrite(target, rows, partitions),
            **options,
        )

    def merge(  # noqa: PLR0913 - one keyword a rule
        self,
        df: DataFrame,
        unique_key: Sequence[str] | str,
        *,
        update_columns: Sequence[str] | None = None,
        exclude_columns: Sequence[str] = (),
        predicates: Sequence[str] = (),
        matched_condition: str | None = None,
        not_matched_condition: str | None = None,
        skip_matched_step: bool = False,
        skip_not_matched_step: bool = False,
        deleted_when: str | None = None,
        source_alias: str = SOURCE_ALIAS,
        target_alias: str = TARGET_ALIAS,
        **options: Any,
    ) -> CommitSummary:
        """Updates rows whose key comes and inserts the others; only files that hold a coming key are written anew.

        Args:
            df: The rows, whose query runs once; no two may have the same key. A null in a key equals nothing.
            unique_key: Columns that tell rows apart.
            update_columns: Columns that a match updates; None for all.
            exclude_columns: Columns that a match leaves alone.
            predicates: Further conditions of a match, SQL over the two aliases.
            matched_condition: Which matches are updated, SQL over the two aliases.
            not_matched_condition: Which rows without a match are inserted, SQL over the source's alias.
            skip_matched_step: Update nothing.
            skip_not_matched_step: Insert nothing.
            deleted_when: Which rows are deletes, SQL over their columns, such as ``op = 'D'``; null means no. A delete
                takes the row of its key away. A column that only this reads is not stored unless the table has it.
            source_alias: Name of the coming rows in conditions.
            target_alias: Name of the table in conditions.
            **options: See the class.
        """
        rules = MergeRules(
            unique_key=(unique_key,) if isinstance(unique_key, str) else tuple(unique_key),
            update_columns=None if update_columns is None else tuple(update_columns),
            exclude_columns=tuple(exclude_columns),
            predicates=tuple(predicates),
            matched_condition=matched_condition,
            not_matched_condition=not_matched_condition,
            skip_matched_step=skip_matched_step,
            skip_not_matched_step=skip_not_matched_step,
            deleted_when=deleted_when,
            source_alias=source_alias,
            target_alias=target_alias,
        )
        if problems := rules.delete_problems():
            raise ConfigError(problems, self.name)
        delta = partial(delta_plans.merge, rules=rules)
        plan = partial(merge, rules=rules)
        options["deleted_when"] = deleted_when
        return self._modify(Operation.MERGE, df, plan, delta=delta, takes_deletes=True, **options)

    def delete_insert(
        self, df: DataFrame, unique_key: Sequence[str] | str, *, predicates: Sequence[str] = (), **options: Any
    ) -> CommitSummary:
        """Deletes the rows whose key comes, then inserts all rows.

        Args:
            df: The rows, whose query runs once; several may have the same key.
            unique_key: Columns that tell rows apart; a null in one equals nothing.
            predicates: Conditions on the rows to delete, SQL over the alias ``DBT_INTERNAL_DEST``.
            **options: See the class.
        """
        given: dict[str, Any] = {"unique_key": unique_key, "predicates": tuple(predicates)}
        plan, delta = partial(delete_insert, **given), partial(delta_plans.delete_insert, **given)
        return self._modify(Operation.MERGE, df, plan, delta=delta, **options)

    def replace_where(self, df: DataFrame, predicate_sql: str, **options: Any) -> CommitSummary:
        """Deletes the rows that meet a condition, then inserts rows.

        Args:
            df: The rows, whose query runs once.
            predicate_sql: A condition, as in a WHERE clause.
            **options: See the class.
        """

        def plan(target: Target, rows: DataFrame) -> Rewrite:
            return replacing_rows.delete(target, predicate_sql, frame=rows)

        delta = partial(delta_plans.replace_where, condition=predicate_sql)
        return self._modify(Operation.MERGE, df, plan, delta=delta, **options)

    def delete(self, predicate_sql: str, *, progress: Callable[[str], None] | None = None) -> CommitSummary:
        """Deletes the rows that meet a condition; files without such a row stay as they are.

        Args:
            predicate_sql: A condition, as in a WHERE clause.
            progress: Gets a line every few seconds.
        """
        return self._modify(
            Operation.DELETE,
            None,
            lambda target, _: replacing_rows.delete(target, predicate_sql),
            delta=lambda target, _: delta_plans.delete(target, predicate_sql),
            progress=progress,
        )

    def _modify(
        self,
        operation: Operation,
        df: DataFrame | None,
        plan: Plan | None,
        *,
        delta: DeltaPlan | None = None,
        takes_deletes: bool = False,
        deleted_when: str | None = None,
        on_schema_change: OnSchemaChange | str = OnSchemaChange.FAIL,
        column_comments: Mapping[str, str] | None = None,
        not_null: Sequence[str] = (),
        **options: Any,
    ) -> CommitSummary:
        if deleted_when is not None and not takes_deletes:
            why = "only merge and upsert have a place for deletes; take one of them, or leave deleted rows out of df"
            raise ConfigError([f"deleted_when: {deleted_when!r} is given, and {why}"], self.name)
        wanted = Modification(
            name=Catalog(self._spark).name(self.name),
            operation=operation,
            frame=df,
            on_schema_change=OnSchemaChange(on_schema_change),
            column_comments=dict(column_comments or {}),
            not_null=tuple(not_null),
            deleted_when=deleted_when,
            **options,
        )
        entry, opened = of_type(self._spark, wanted.name, wanted.settings, wanted.progress)
        if opened.merges_on_read:
            self._opened, self.last_commit = self._delta_commit(wanted, delta, entry, opened)
        elif plan is None:
            raise ConfigError(
                ["the table is of the type copy_on_write and has no key of its own; use merge(df, unique_key)"],
                self.name,
            )
        else:
            self._opened, self.last_commit = Modifying(self._spark, wanted, plan).run(entry, opened)
        return self.last_commit

    def _delta_commit(
        self, wanted: Modification, delta: DeltaPlan | None, entry: Entry, opened: TableSnapshot
    ) -> tuple[TableSnapshot, CommitSummary]:
        if delta is None:
            why = "a merge_on_read table takes rows by their key; use upsert (in dbt incremental_strategy merge)"
            raise ConfigError([f"{wanted.operation.value}: {why}, or write the table anew"], self.name)
        opened, done = DeltaCommitting(self._spark, wanted, delta).run(entry, opened)
        compacted = compact_inline(self._spark, wanted.name, opened, wanted.progress)
        if compacted is None:
            return opened, done
        after = AfterCommit(compacted.version, wanted.progress)
        with after.useful("this object sees the version before the compaction"):
            opened = open_managed(self._spark, wanted.name)[1]
        unfinished = (*done.unfinished, *compacted.unfinished, *after.unfinished)
        return opened, replace(done, compacted=compacted.to_dict(), unfinished=unfinished)
