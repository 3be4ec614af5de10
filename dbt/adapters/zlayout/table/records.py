"""The merge-on-read methods of ``ZTable``: upserts by the table's own key, streams and compaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.config.scalars import parse_size
from dbt.adapters.zlayout.config.settings import COMPACTION_STRATEGY
from dbt.adapters.zlayout.errors import ConfigError, ConflictError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary
from dbt.adapters.zlayout.spark.jobs.jobs import handed_over
from dbt.adapters.zlayout.spark.merge_on_read import delta_plans
from dbt.adapters.zlayout.spark.merge_on_read.compaction import Compaction, CompactionSummary
from dbt.adapters.zlayout.spark.read.session import open_managed
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.table.writes import TableWrites
from dbt.adapters.zlayout.timeline.files.action import Operation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Source: org.apache.spark.sql.execution.streaming.StreamExecution.QUERY_ID_KEY.
_QUERY_ID = "sql.streaming.queryId"
_BATCH_TRIES = 4


class TableRecords(TableWrites):
    """Methods for tables of the type ``merge_on_read``."""

    name: str
    _spark: SparkSession
    _opened: TableSnapshot

    @property
    def merges_on_read(self) -> bool:
        """Whether changed rows go to logs, which readers merge."""
        return self._opened.merges_on_read

    def upsert(self, df: DataFrame, *, deleted_when: str | None = None, **options: Any) -> CommitSummary:
        """Updates the rows whose keys are in the table, and inserts the others.

        If several rows have the same key, in the table or in ``df``, the one with the greatest value in the ordering
        column is kept. If these values are equal, or there is no ordering column, the row that arrived last is kept.

        Args:
            df: The rows. The query runs once. Without an ordering column, no two rows may have the same key.
            deleted_when: Which rows are deletes: SQL over their columns, such as ``op = 'D'``. Null means no. With an
                ordering column, a delete also blocks older rows that arrive later. A column that only this condition
                uses is not stored unless the table has it.
            **options: See `TableWrites`.

        Returns:
            What was done: ``rows_inserted``, ``rows_updated``, ``rows_deleted``, ``groups_touched``, ``log_bytes`` …

        Raises:
            WriteError: A key is null, or rows share a key and nothing orders them. The table is unchanged.
            ConfigError: The table is not of the type ``merge_on_read``.
            ConflictError: Another writer committed rows with the same keys first. Run it again.
        """
        given: dict[str, Any] = {"delta": delta_plans.upsert, "takes_deletes": True, "deleted_when": deleted_when}
        return self._modify(Operation.MERGE, df, None, **given, **options)

    def upsert_batch(self, df: DataFrame, batch_id: int, *, deleted_when: str | None = None) -> None:
        """Writes one batch of a stream, exactly once: ``stream.writeStream.foreachBatch(table.upsert_batch)``.

        For a stream of changes with deletes: ``foreachBatch(partial(table.upsert_batch, deleted_when="op = 'D'"))``.

        The commit records the query and the batch. So a batch that is repeated, for example after a kill between the
        commit and the stream's checkpoint, changes nothing.

        Args:
            df: The batch.
            batch_id: The number of the batch in the stream.
            deleted_when: As for `upsert`.

        Raises:
            WriteError: As for `upsert`.
            ConflictError: As for `upsert`, several times in a row.
        """
        query_id = self._spark.sparkContext.getLocalProperty(_QUERY_ID) or ""
        for left in reversed(range(_BATCH_TRIES)):
            try:
                self.upsert(handed_over(df, self._spark), deleted_when=deleted_when, batch=(query_id, batch_id))
                return
            except ConflictError:  # noqa: PERF203 # each attempt is a whole query
                if not left:
                    raise

    def compact(
        self,
        schedule_only: bool = False,
        *,
        execute_only: bool = False,
        plan: str | None = None,
        strategy: str | None = None,
        max_bytes: int | str | None = None,
        where: Mapping[str, object] | None = None,
        logs_only: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> CompactionSummary:
        """Merges logs into base files. Writers and compaction do not block each other.

        Args:
            schedule_only: Whether to only write a plan to the timeline, for a later call to execute.
            execute_only: Whether to execute the pending plans, oldest first, and make no new one.
            plan: The instant of the only plan to execute.
            strategy: Which file groups come first: 'log_size', 'log_ratio', 'commits' or 'age'; None for the table's
                setting.
            max_bytes: The most bytes of the new plan, as a number or text such as '10gb'; None for the table's setting.
            where: Partition values by column. Only file groups of these partitions are compacted.
            logs_only: Whether to merge the logs of each file group into one log and keep its base file. It costs less.
            progress: Receives a line now and then.

        Returns:
            ``version``, ``plans``, ``groups``, ``groups_dropped``, ``files_added``, ``files_removed``, ``bytes_read``,
            ``bytes_written``, ``seconds``. This object then sees the new version.

        Raises:
            ConfigError: A setting is wrong, or no plan has the instant.
            UnsupportedError: The table is not of the type ``merge_on_read``.
            ConflictError: Another writer committed first. The plan stays pending.
            WriteError: Rows could not be read or written. The table is unchanged, and the plan stays pending.
        """
        problems: list[str] = []
        chosen = None if strategy is None else COMPACTION_STRATEGY.read_value(strategy, problems)
        size = None if max_bytes is None else parse_size("max_bytes", max_bytes, problems)
        if schedule_only and (execute_only or plan is not None):
            problems.append("schedule_only: execute_only and plan run existing plans; leave them out")
        if problems:
            raise ConfigError(problems, self.name)
        name = Catalog(self._spark).name(self.name)
        work = Compaction(self._spark, name, chosen, size, dict(where or {}), logs_only, progress)
        if schedule_only:
            return work.schedule()
        done = work.execute(plan) if execute_only or plan is not None else work.run()
        _, self._opened = open_managed(self._spark, name)
        return done
