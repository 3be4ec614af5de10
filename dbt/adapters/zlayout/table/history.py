"""The history of a ``ZTable``: versions, time travel, changes between versions, rollback and cleaning."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.zlayout.config.settings import RETAIN_HOURS, RETAIN_VERSIONS
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary
from dbt.adapters.zlayout.spark.history.changes import changed_rows
from dbt.adapters.zlayout.spark.history.time_travel import Moment, Past, check_managed, opened_at, roll_back, rows_at
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.table.explanation import commit_history
from dbt.adapters.zlayout.timeline.retention.cleaning import CleanResult, clean, store_time_ms
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.recovery import recover

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableHistory:
    """Methods that read older versions, roll back to them and clean them up."""

    name: str
    last_commit: CommitSummary | None
    _spark: SparkSession
    _opened: TableSnapshot

    @property
    def is_managed(self) -> bool:
        """Whether this package writes the table. A table that is only indexed has no older versions."""
        return self._opened.managed

    def history(self, limit: int | None = None) -> pa.Table:
        """The versions, newest first.

        Args:
            limit: The most versions to return; None for all.

        Returns:
            ``version`` int64, ``instant`` string, ``action`` string, ``operation`` string; int64 ``rows`` (written),
            ``rows_inserted``, ``rows_updated``, ``rows_deleted``, ``files_added``, ``files_removed``, ``bytes_added``;
            ``committed_at`` timestamp in UTC.
        """
        return commit_history(Timeline(self._opened.store).history(limit))

    def version_at(
        self, *, version: int | None = None, instant: str | None = None, timestamp: Moment | None = None
    ) -> int:
        """The number of the version that ``read`` reads for the same arguments.

        Raises:
            VersionNotFoundError: The version does not exist, or its files were cleaned. The message says which can be
                read.
            ConfigError: More than one argument is given, or the timestamp cannot be parsed.
            UnsupportedError: The table is only indexed.
        """
        past = Past(version, instant, timestamp)
        return opened_at(Catalog(self._spark), self._opened, self.name, past).version

    def read(
        self, *, version: int | None = None, instant: str | None = None, timestamp: Moment | None = None
    ) -> DataFrame:
        """The rows of a version, with the columns of that version. Filters skip files as in plain SQL.

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
        return rows_at(Catalog(self._spark), self._opened, self.name, Past(version, instant, timestamp))

    def rollback(
        self, version: int | None = None, *, instant: str | None = None, timestamp: Moment | None = None
    ) -> CommitSummary:
        """Commits a new version that equals an older one: rows, columns, partitions, layout, curve and index.

        No history is lost: the versions in between stay readable as long as any others, and a rollback can return to
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
        catalog = Catalog(self._spark)
        past = Past(version, instant, timestamp)
        self._opened, self.last_commit = roll_back(catalog, catalog.name(self.name), self._opened, past)
        return self.last_commit

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
            ``files`` (the number of files), ``bytes``, ``paths``, ``oldest_version``.

        Raises:
            ConfigError: A retention setting is not a valid number.
            UnsupportedError: The table is only indexed.
        """
        check_managed(self._opened, self.name)
        problems: list[str] = []
        versions = RETAIN_VERSIONS.read_value(retain_versions, problems)
        hours = RETAIN_HOURS.read_value(retain_hours, problems)
        if problems:
            raise ConfigError(problems, self.name)
        timeline = Timeline(self._opened.store)
        if not dry_run:
            recover(timeline)
        own = config_of(timeline.snapshot()).retention
        return clean(
            timeline,
            own.versions if retain_versions is None else versions,
            own.hours if retain_hours is None else hours,
            # Asking the store for its time writes a file, and a dry run must not write.
            int(time.time() * 1000) if dry_run else store_time_ms(timeline.store),
            dry_run=dry_run,
            orphans=True,
        )

    def changes(self, from_version: int, to_version: int | None = None) -> DataFrame:
        """The rows that changed between two versions, commit by commit.

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
        last = Timeline(self._opened.store).latest_version() if to_version is None else to_version
        return changed_rows(Catalog(self._spark), self._opened, self.name, from_version, last or 0)
