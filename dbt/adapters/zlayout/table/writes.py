"""The write methods of ``ZTable``. Each one is one atomic commit."""

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
from dbt.adapters.zlayout.spark.merge_on_read.delta_commit import DeltaCommit, DeltaPlan
from dbt.adapters.zlayout.spark.merge_on_read.table_conversion import of_type
from dbt.adapters.zlayout.spark.read.session import open_managed
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.write import replacing_rows
from dbt.adapters.zlayout.spark.write.change_plan import Rewrite, Target
from dbt.adapters.zlayout.spark.write.merge import delete_insert, merge
from dbt.adapters.zlayout.spark.write.modification import Modification
from dbt.adapters.zlayout.spark.write.modify import Plan, RowRewrite
from dbt.adapters.zlayout.timeline.files.action import Operation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableWrites:
    """Methods that change rows.

    All of them take these keywords, except ``delete``, which only takes ``progress``:

    * ``on_schema_change``: 'fail' (default), 'ignore', 'append_new_columns' or 'sync_all_columns', as in dbt.
    * ``settings``: A `TableConfig` for files written from now on; None for the table's own settings.
    * ``description``: The new `Description` (comment and properties) of the table; None keeps the current one.
    * ``column_comments``: Comments by column, for columns that are added.
    * ``not_null``: Columns that must not contain null. Checked before the commit.
    * ``progress``: Receives a line every few seconds.

    All of them return what the commit did (``version``, ``rows_inserted``, ``rows_updated``, ``rows_deleted``,
    ``files_added``, ``files_removed``, ``bytes_written`` …). If nothing changes, they commit no version. They raise:

    * ConfigError: Columns or conditions do not fit the table. Nothing has run.
    * WriteError: The query failed, or its rows are not allowed. The table is unchanged.
    * ConflictError: Another writer committed a conflicting change first. Run it again.
    """

    name: str
    location: str
    last_commit: CommitSummary | None
    _spark: SparkSession
    _opened: TableSnapshot

    def append(self, df: DataFrame, **options: Any) -> CommitSummary:
        """Adds rows, laid out along the table's curve.

        Args:
            df: The rows. The query runs once.
            **options: See the class.
        """
        return self._modify(Operation.APPEND, df, lambda _, rows: replacing_rows.append(rows), **options)

    def overwrite(
        self, df: DataFrame, partitions: Sequence[Mapping[str, object]] | str | None = None, **options: Any
    ) -> CommitSummary:
        """Replaces whole partitions with rows.

        Args:
            df: The rows. The query runs once.
            partitions: None replaces the partitions that ``df`` has rows for; without partitions, the whole table.
                'all' replaces the whole table. A list such as ``[{'day': '2024-01-01'}]`` replaces exactly these
                partitions, and rows of other partitions are an error.
            **options: See the class.
        """
        return self._modify(
            Operation.INSERT_OVERWRITE,
            df,
            lambda target, rows: replacing_rows.overwrite(target, rows, partitions),
            **options,
        )

    def merge(  # noqa: PLR0913 - one keyword for each rule
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
        """Updates the rows whose keys are in the table, and inserts the others. Only files with matches are rewritten.

        Args:
            df: The incoming rows. The query runs once. No two rows may have the same key. A null in a key matches
                nothing.
            unique_key: The columns that identify a row.
            update_columns: Columns that a match updates; None for all.
            exclude_columns: Columns that a match does not update.
            predicates: Further conditions for a match, SQL over the two aliases.
            matched_condition: Which matches are updated, SQL over the two aliases.
            not_matched_condition: Which rows without a match are inserted, SQL over the source alias.
            skip_matched_step: Whether to update nothing.
            skip_not_matched_step: Whether to insert nothing.
            deleted_when: Which rows are deletes: SQL over their columns, such as ``op = 'D'``. Null means no. A delete
                removes the row with its key. A column that only this condition uses is not stored unless the table has
                it.
            source_alias: The name of the incoming rows in conditions.
            target_alias: The name of the table in conditions.
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
        """Deletes the table's rows that have a key of ``df``, then inserts all rows of ``df``.

        Args:
            df: The rows. The query runs once. Several rows may have the same key.
            unique_key: The key columns. A null in one matches nothing.
            predicates: Conditions on the rows to delete, SQL over the alias ``DBT_INTERNAL_DEST``.
            **options: See the class.
        """
        given: dict[str, Any] = {"unique_key": unique_key, "predicates": tuple(predicates)}
        plan, delta = partial(delete_insert, **given), partial(delta_plans.delete_insert, **given)
        return self._modify(Operation.MERGE, df, plan, delta=delta, **options)

    def replace_where(self, df: DataFrame, predicate_sql: str, **options: Any) -> CommitSummary:
        """Deletes the rows that meet a condition, then inserts the rows of ``df``.

        Args:
            df: The rows. The query runs once.
            predicate_sql: A condition, as in a WHERE clause.
            **options: See the class.
        """

        def plan(target: Target, rows: DataFrame) -> Rewrite:
            return replacing_rows.delete(target, predicate_sql, frame=rows)

        delta = partial(delta_plans.replace_where, condition=predicate_sql)
        return self._modify(Operation.MERGE, df, plan, delta=delta, **options)

    def delete(self, predicate_sql: str, *, progress: Callable[[str], None] | None = None) -> CommitSummary:
        """Deletes the rows that meet a condition. Files without such a row stay as they are.

        Args:
            predicate_sql: A condition, as in a WHERE clause.
            progress: Receives a line every few seconds.
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
        plan: Plan[Rewrite] | None,
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
            why = "only merge and upsert accept deletes; use one of them, or filter deleted rows out of df"
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
                ["the table has the type copy_on_write and no key of its own; use merge(df, unique_key)"],
                self.name,
            )
        else:
            self._opened, self.last_commit = RowRewrite(self._spark, wanted, plan).run(entry, opened)
        return self.last_commit

    def _delta_commit(
        self, wanted: Modification, delta: DeltaPlan | None, entry: Entry, opened: TableSnapshot
    ) -> tuple[TableSnapshot, CommitSummary]:
        if delta is None:
            why = "a merge_on_read table takes rows by their key; use upsert (in dbt incremental_strategy merge)"
            raise ConfigError([f"{wanted.operation.value}: {why}, or rewrite the table"], self.name)
        opened, done = DeltaCommit(self._spark, wanted, delta).run(entry, opened)
        compacted = compact_inline(self._spark, wanted.name, opened, wanted.progress)
        if compacted is None:
            return opened, done
        after = AfterCommit(compacted.version, wanted.progress)
        with after.useful("this object sees the version before the compaction"):
            opened = open_managed(self._spark, wanted.name)[1]
        unfinished = (*done.unfinished, *compacted.unfinished, *after.unfinished)
        return opened, replace(done, compacted=compacted.to_dict(), unfinished=unfinished)
