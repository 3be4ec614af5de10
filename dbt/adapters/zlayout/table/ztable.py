"""``ZTable``: the Python interface of a table, to write it, inspect it and explain which files a query reads."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from dbt.adapters.zlayout.advice.advice import MIN_GAIN, Advice
from dbt.adapters.zlayout.config.incremental import SOURCE_ALIAS, TARGET_ALIAS, MergeRules
from dbt.adapters.zlayout.config.known_keys import unknown_settings
from dbt.adapters.zlayout.config.settings import Scope, keys_of
from dbt.adapters.zlayout.config.table_config import parse_table_config
from dbt.adapters.zlayout.config.table_type import TABLE_TYPE_KEYS
from dbt.adapters.zlayout.config.workload import WeightedCondition, parse_workload
from dbt.adapters.zlayout.errors import ConfigError, VersionNotFoundError
from dbt.adapters.zlayout.layout.table_verdict import TableFigures, TableVerdict, verdict_of
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TablePath, TableRef, named
from dbt.adapters.zlayout.spark.cluster.clustering import ClusterSummary
from dbt.adapters.zlayout.spark.commit.after_commit import CommitSummary
from dbt.adapters.zlayout.spark.commit.catalog_entries import register_table
from dbt.adapters.zlayout.spark.commit.publish import Description, publish_in
from dbt.adapters.zlayout.spark.history.changes import all_as_inserts, changed_rows, net_changes
from dbt.adapters.zlayout.spark.history.time_travel import Moment, TimeTravelSpec, opened_at, roll_back
from dbt.adapters.zlayout.spark.index.adopt import adopt_table
from dbt.adapters.zlayout.spark.index.optional_indexes import ColumnSets, IndexBuilt, build_index, drop_index
from dbt.adapters.zlayout.spark.index.refresh import Refreshed, refresh_table
from dbt.adapters.zlayout.spark.index.verify import stale_files, verify_index
from dbt.adapters.zlayout.spark.jobs.jobs import in_session
from dbt.adapters.zlayout.spark.jvm.callbacks import ensure_skipping
from dbt.adapters.zlayout.spark.merge_on_read import delta_commit
from dbt.adapters.zlayout.spark.merge_on_read.compaction import CompactionSummary
from dbt.adapters.zlayout.spark.merge_on_read.delta_commit import DeltaPlan
from dbt.adapters.zlayout.spark.read.conditions import count_rows, filtered
from dbt.adapters.zlayout.spark.read.explain import explain_scans
from dbt.adapters.zlayout.spark.read.record_tables import rows_of
from dbt.adapters.zlayout.spark.read.session import newest_managed, open_named
from dbt.adapters.zlayout.spark.schema.types import columns_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.write import strategies
from dbt.adapters.zlayout.spark.write.change_plan import Rewrite, Target
from dbt.adapters.zlayout.spark.write.modify import ChangePlanner
from dbt.adapters.zlayout.spark.write.replace import Replacement, replace_table
from dbt.adapters.zlayout.table.advice import advice_for_table, names_of, with_chosen_keys
from dbt.adapters.zlayout.table.explanation import (
    ConditionReads,
    Explanation,
    explain,
    explanation_of,
    reads_of_conditions,
)
from dbt.adapters.zlayout.table.layout_report import TableReport, layout_report
from dbt.adapters.zlayout.table.maintenance import clean_table, cluster, compact, other_folders
from dbt.adapters.zlayout.table.measures import (
    ClusteringInformation,
    clustering_information,
    commit_history,
    information,
    live_files,
    measure_keys,
    rows_changed_at,
)
from dbt.adapters.zlayout.table.row_changes import change_feed, change_rows, modification
from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.log.positions import Position
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.retention.cleaning import CleanResult
from dbt.adapters.zlayout.timeline.transactions.last_row_change import last_origin, row_change_after
from dbt.adapters.zlayout.timeline.transactions.transaction import retried

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Source: org.apache.spark.sql.execution.streaming.StreamExecution.QUERY_ID_KEY.
_QUERY_ID = "sql.streaming.queryId"
_BATCH_TRIES = 4
_SETTINGS = (*keys_of(Scope.TABLE, Scope.MERGE_ON_READ), "unique_key")

Workload: TypeAlias = "Sequence[str | tuple[str, float] | WeightedCondition] | str"
"""Conditions, as in a WHERE clause, or pairs of a condition and its weight. One text is one condition."""


class ZTable:
    """A table with an index of its files. This package writes it, or other tools write it and this package indexes it.

    Attributes:
        name: ``schema.table``; the folder if the table was opened with `for_path`.
        location: The absolute URI of the table's folder.
        last_commit: What the last write through this object did; None if it only opened the table.

    Methods that change rows take these keywords, except ``delete``, which only takes ``progress``:

    * ``on_schema_change``: 'fail' (default), 'ignore', 'append_new_columns' or 'sync_all_columns', as in dbt.
    * ``settings``: A `TableConfig` for files written from now on; None for the table's own settings.
    * ``description``: The new `Description` (comment and properties) of the table; None keeps the current one.
    * ``column_comments``: Comments by column, for columns that are added.
    * ``not_null``: Columns that must not contain null. Checked before the commit.
    * ``progress``: Receives a line every few seconds.
    * ``made_from``: What the rows were made from, as JSON values. The version keeps it.
    * ``commit_empty``: Whether to commit a version even if nothing changes. False by default.
    * ``changes_taken``: The `ChangesTaken` of other tables. The version stores the positions in them.

    All of them return what the commit did (``version``, ``rows_inserted``, ``rows_updated``, ``rows_deleted``,
    ``files_added``, ``files_removed``, ``bytes_written`` …). If nothing changes, they commit no version. They raise:

    * ConfigError: Columns or conditions do not fit the table. Nothing has run.
    * WriteError: The query failed, or its rows are not allowed. The table is unchanged.
    * ConflictError: Another writer committed a conflicting change first. Run it again.
    """

    def __init__(
        self, spark: SparkSession, table: TableRef, opened: TableSnapshot, done: CommitSummary | None = None
    ) -> None:
        self._spark = spark
        self._table = table
        self._opened = opened
        self.name = str(table)
        self.location = opened.location
        self.last_commit = done
        # Starts the callback server before a stream does. PySpark would start one that anybody can call.
        ensure_skipping(spark)

    @classmethod
    def for_name(cls, spark: SparkSession, name: str) -> ZTable:
        """Opens a table at its newest version.

        Args:
            spark: The session whose catalog knows the table.
            name: ``schema.table``, with backquotes where needed.

        Raises:
            TableNotFoundError: The table does not exist, or it has no index.
        """
        found = Catalog(spark).name(name)
        return cls(spark, found, open_named(spark, found)[1])

    @classmethod
    def for_path(cls, spark: SparkSession, path: str | os.PathLike[str]) -> ZTable:
        """Opens a managed table at its newest version by its folder. It needs no catalog entry, and changes none.

        Reads skip files. Methods that change rows, columns or partition columns need a catalog entry: see `register`.

        Args:
            spark: The session.
            path: The folder: a local path, taken literally, or a URI, whose percent escapes are decoded.

        Raises:
            TableNotFoundError: The folder holds no table. The message says what is there.
            UnsupportedError: The table is only indexed, or no table can be in such a place.
        """
        folder = Catalog(spark).folder(path)
        return cls(spark, folder, newest_managed(spark, folder))

    @classmethod
    def register(cls, spark: SparkSession, name: str, path: str | os.PathLike[str]) -> ZTable:
        """Creates the catalog entry of the table in a folder, if the entry was lost or the folder was moved or copied.

        It also adopts an entry that ``CREATE TABLE … LOCATION`` made of the folder, and rewrites Spark's manifest,
        which holds absolute paths. A copy of a table of this catalog becomes a table with an id of its own. A
        second call changes nothing. After a crash, run it again.

        Args:
            spark: The session whose catalog gets the entry.
            name: ``schema.table``; the schema must exist.
            path: The folder, as for `for_path`.

        Raises:
            TableNotFoundError: The folder holds no table, or there is no such schema. The message says what is there.
            UnsupportedError: The name belongs to something else, or the table has another name in this catalog.
            ConfigError: The catalog does not accept the name.
            CommittedError: The entry is there, but readers may not see the newest version. Run it again.
        """
        found = Catalog(spark).name(name)
        return cls(spark, found, register_table(spark, found, Catalog(spark).folder(path)))

    @classmethod
    def write(  # noqa: PLR0913 - one keyword for each setting
        cls,
        spark: SparkSession,
        name: str,
        dataframe: DataFrame,
        *,
        zorder: Sequence[str] | str = (),
        workload: Workload | None = None,
        curve: str = "zorder",
        partition_by: Sequence[str] | str = (),
        target_file_size: str | int = "128mb",
        row_group_rows: int | None = None,
        stats_columns: int | Sequence[str] = 32,
        bloom: Sequence[str] | str | None = None,
        lookup: ColumnSets | None = None,
        stats_expressions: Sequence[str] | str | None = None,
        retain_versions: int = 3,
        retain_hours: float = 24,
        location_root: str | None = None,
        writer: str = "arrow",
        compression: str = "zstd",
        publish: Sequence[str] | str | None = None,
        publish_catalog: str | None = None,
        table_type: str = "copy_on_write",
        unique_key: Sequence[str] | str | None = None,
        ordering: str | None = None,
        comment: str | None = None,
        column_comments: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        not_null: Sequence[str] = (),
        deleted_when: str | None = None,
        stored_columns: Sequence[str] = (),
        progress: Callable[[str], None] | None = None,
        **merging: Any,
    ) -> ZTable:
        """Creates a table from a query, or replaces the whole table, in one atomic commit. The query runs once.

        Args:
            spark: The session of the query.
            name: ``schema.table``; the schema must exist.
            dataframe: The query.
            zorder: The clustering keys, most important first. ``a.b`` is a struct field; backquotes quote a dot in a
                name. ``'auto'`` lets the workload choose: see `advise`.
            workload: Conditions that queries put on the table, or pairs of a condition and its weight.
            curve: 'zorder', 'hilbert' or 'linear'.
            partition_by: The partition columns. Each value gets a folder.
            target_file_size: The size of a file, such as '128mb', or a number of bytes.
            row_group_rows: The rows of a row group; None lets the layout choose.
            stats_columns: The columns with statistics, or a number for the first ones.
            bloom: The columns with Bloom filters. ``[]`` for none; None keeps the table's.
            lookup: The columns or expressions with lookup indexes; a nested list is one index over several columns.
                ``[]`` for none; None keeps the table's.
            stats_expressions: SQL expressions with statistics of their own. ``[]`` for none; None keeps the table's.
            retain_versions: The minimum number of versions that stay readable.
            retain_hours: The minimum number of hours for which a replaced version stays readable.
            location_root: The table's folder is ``<location_root>/<table>``. The default is the schema's own folder.
            writer: 'arrow', or 'spark' if Python workers cannot reach the storage.
            compression: The Parquet codec.
            publish: Formats for other engines: 'delta', 'iceberg' or both. ``[]`` for none; None keeps the table's.
            publish_catalog: The catalog of pyiceberg in which the Iceberg table is registered, or '' for none. None
                keeps that of the table.
            table_type: 'copy_on_write', or 'merge_on_read', which writes changed rows as logs beside the files.
            unique_key: The record key of a merge_on_read table: the columns that identify a row.
            ordering: The column that decides between rows with the same key: the greatest value is kept.
            comment: The comment of the table.
            column_comments: Comments by column.
            properties: Table properties for the catalog.
            not_null: Columns that must not contain null. Checked before the commit.
            deleted_when: Which rows are deletes: SQL over their columns, such as ``op = 'D'``. Deletes are not written.
                Needs a ``unique_key``; without ``ordering``, no two rows may have the same key. A column that only this
                condition uses, and that no setting names, is not stored.
            stored_columns: Columns that are stored even if only ``deleted_when`` uses them.
            progress: Receives a line every few seconds.
            **merging: For a merge_on_read table: ``payload``, ``update_partition_path``, ``small_file_limit``,
                ``log_max_size``, ``bucket_buffer_size``, ``buffer_size``, ``compaction``, ``compact_every``,
                ``compact_after_hours``, ``compaction_min_log_ratio``, ``compaction_max_logs``,
                ``compaction_max_deleted_share``, ``compaction_strategy``,
                ``compaction_max_bytes``, ``retain_deletes_hours``, as in a model's config.

        Returns:
            The table at its new version. ``last_commit`` says what was done.

        Raises:
            ConfigError: A setting is wrong. The message names every wrong one. Nothing has run.
            WriteError: The query failed, or a column of ``not_null`` contains nulls. The table is unchanged.
            ConflictError: Another writer committed first. The table is as that writer left it.
            UnsupportedError: No table can be written there: the name belongs to something else, or the place cannot
                hold a table.
        """
        settings = {**_settings_among(locals()), **merging}
        found = Catalog(spark).name(name)
        if problems := unknown_settings(merging, TABLE_TYPE_KEYS):
            raise ConfigError(problems, str(found))
        given = parse_table_config(settings, subject=str(found))
        feed = change_feed(deleted_when, unique_key, stored_columns, str(found))
        with with_chosen_keys(spark, found, dataframe, given, progress) as (rows, config):
            wanted = Replacement(
                name=found,
                frame=rows,
                config=config,
                description=Description(comment, dict(properties or {})),
                column_comments=dict(column_comments or {}),
                not_null=tuple(not_null),
                feed=feed,
                progress=progress,
            )
            opened, done = replace_table(spark, wanted)
        return cls(spark, found, opened, done)

    @classmethod
    def adopt(  # noqa: PLR0913 - one keyword for each setting
        cls,
        spark: SparkSession,
        name: str,
        *,
        zorder: Sequence[str] | str = (),
        managed: bool = False,
        stats_columns: int | Sequence[str] = 32,
        bloom: Sequence[str] | str | None = None,
        lookup: ColumnSets | None = None,
        curve: str = "zorder",
        target_file_size: str | int = "128mb",
        row_group_rows: int | None = None,
        compression: str = "zstd",
    ) -> ZTable:
        """Indexes an existing Parquet table from its footers, without rewriting it.

        Args:
            spark: The session whose catalog knows the table.
            name: ``schema.table``.
            zorder: The clustering keys for future writes. They always get statistics.
            managed: Whether this package manages the table. From then on, only files that it commits are read.
                Otherwise other tools keep writing the table, and files that the index does not know are read.
            stats_columns: The columns with statistics, or a number for the first ones.
            bloom: The columns with Bloom filters, which are made from the data of the files.
            lookup: The columns with lookup indexes, which are made in the same way.
            curve: As for `write`. Like the settings below, it applies to future writes.
            target_file_size: As for `write`.
            row_group_rows: As for `write`.
            compression: As for `write`.

        Raises:
            TableNotFoundError: The table does not exist.
            UnsupportedError: It is a view, it is not a Parquet table, or it is already managed.
            ConfigError: A column does not exist, or it cannot be a key.
        """
        settings = _settings_among(locals())
        found = Catalog(spark).name(name)
        config = parse_table_config(settings, subject=str(found))
        opened, done = adopt_table(spark, found, config, managed=managed)
        return cls(spark, found, opened, done)

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which a scan log has the table: its own, and that of the files of a merge-on-read table."""
        return (self.name,) if isinstance(self._table, TablePath) else names_of(self._table)

    @property
    def version(self) -> int:
        """The table version that this object sees. Open the table again to see a newer one."""
        return self._opened.version

    @property
    def is_managed(self) -> bool:
        """Whether this package writes the table. A table that is only indexed has no older versions."""
        return self._opened.managed

    @property
    def merges_on_read(self) -> bool:
        """Whether changed rows go to logs, which readers merge."""
        return self._opened.merges_on_read

    def snapshot(self, *, version: int | None = None) -> Snapshot:
        """Returns the state of this version, or another one: ``version``, ``instant``, ``files`` and their layout.

        Raises:
            VersionNotFoundError: The version does not exist, or its files were cleaned.
        """
        return (self._opened if version is None else self._at(version)).snapshot

    def files(
        self, *, version: int | None = None, instant: str | None = None, timestamp: Moment | None = None
    ) -> pa.Table:
        """Returns the files that hold the rows of a version, for tools that read Parquet files.

        For a merge-on-read table, these are the base files, which do not show what is in logs: `compact` it first.
        Values of partition columns are in folder names only. Files of older versions lack columns that were added
        since.

        Args:
            version: As for `read`, like the other arguments.
            instant: As for `read`.
            timestamp: As for `read`.

        Returns:
            ``path`` string (a local path, or a URI that is not escaped), ``size_bytes`` and ``row_count`` int64, and
            ``partition``, a struct of strings by column, if the table is partitioned.
        """
        return live_files(self._at(version, instant, timestamp))

    def explain(self, predicate_sql: str) -> Explanation:
        """Explains which files ``select * … where <predicate>`` reads, and why.

        Args:
            predicate_sql: A condition, as in a WHERE clause.
        """
        return explain(self._spark, self._table, self._opened, predicate_sql)

    def advise(
        self,
        predicates: Workload | None = None,
        *,
        workload: Workload | None = None,
        min_gain: float = MIN_GAIN,
        progress: Callable[[str], None] | None = None,
    ) -> Advice:
        """Advises keys, partition columns and indexes for the conditions that queries put on the table.

        It reads a sample of the columns that the conditions name, and the index. It writes nothing.

        Args:
            predicates: Conditions, as in a WHERE clause, or pairs of a condition and its weight: how often queries have
                it in relation to the others.
            workload: The same as ``predicates``; give one of them.
            min_gain: A change is advised if it saves at least this share of the rows that queries open now, for every
                seed: with rows and constants that the search has not seen.
            progress: Receives a line now and then.

        Returns:
            ``zorder``, ``partition_by``, ``lookup``, ``bloom``, ``opened_now`` and ``opened_then`` (shares of rows),
            ``predicates`` with both shares for each condition, ``rewrite_bytes``, ``payback_queries``, ``why`` …

        Raises:
            ConfigError: A condition does not fit the table, a weight is not above 0, or the table has no rows.
        """
        if (predicates is None) == (workload is None):
            raise ConfigError(["predicates: give either predicates or workload"], self.name)
        given = parse_workload(predicates if workload is None else workload, self.name)
        return advice_for_table(self._spark, self._opened, given, self.name, min_gain, progress=progress)

    def reads(self, predicates: Sequence[str]) -> list[ConditionReads | None]:
        """Returns what conditions read, by the index alone; faster than `explain` for many of them.

        Args:
            predicates: Conditions, as in a WHERE clause.

        Returns:
            For each condition ``opened`` (the share of rows in the files that it reads), ``files_read``,
            ``bytes_read`` …, and ``parts``, which say what each part does by itself; None for a condition that does
            not fit the table's columns.
        """
        return reads_of_conditions(self._spark, self._opened, predicates)

    def count(self, predicate_sql: str = "true") -> int:
        """Returns the number of rows that meet a condition. Files that match as a whole, or not at all, are not opened.

        Spark counts the current files of a table that other tools write.

        Args:
            predicate_sql: A condition, as in a WHERE clause.

        Raises:
            ConfigError: The condition does not fit the table.
        """
        if self._opened.managed:
            return count_rows(Catalog(self._spark), self._opened, predicate_sql, self.name)
        name = named(self._table, "counting the rows of a table that other tools write")
        return filtered(self._spark.table(name.sql), predicate_sql, self.name).count()

    def information(self) -> dict[str, Any]:
        """Returns the state of the table as a dictionary: location, version, size, layout and pending work."""
        return information(self._table, self._opened)

    def clustering_information(
        self, columns: Sequence[str] | str | None = None, *, predicate: str | None = None
    ) -> ClusteringInformation:
        """Measures the layout of the files from the index alone: overlaps, depths, and what conditions would read.

        Args:
            columns: The columns to measure, such as ``['a', 'b.c']``. The default is the clustering keys, or all
                columns with statistics if the table has no keys.
            predicate: A condition. The result says what it reads.

        Raises:
            ConfigError: A column does not exist, or it has no statistics.
        """
        return clustering_information(self._spark, self._table, self._opened, columns, predicate)

    def verdict(self) -> TableVerdict:
        """Returns how good the table is: a level, one sentence, and its problems, each with what solves it."""
        return verdict_of(TableFigures.of_information(self.information()), measure_keys(self._opened, self.name))

    def layout_report(self, conditions: Sequence[WeightedCondition] = (), *, most_files: int = 1000) -> TableReport:
        """Returns what a layout report says about the table.

        Without conditions, it reads only the log, the index and the folder.

        Args:
            conditions: The report says which files each of them reads. At most 40 are used; the page that
                `zlayout_report` writes shows at most 30.
            most_files: The most files in the layout map, which shows a sample of a larger table. The page that
                `zlayout_report` writes shows up to 1,500.
        """
        return layout_report(self._spark, self._table, self._opened, conditions, most_files)

    def history(self, limit: int | None = None) -> pa.Table:
        """Returns the versions, newest first.

        Args:
            limit: The most versions to return; None for all.

        Returns:
            ``version`` int64, ``instant`` string, ``action`` string, ``operation`` string; int64 ``rows`` (written),
            ``rows_inserted``, ``rows_updated``, ``rows_deleted``, ``files_added``, ``files_removed``, ``bytes_added``;
            ``committed_at`` timestamp in UTC.
        """
        return commit_history(self._opened.timeline.history(limit))

    def rows_changed_at(self) -> datetime:
        """Returns when the table's rows last changed, in UTC. Clustering, compaction and indexing do not change rows.

        For a table that other tools write, it is the time of its newest file. The same holds for a managed table that
        nobody has written since its adoption.

        Raises:
            TableNotFoundError: The table is only indexed, and has no files.
            CorruptError: An entry of the log is damaged.
        """
        return rows_changed_at(self._opened, self.name)

    def made_from(self) -> tuple[int, Mapping[str, Any]] | None:
        """Returns the version that a model wrote last, and what it made the rows from.

        Returns:
            The number of the version and what its write passed as ``made_from``. None if there is no such version, or
            something else has changed rows or columns since.
        """
        timeline = self._opened.timeline
        found = last_origin(timeline.headers())
        if found is None:
            return None
        version = found[0].version
        # Another order of the columns is another layout.
        then, now = (dict(columns_of(each.schema_json)) for each in (timeline.read(version), self._opened.snapshot))
        return (version, found[1]) if then == now else None

    def version_at(
        self, *, version: int | None = None, instant: str | None = None, timestamp: Moment | None = None
    ) -> int:
        """Returns the number of the version that ``read`` reads for the same arguments.

        Raises:
            VersionNotFoundError: The version does not exist, or its files were cleaned. The message says which can be
                read.
            ConfigError: More than one argument is given, or the timestamp cannot be parsed.
            UnsupportedError: The table is only indexed.
        """
        return self._at(version, instant, timestamp).version

    def read(
        self, *, version: int | None = None, instant: str | None = None, timestamp: Moment | None = None
    ) -> DataFrame:
        """Returns the rows of a version, with the columns of that version. Filters skip files as in plain SQL.

        Queries on the table's name still read the newest version.

        Args:
            version: The number of the version. Without any argument, the version that this object sees.
            instant: The instant of the version's commit, 17 digits.
            timestamp: Reads the newest version committed at or before this time: a datetime, a date, or text as in
                Spark SQL. A time without a zone is in the session's time zone.

        Raises:
            VersionNotFoundError: The version does not exist, or its files were cleaned. The message says which can be
                read.
            ConfigError: More than one argument is given, or the timestamp cannot be parsed.
            UnsupportedError: The table is only indexed.
        """
        return rows_of(Catalog(self._spark), self._at(version, instant, timestamp))

    def changes(self, from_version: int, to_version: int | None = None) -> DataFrame:
        """Returns the rows that changed between two versions, commit by commit.

        Only files that a commit removed or added are read. A row that a commit copied unchanged to another file is not
        a change. An updated row is a 'delete' and an 'insert'. Clustering and compaction change no rows.

        Args:
            from_version: The version before the first change.
            to_version: The version of the last change; None for the newest.

        Returns:
            The columns of ``to_version`` (null where the row's version lacks the column), ``_change_type`` string
            ('insert' or 'delete') and ``_commit_version`` bigint.

        Raises:
            VersionNotFoundError: A version does not exist, or files that it needs were cleaned.
            ConfigError: The versions are in the wrong order, or a column of the table has one of the two names.
            UnsupportedError: A column changed its type, or has a type that cannot be compared (variant).
        """
        last = self._opened.timeline.latest_version() if to_version is None else to_version
        return changed_rows(Catalog(self._spark), self._opened, self.name, from_version, last or 0)

    @property
    def position(self) -> Position:
        """The version that this object sees, as a position for those who take the changes of the table."""
        return Position(self._opened.table_id, self.version, self.snapshot().instant)

    def rows_changed_after(self, version: int) -> bool:
        """Returns whether a later version has other rows than a version. Clustering and compaction change none."""
        return row_change_after(self._opened.timeline.headers(), version) is not None

    def check_position(self, position: Position) -> None:
        """Checks that a position is a version of this table.

        Raises:
            VersionNotFoundError: It is not one: the table was rebuilt, or an older state of its folder was restored.
        """
        mine = self._opened.timeline
        if position.table != self._opened.table_id:
            raise VersionNotFoundError(f"{self.name} is another table than the one whose changes were taken")
        if position.version > self.version or mine.read(position.version).instant != position.instant:
            raise VersionNotFoundError(f"v{position.version} of {self.name} is not the version that was read")

    def net_changes(
        self, from_version: int | None, to_version: int | None = None, *, unique_key: Sequence[str] | str | None = None
    ) -> DataFrame:
        """Returns the rows in which two versions differ, whatever the versions between them did.

        Only files that are in one of the two versions are read. A row that was inserted and deleted again is no change,
        and neither is one that was only moved or rewritten with the same values.

        Args:
            from_version: The earlier version; None for the table before it had rows.
            to_version: The later version; None for the newest.
            unique_key: The columns that identify a row, as a list if there are several. None for the key of a
                merge-on-read table. Without columns an updated row is a 'delete' and an 'insert'.

        Returns:
            The columns of ``to_version`` and ``_zl_change`` string: 'insert', 'update' (with the new values) or
            'delete' (with the old ones).

        Raises:
            VersionNotFoundError: A version does not exist, or files that it needs were cleaned.
            ConfigError: The versions are in the wrong order, a column of the key does not exist, or the table has a
                column ``_zl_change``.
            UnsupportedError: A column changed its type, or has a type that cannot be compared (variant).
        """
        catalog, opened = Catalog(self._spark), self._opened
        keys = (unique_key,) if isinstance(unique_key, str) else tuple(unique_key or ())
        last = opened.timeline.latest_version() if to_version is None else to_version
        if from_version is None:
            return all_as_inserts(catalog, self._at(last), self.name, keys)
        keys = config_of(opened.snapshot).table_type.unique_key if unique_key is None else keys
        return net_changes(catalog, opened, self.name, from_version, last or 0, keys)

    def rollback(
        self, version: int | None = None, *, instant: str | None = None, timestamp: Moment | None = None
    ) -> CommitSummary:
        """Commits a new version that equals an older one: rows, columns, partitions, layout, curve and index.

        No history is lost: the retention of the versions in between does not change, and a rollback can return to
        them.

        Args:
            version: The number of the older version.
            instant: Or its instant.
            timestamp: Or a time, as for ``read``.

        Returns:
            What was done. This object then sees the new version.

        Raises:
            VersionNotFoundError: The version does not exist, or some of its files are gone. The message says which
                versions can be restored.
            ConflictError: Another writer committed first. Run it again.
            ConfigError: Not exactly one of the three arguments is given.
            UnsupportedError: The table is only indexed.
        """
        spec = TimeTravelSpec(version, instant, timestamp)
        return self._committed(roll_back(Catalog(self._spark), self._table, self._opened, spec))

    def clean(
        self, dry_run: bool = False, *, retain_versions: int | None = None, retain_hours: float | None = None
    ) -> CleanResult:
        """Deletes the files that no retained version, running reader or pending transaction needs.

        It also deletes orphans: data files in the folder that no version lists, if this package wrote them and they are
        older than ``retain_hours``. Files of other tools stay, and ``index_status`` names them.

        Args:
            dry_run: Whether to only report. Nothing is deleted or written.
            retain_versions: How many of the newest versions to keep; None for the table's own setting.
            retain_hours: Versions that were the newest within this many hours are kept; None for the table's own
                setting. A query that takes longer may lose its files.

        Returns:
            ``files`` (the number of files), ``bytes``, ``paths``, ``oldest_version`` and ``failed`` (the error for each
            file that could not be deleted).

        Raises:
            ConfigError: A retention setting is not a valid number.
            UnsupportedError: The table is only indexed.
        """
        return clean_table(self._table, self._opened, dry_run, retain_versions, retain_hours)

    def publish(
        self, formats: Sequence[str] | str | None = None, *, publish_catalog: str | None = None
    ) -> Mapping[str, int | None]:
        """Publishes the table for other engines, and keeps doing so after every commit.

        Args:
            formats: ``['delta', 'iceberg']``, or one of them. A format that is not listed is switched off, and what it
                published is deleted. None keeps the formats, and only publishes versions that are missing.
            publish_catalog: The catalog of pyiceberg in which the Iceberg table is registered as ``schema.table``;
                '' removes its entry. None leaves it as it is.

        Returns:
            The version that readers of each format see.

        Raises:
            ConfigError: There is no such format or catalog, or a column has no type there. Nothing has changed.
            ConflictError: Another writer committed first. Run it again.
            CommittedError: Readers of a format or catalog do not see the newest version. The message says why.
            UnsupportedError: The table is only indexed.
        """
        self._opened, seen = publish_in(Catalog(self._spark), self._table, formats, publish_catalog)
        return seen

    def append(self, df: DataFrame, **options: Any) -> CommitSummary:
        """Adds rows, laid out along the table's curve.

        Args:
            df: The rows. The query runs once.
            **options: See the class.
        """
        return self._modify(Operation.APPEND, df, lambda _, rows: strategies.append(rows), **options)

    def overwrite(
        self, df: DataFrame, partitions: Sequence[Mapping[str, object]] | str | None = None, **options: Any
    ) -> CommitSummary:
        """Replaces whole partitions with rows.

        Args:
            df: The rows. The query runs once.
            partitions: None replaces the partitions that ``df`` has rows for; without partitions, the whole table.
                'all' replaces the whole table. A list such as ``[{'day': '2024-01-01'}]`` replaces exactly these
                partitions, and rows of other partitions raise an error.
            **options: See the class.
        """
        return self._modify(
            Operation.INSERT_OVERWRITE,
            df,
            lambda target, rows: strategies.overwrite(target, rows, partitions),
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
        delta = partial(delta_commit.merge, rules=rules)
        plan = partial(strategies.merge, rules=rules)
        options["deleted_when"] = deleted_when
        return self._modify(Operation.MERGE, df, plan, delta=delta, takes_deletes=True, **options)

    def delete_insert(
        self, df: DataFrame, unique_key: Sequence[str] | str, *, predicates: Sequence[str] = (), **options: Any
    ) -> CommitSummary:
        """Deletes the table's rows that have a key of ``df``, then inserts all rows of ``df``.

        A merge-on-read table has one row for a key, so it takes the rows as `upsert` does: the same keys, one row for
        each key unless the table has an ordering column, and no row that is older than the table's.

        Args:
            df: The rows. The query runs once. Several rows of a copy-on-write table may have the same key.
            unique_key: The key columns. A null in one matches nothing.
            predicates: Conditions on the rows to delete, SQL over the alias ``DBT_INTERNAL_DEST``.
            **options: See the class.
        """
        given: dict[str, Any] = {"unique_key": unique_key, "predicates": tuple(predicates)}
        plan, delta = partial(strategies.delete_insert, **given), partial(delta_commit.delete_insert, **given)
        return self._modify(Operation.MERGE, df, plan, delta=delta, **options)

    def replace_where(self, df: DataFrame, predicate_sql: str, **options: Any) -> CommitSummary:
        """Deletes the rows that meet a condition, then inserts the rows of ``df``.

        Args:
            df: The rows. The query runs once.
            predicate_sql: A condition, as in a WHERE clause.
            **options: See the class.
        """

        def plan(target: Target, rows: DataFrame) -> Rewrite:
            return strategies.delete(target, predicate_sql, frame=rows)

        delta = partial(delta_commit.replace_where, condition=predicate_sql)
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
            lambda target, _: strategies.delete(target, predicate_sql),
            delta=lambda target, _: delta_commit.delete(target, predicate_sql),
            progress=progress,
        )

    def upsert(self, df: DataFrame, *, deleted_when: str | None = None, **options: Any) -> CommitSummary:
        """Updates the rows whose keys are in the table, and inserts the others.

        If several rows have the same key, in the table or in ``df``, the one with the greatest value in the ordering
        column is kept. If these values are equal, the row that arrived last is kept. Without an ordering column, a row
        of ``df`` replaces the row of the table.

        Args:
            df: The rows. The query runs once. Without an ordering column, no two rows may have the same key.
            deleted_when: Which rows are deletes: SQL over their columns, such as ``op = 'D'``. Null means no. With an
                ordering column, a delete also blocks older rows that arrive later. A column that only this condition
                uses is not stored unless the table has it.
            **options: See the class.

        Returns:
            What was done: ``rows_inserted``, ``rows_updated``, ``rows_deleted``, ``groups_touched``, ``log_bytes`` …

        Raises:
            WriteError: A key is null, or rows share a key and nothing orders them. The table is unchanged.
            ConfigError: The table is not of the type ``merge_on_read``.
            ConflictError: Another writer committed rows with the same keys first. Run it again.
        """
        given: dict[str, Any] = {"delta": delta_commit.upsert, "takes_deletes": True, "deleted_when": deleted_when}
        return self._modify(Operation.MERGE, df, None, **given, **options)

    def upsert_batch(self, df: DataFrame, batch_id: int, *, deleted_when: str | None = None) -> None:
        """Writes one batch of a stream, exactly once: ``stream.writeStream.foreachBatch(table.upsert_batch)``.

        For a stream of changes with deletes: ``foreachBatch(partial(table.upsert_batch, deleted_when="op = 'D'"))``.

        The commit records the query and the batch. So a batch that is repeated, for example after a kill between the
        commit and the stream's checkpoint, changes nothing. Outside a stream there is no query to record: all such
        calls for a table share one sequence of batch numbers.

        Args:
            df: The batch.
            batch_id: The number of the batch in the stream.
            deleted_when: As for `upsert`.

        Raises:
            WriteError: As for `upsert`.
            ConflictError: As for `upsert`, several times in a row.
        """
        query_id = self._spark.sparkContext.getLocalProperty(_QUERY_ID) or ""

        def write() -> CommitSummary:
            return self.upsert(in_session(df, self._spark), deleted_when=deleted_when, batch=(query_id, batch_id))

        retried(write, _BATCH_TRIES)

    def compact(
        self,
        schedule: bool = False,
        *,
        execute: bool = False,
        plan: str | None = None,
        strategy: str | None = None,
        max_bytes: int | str | None = None,
        where: str | Mapping[str, object] | None = None,
        logs_only: bool = False,
        progress: Callable[[str], None] | None = None,
        **deprecated: bool,
    ) -> CompactionSummary:
        """Merges logs into base files. Writers and compaction do not block each other.

        Args:
            schedule: Whether to only write a plan to the timeline, for a later call to execute.
            execute: Whether to execute the pending plans, oldest first, and make no new one.
            plan: The instant of the only plan to execute.
            strategy: Which file groups come first: 'log_size', 'log_ratio', 'commits' or 'age'; None for the table's
                setting.
            max_bytes: The most bytes of the new plan, as a number or text such as '10gb'; None for the table's setting.
            where: A condition, as in a WHERE clause. Only file groups that may hold a matching row are compacted.
                Partition values by column are deprecated.
            logs_only: Whether to merge the logs of each file group into one log and keep its base file. It costs less.
            progress: Receives a line now and then.
            **deprecated: ``schedule_only`` and ``execute_only``, the earlier names of `schedule` and `execute`.

        Returns:
            ``version``, ``plans``, ``groups``, ``groups_dropped``, ``files_added``, ``files_removed``, ``bytes_read``,
            ``bytes_written``, ``seconds``, ``problems`` (plans that could not be read). This object then sees the new
            version.

        Raises:
            ConfigError: A setting is wrong, or no plan has the instant.
            UnsupportedError: The table is not of the type ``merge_on_read``.
            ConflictError: Another writer committed first. The plan stays pending.
            WriteError: Rows could not be read or written. The table is unchanged, and the plan stays pending.
        """
        self._opened, done = compact(
            self._spark,
            self._table,
            self._opened,
            schedule=schedule,
            execute=execute,
            plan=plan,
            strategy=strategy,
            max_bytes=max_bytes,
            where=where,
            logs_only=logs_only,
            progress=progress,
            deprecated=deprecated,
        )
        return done

    def cluster(  # noqa: PLR0913 - users give them by name
        self,
        where: str | None = None,
        max_bytes: int | str | None = None,
        rewrite_all: bool = False,
        dry_run: bool = False,
        *,
        strategy: str | None = None,
        sort_by: Sequence[str] | str | None = None,
        partition_by: Sequence[str] | str | None = None,
        schedule: bool = False,
        execute: bool = False,
        plan: str | None = None,
        progress: Callable[[str], None] | None = None,
        **settings: Any,
    ) -> ClusterSummary:
        """Rewrites overlapping, small and oversized files where it pays off. A second call right after does nothing.

        Concurrent writers win: a group of files that another writer changed is dropped and reported. A group that
        cannot be read or written is reported too. The other groups are committed in both cases.

        Args:
            where: A condition, as in a WHERE clause. Only files that may contain a matching row are rewritten.
            max_bytes: The most bytes to rewrite, as a number or text such as '10gb'; None for no limit.
            rewrite_all: Whether to rewrite every file, even where it does not pay off.
            dry_run: Whether to only return what would be done.
            strategy: How rows are arranged. ``'curve'``, the default, places them along the table's curve.
                ``'binpack'`` appends small files to one another up to the target size, and sorts nothing. ``'sort'``
                sorts the rows of overlapping, small and oversized files by ``sort_by``; the table keeps its keys.
            sort_by: The columns of ``'sort'``, such as ``['a', 'b.c']``: ascending, nulls first.
            partition_by: The new partition columns. If the table has other ones, one commit rewrites the whole table.
                None keeps the partition columns, and an empty list makes a table without partitions.
            schedule: Whether to only write a plan to the timeline, for a later call to execute. It replaces an older
                plan of the same strategy. The result says what the plan contains; without groups, no plan was written.
            execute: Whether to execute the pending plans, each with its strategy, and make no new one.
            plan: The instant of the only plan to execute.
            progress: Receives one line for each group.
            **settings: ``cluster_min_gain``, ``min_file_size``, ``max_file_size``, ``max_group_size``,
                ``min_input_files``, ``max_concurrent_groups``, ``partial_progress``, ``max_commits``, ``verify``, as in
                a model's config. ``pending`` is the earlier name of `execute`.

        Returns:
            ``version``, ``files_added``, ``files_removed``, ``bytes_rewritten``, ``bytes_added``, ``depth_before``,
            ``depth_after``, ``predicted``, ``groups``, ``groups_done``, ``groups_dropped``, ``groups_failed``,
            ``resampled``, ``files_with_logs``, ``seconds``, ``problems``, ``unfinished``; see `ClusterSummary`. This
            object then sees the new version.

        Raises:
            ConfigError: A setting is wrong. Nothing has run.
            NewerFormatError: A pending plan has a strategy that this release does not know.
            UnsupportedError: The table is only indexed.
            WriteError: No group could be read or written. The table is unchanged.
        """
        self._opened, done = cluster(
            self._spark,
            self._table,
            self._opened,
            where=where,
            max_bytes=max_bytes,
            rewrite_all=rewrite_all,
            dry_run=dry_run,
            strategy=strategy,
            sort_by=sort_by,
            partition_by=partition_by,
            schedule=schedule,
            execute=execute,
            plan=plan,
            progress=progress,
            settings=settings,
        )
        return done

    def schedule_clustering(
        self,
        where: str | None = None,
        max_bytes: int | str | None = None,
        rewrite_all: bool = False,
        *,
        progress: Callable[[str], None] | None = None,
        **settings: Any,
    ) -> ClusterSummary:
        """Deprecated: use ``cluster(schedule=True)``.

        Args:
            where: As for `cluster`.
            max_bytes: As for `cluster`.
            rewrite_all: As for `cluster`.
            progress: Receives a line now and then.
            **settings: As for `cluster`.

        Returns:
            What the plan contains, computed from the index alone. If it has no groups, no plan was written.
        """
        warnings.warn("schedule_clustering: use cluster(schedule=True)", DeprecationWarning, stacklevel=2)
        return self.cluster(where, max_bytes, rewrite_all, schedule=True, progress=progress, **settings)

    def other_folders(self, partition_by: Sequence[str] | str) -> tuple[str, ...] | None:
        """Returns the partition columns as the table spells them, or None if the table is already partitioned by them.

        Args:
            partition_by: The partition columns, as in a model's config.

        Raises:
            ConfigError: The table cannot be partitioned by these columns.
        """
        return other_folders(self._spark, self._table, partition_by)

    def refresh_index(
        self,
        take_orphans: bool = False,
        drop_missing: bool = False,
        *,
        progress: Callable[[str], None] | None = None,
    ) -> Refreshed:
        """Brings the index up to date with the live files. A second call does nothing.

        On a table that other tools write, it picks up files that were added, changed or removed. On any table, it adds
        statistics for files without them and for columns that are new in ``stats_columns``, and replaces damaged or
        missing slices. It only reads the footers of these files, and their data only if a footer is not enough. Other
        writers can commit at the same time.

        Args:
            take_orphans: Whether to also append files that other tools put into a managed table's folder. All are
                appended or none. Their columns must be the table's.
            drop_missing: Whether to also commit a version of a managed table without the files that are gone from its
                folder. Their rows are lost.
            progress: Receives a line every few seconds.

        Returns:
            ``version``, ``files_added``, ``files_removed``, ``files_changed``, ``files_rebuilt``, ``data_files``,
            ``repaired``, ``unreadable``, ``missing`` (files that are gone: queries that need them fail),
            ``files_dropped``, ``rows_dropped``, ``filters_rebuilt`` (files of a managed table that lacked Bloom filters
            or lookup entries and were read for them). This object then sees the new version.

        Raises:
            UnsupportedError: The table is only indexed; or an orphan does not fit the table; or a missing file
                cannot be dropped, because logs of a merge-on-read table depend on it.
            ConflictError: Other writers committed first, several times in a row.
        """
        self._opened, done = refresh_table(
            self._spark, self._table, self._opened, orphans=take_orphans, missing=drop_missing, progress=progress
        )
        return done

    def build_index(
        self,
        *,
        bloom: Sequence[str] | str = (),
        lookup: ColumnSets = (),
        stats_expressions: Sequence[str] | str = (),
        schedule: bool = False,
        execute: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> IndexBuilt:
        """Gives the table more Bloom filters, lookup indexes and statistics of expressions. Changes no data.

        Reads the files that lack something, each once, and commits every 100 million rows. A call that is killed leaves
        what it has committed, and the next one goes on. Other writers can commit at the same time. Files that they add
        in the meantime may lack the index; a second call adds it.

        Args:
            bloom: Columns that get Bloom filters. Existing ones stay; without any columns, only what is missing is
                added.
            lookup: Columns or expressions that get lookup indexes, in the same way; a nested list is one index over
                several columns.
            stats_expressions: SQL expressions that get statistics, in the same way.
            schedule: Whether to only change the table's settings. From then on, writers index their files as these say.
                A later call, in any process, reads the others.
            execute: Whether to read the files that lack what the settings ask for, and to add nothing else. A call
                without columns and expressions does the same.
            progress: Receives a line every few seconds.

        Returns:
            ``version``; ``bloom``, ``lookup`` and ``stats_expressions`` (all columns and expressions with such an
            index); ``files_read``; ``files_without`` (files that lack something, because a filter would be too large
            or they cannot be read as Spark reads them; queries read them).

        Raises:
            ConfigError: A column does not exist, its type can have no such index, or an expression no statistics; or
                the arguments contradict each other.
            UnsupportedError: The table is only indexed.
            ConflictError: Other writers committed first, several times in a row.
        """
        self._opened, done = build_index(
            self._spark,
            self._table,
            bloom,
            lookup,
            stats_expressions,
            progress,
            schedule=schedule,
            execute=execute,
        )
        return done

    def drop_index(
        self,
        *,
        bloom: Sequence[str] | str = (),
        lookup: ColumnSets = (),
        stats_expressions: Sequence[str] | str = (),
        progress: Callable[[str], None] | None = None,
    ) -> IndexBuilt:
        """Removes Bloom filters, lookup indexes and statistics of expressions from the table. Changes no data.

        Args:
            bloom: The columns whose filters are removed.
            lookup: The columns whose lookup indexes are removed.
            stats_expressions: The expressions whose statistics are removed, as the settings spell them.
            progress: Receives a line every few seconds.

        Returns:
            As for `build_index`.

        Raises:
            ConfigError: A column has no such index, or an expression no statistics.
            UnsupportedError: The table is only indexed.
            ConflictError: Other writers committed first, several times in a row.
        """
        self._opened, done = drop_index(self._spark, self._table, bloom, lookup, stats_expressions, progress)
        return done

    def verify(self, data: bool = False) -> pa.Table:
        """Compares the index with the files and returns each wrong cell.

        An unknown value is not wrong. A bound that is wider than necessary is only wrong if it claims to be exact.

        Args:
            data: Whether to read all columns with statistics. Otherwise only the footers are read.

        Returns:
            ``path``, ``column``, ``cell``, ``stored``, ``found``, all strings; no rows if everything is right. A path
            that ends with a slash is a partition. The cell ``file`` means that the file is gone or cannot be read.
        """
        return verify_index(self._spark, self._opened, data=data)

    def index_status(self) -> pa.Table:
        """Returns the files for which the table, its index and its folder disagree.

        Returns:
            ``path`` string, ``reason`` string; no rows if the index is fresh.
        """
        return stale_files(self._opened)

    def _modify(
        self,
        operation: Operation,
        df: DataFrame | None,
        plan: ChangePlanner[Rewrite] | None,
        *,
        delta: DeltaPlan | None = None,
        takes_deletes: bool = False,
        **options: Any,
    ) -> CommitSummary:
        wanted = modification(self._table, operation, df, takes_deletes=takes_deletes, **options)
        return self._committed(change_rows(self._spark, wanted, plan, delta))

    def _at(self, version: int | None, instant: str | None = None, timestamp: Moment | None = None) -> TableSnapshot:
        spec = TimeTravelSpec(version, instant, timestamp)
        return opened_at(Catalog(self._spark), self._opened, self.name, spec)

    def _committed(self, outcome: tuple[TableSnapshot, CommitSummary]) -> CommitSummary:
        self._opened, self.last_commit = outcome
        return self.last_commit


def explain_query(spark: SparkSession, sql: str) -> list[Explanation]:
    """Explains every scan of a dbt-zlayout table in a query. The query does not run.

    Args:
        spark: The session.
        sql: A query.

    Returns:
        One explanation for each scan. Empty if the query reads no such table, or the optimizer needs no scan.
    """
    return [explanation_of(spark, scan) for scan in explain_scans(spark, sql)]


def _settings_among(arguments: Mapping[str, object]) -> dict[str, object]:
    """Returns the settings of a table among the arguments of a call. Those that are not set are left out."""
    return {key: arguments[key] for key in _SETTINGS if arguments.get(key) not in (None, ())}
