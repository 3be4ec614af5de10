"""``ZTable``: the Python interface of a table, to write it, inspect it and explain which files a query reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.config import parse_table_config
from dbt.adapters.zlayout.config.column_names import format_column_path, parse_column_list
from dbt.adapters.zlayout.config.known_keys import unknown_settings
from dbt.adapters.zlayout.config.merge_rules import MergeRules
from dbt.adapters.zlayout.config.table_type import TABLE_TYPE_KEYS
from dbt.adapters.zlayout.errors import ConfigError, TableNotFoundError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.commit.publish import Description
from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary
from dbt.adapters.zlayout.spark.index.adopt import adopt_table
from dbt.adapters.zlayout.spark.jvm.callbacks import skipping_status
from dbt.adapters.zlayout.spark.read.explain import explain_predicate, explain_scans, nothing_matches
from dbt.adapters.zlayout.spark.read.record_tables import table_entry
from dbt.adapters.zlayout.spark.read.session import open_entry
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.write.change_feed import ChangeFeed
from dbt.adapters.zlayout.spark.write.replace import Replacement, replace_table
from dbt.adapters.zlayout.spark.write.strict_evaluation import count_rows, filtered
from dbt.adapters.zlayout.table.clustering import TableClustering
from dbt.adapters.zlayout.table.explanation import Explanation, explanation_of, explanation_of_table
from dbt.adapters.zlayout.table.history import TableHistory
from dbt.adapters.zlayout.table.index_maintenance import TableIndexCare
from dbt.adapters.zlayout.table.measures import TableMeasures
from dbt.adapters.zlayout.table.records import TableRecords
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ZTable(TableHistory, TableIndexCare, TableMeasures, TableClustering, TableRecords):
    """A table with an index of its files. This package writes it, or other tools write it and this package indexes it.

    Attributes:
        name: ``schema.table``.
        location: The absolute URI of the table's folder.
        last_commit: What the last write through this object did; None if it only opened the table.
    """

    def __init__(
        self, spark: SparkSession, name: str, opened: TableSnapshot, done: CommitSummary | None = None
    ) -> None:
        self._spark = spark
        self._opened = opened
        self.name = name
        self.location = opened.location
        self.last_commit = done
        # Starts the callback server before a stream does. PySpark would start one that anybody can call.
        skipping_status(spark)

    @classmethod
    def for_name(cls, spark: SparkSession, name: str) -> ZTable:
        """Opens a table at its newest version.

        Args:
            spark: The session whose catalog knows the table.
            name: ``schema.table``, with backquotes where needed.

        Raises:
            TableNotFoundError: The table does not exist, or it has no index.
        """
        catalog = Catalog(spark)
        found = catalog.name(name)
        entry = table_entry(catalog, found)
        if entry is None:
            raise TableNotFoundError(f"there is no table {found}; build its model first, or check the schema's name")
        opened = open_entry(spark, entry)
        if opened is None:
            raise TableNotFoundError(
                f"{found} is not a dbt-zlayout table; build it as zordered_table, or index it with ZTable.adopt"
            )
        return cls(spark, str(found), opened)

    @classmethod
    def write(  # noqa: PLR0913 - one keyword for each setting
        cls,
        spark: SparkSession,
        name: str,
        dataframe: DataFrame,
        *,
        zorder: Sequence[str] | str = (),
        curve: str = "zorder",
        partition_by: Sequence[str] | str = (),
        target_file_size: str | int = "128mb",
        row_group_rows: int | None = None,
        stats_columns: int | Sequence[str] = 32,
        retain_versions: int = 3,
        retain_hours: float = 24,
        location_root: str | None = None,
        writer: str = "arrow",
        compression: str = "zstd",
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
                name.
            curve: 'zorder', 'hilbert' or 'linear'.
            partition_by: The partition columns. Each value gets a folder.
            target_file_size: The size of a file, such as '128mb', or a number of bytes.
            row_group_rows: The rows of a row group; None lets the layout choose.
            stats_columns: The columns with statistics, or a number for the first ones.
            retain_versions: How many versions stay readable at least.
            retain_hours: For how many hours a replaced version stays readable at least.
            location_root: The table's folder is ``<location_root>/<table>``. The default is the schema's own folder.
            writer: 'arrow', or 'spark' if Python workers cannot reach the storage.
            compression: The Parquet codec.
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
            **merging: For a merge_on_read table: ``update_partition_path``, ``small_file_limit``, ``log_max_size``,
                ``bucket_buffer_size``, ``buffer_size``, ``compaction``, ``compact_every``,
                ``compaction_min_log_ratio``, ``compaction_max_logs``, ``compaction_strategy``,
                ``compaction_max_bytes``, ``retain_deletes_hours``, as in a model's config.

        Returns:
            The table at its new version. ``last_commit`` says what was done.

        Raises:
            ConfigError: A setting is wrong. The message names every wrong one. Nothing has run.
            WriteError: The query failed, or a column of ``not_null`` contains nulls. The table is unchanged.
            ConflictError: Another writer committed first. The table is as that writer left it.
        """
        settings: dict[str, object] = {
            "zorder": zorder,
            "curve": curve,
            "partition_by": partition_by,
            "target_file_size": target_file_size,
            "row_group_rows": row_group_rows,
            "stats_columns": stats_columns,
            "retain_versions": retain_versions,
            "retain_hours": retain_hours,
            "location_root": location_root,
            "writer": writer,
            "compression": compression,
            "table_type": table_type,
            "unique_key": unique_key,
            "ordering": ordering,
            **merging,
        }
        found = Catalog(spark).name(name)
        if problems := unknown_settings(merging, TABLE_TYPE_KEYS):
            raise ConfigError(problems, str(found))
        wanted = Replacement(
            name=found,
            frame=dataframe,
            config=parse_table_config(_given(settings), subject=str(found)),
            description=Description(comment, dict(properties or {})),
            column_comments=dict(column_comments or {}),
            not_null=tuple(not_null),
            feed=_feed(deleted_when, unique_key, stored_columns, str(found)),
            progress=progress,
        )
        opened, done = replace_table(spark, wanted)
        return cls(spark, str(found), opened, done)

    @classmethod
    def adopt(
        cls,
        spark: SparkSession,
        name: str,
        *,
        zorder: Sequence[str] | str = (),
        managed: bool = False,
        stats_columns: int | Sequence[str] = 32,
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
            managed: Whether this package takes over the table. From then on only files that it commits are read.
                Otherwise other tools keep writing the table, and files that the index does not know are read.
            stats_columns: The columns with statistics, or a number for the first ones.
            curve: As for `write`. Like the settings below, it applies to future writes.
            target_file_size: As for `write`.
            row_group_rows: As for `write`.
            compression: As for `write`.

        Raises:
            TableNotFoundError: The table does not exist.
            UnsupportedError: It is a view, it is not a Parquet table, or it is already managed.
            ConfigError: A column does not exist, or it cannot be a key.
        """
        found = Catalog(spark).name(name)
        settings: dict[str, object] = {
            "zorder": zorder,
            "stats_columns": stats_columns,
            "curve": curve,
            "target_file_size": target_file_size,
            "row_group_rows": row_group_rows,
            "compression": compression,
        }
        config = parse_table_config(_given(settings), subject=str(found))
        opened, done = adopt_table(spark, found, config, managed=managed)
        return cls(spark, str(found), opened, done)

    @property
    def version(self) -> int:
        """The table version that this object sees. Open the table again to see a newer one."""
        return self._opened.version

    def snapshot(self) -> Snapshot:
        """The state of this version: ``version``, ``instant``, ``files`` and their layout."""
        return self._opened.snapshot

    def explain(self, predicate_sql: str) -> Explanation:
        """Explains which files ``select * … where <predicate>`` reads, and why.

        Args:
            predicate_sql: A condition, as in a WHERE clause.
        """
        name = Catalog(self._spark).name(self.name)
        scans = explain_predicate(self._spark, name, predicate_sql)
        return explanation_of_table(scans or [nothing_matches(name, self._opened)])

    def count(self, predicate_sql: str = "true") -> int:
        """The number of rows that meet a condition. Files that match as a whole, or not at all, are not opened.

        Spark counts the current files of a table that other tools write.

        Args:
            predicate_sql: A condition, as in a WHERE clause.

        Raises:
            ConfigError: The condition does not fit the table.
        """
        catalog = Catalog(self._spark)
        if self._opened.managed:
            return count_rows(catalog, self._opened, predicate_sql, self.name)
        rows = self._spark.table(catalog.name(self.name).sql)
        return filtered(rows, predicate_sql, self.name).count()


def explain_query(spark: SparkSession, sql: str) -> list[Explanation]:
    """Explains every scan of a dbt-zlayout table in a query. The query does not run.

    Args:
        spark: The session.
        sql: A query.

    Returns:
        One explanation for each scan. Empty if the query reads no such table, or the optimizer needs no scan.
    """
    return [explanation_of(scan) for scan in explain_scans(spark, sql)]


def _feed(
    deleted_when: str | None, unique_key: Sequence[str] | str | None, stored_columns: Sequence[str], subject: str
) -> ChangeFeed | None:
    if deleted_when is None:
        return None
    problems: list[str] = []
    paths = parse_column_list("unique_key", unique_key, problems)
    keys = tuple(format_column_path(path) for path in paths)
    problems += MergeRules(keys, deleted_when=deleted_when).delete_problems()
    if problems:
        raise ConfigError(problems, subject)
    return ChangeFeed(deleted_when, tuple(path[0] for path in paths), tuple(stored_columns))


def _given(settings: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in settings.items() if value is not None and value != ()}
