"""The past of a ``ZTable``: its versions, their rows, what changed between them, the way back, and cleaning."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.zlayout.config.retention import parse_retention
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
    """Methods that look back, go back, and let go."""

    name: str
    last_commit: CommitSummary | None
    _spark: SparkSession
    _opened: TableSnapshot

    @property
    def is_managed(self) -> bool:
        """Whether this package writes the table; one that is only indexed has no older versions."""
        return self._opened.managed

    def history(self, limit: int | None = None) -> pa.Table:
        """The versions, newest first.

        Args:
            limit: At most so many; None for all.

        Returns:
            ``version`` int64, ``instant`` string, ``action`` string, ``operation`` string; int64 ``rows`` (written),
            ``rows_inserted``, ``rows_updated``, ``rows_deleted``, ``files_added``, ``files_removed``, ``bytes_added``;
            ``committed_at`` timestamp in UTC.
        """
        return commit_history(Timeline(self._opened.store).history(limit))

    def version_at(
        self, *, version: int | None = None, instant: str | None = None, timestamp: Moment | None = None
    ) -> int:
        """The version that ``read`` reads for the same arguments.

        Raises:
            VersionNotFoundError: There is no such version, or its files were cleaned; says which can be read.
            ConfigError: More than one is given, or the timestamp cannot be read.
            UnsupportedError: The table is only indexed.
        """
        past = Past(version, instant, timestamp)
        return opened_at(Catalog(self._spark), self._opened, self.name, past).version

    def read(
        self, *, version: int | None = None, instant: str | None = None, timestamp: Moment | None = None
    ) -> DataFrame:
        """The rows of a version, in the columns that it had; filters skip files as in plain SQL.

        What the session reads under the table's name stays the newest version.

        Args:
            version: Its number. Without any argument the version that this object sees.
            instant: The 17 digits of the transaction that made it.
            timestamp: The newest version committed at or before this time: a datetime, a date, or a text as Spark's SQL
                reads it. Without a zone it is in the session's time zone.

        Raises:
            VersionNotFoundError: There is no such version, or its files were cleaned; says which can be read.
            ConfigError: More than one is given, or the timestamp cannot be read.
            UnsupportedError: The table is only indexed.
        """
        return rows_at(Catalog(self._spark), self._opened, self.name, Past(version, instant, timestamp))

    def rollback(
        self, version: int | None = None, *, instant: str | None = None, timestamp: Moment | None = None
    ) -> CommitSummary:
        """Makes a new version that equals an older one: rows, columns, partitions, layout, curve and index.

        No history is lost: versions in between stay readable for as long as others do, and the way back leads there.

        Args:
            version: Its number.
            instant: Or its instant.
            timestamp: Or a time, as for ``read``.

        Returns:
            What was done; this object sees the new version.

        Raises:
            VersionNotFoundError: There is no such version, or some of its files are gone; says which can be reached.
            ConflictError: Another writer committed meanwhile; run it again.
            ConfigError: None or more than one of the three is given.
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

        So it does with data files that lie in the folder without a version listing them, if this package wrote them and
        they are older than ``retain_hours``; those of other tools stay, and ``index_status`` names them.

        Args:
            dry_run: Only tell; nothing is touched.
            retain_versions: Keep the newest so many; None for what the table was written with.
            retain_hours: Keep those that were the newest within so many hours; None for the same. A query that takes
                longer may lose its files.

        Returns:
            ``files`` (their number), ``bytes``, ``paths``, ``oldest_version``.

        Raises:
            ConfigError: One of the two is no such number.
            UnsupportedError: The table is only indexed.
        """
        check_managed(self._opened, self.name)
        problems: list[str] = []
        asked = parse_retention({"retain_versions": retain_versions, "retain_hours": retain_hours}, problems)
        if problems:
            raise ConfigError(problems, self.name)
        timeline = Timeline(self._opened.store)
        if not dry_run:
            recover(timeline)
        own = config_of(timeline.snapshot()).retention
        return clean(
            timeline,
            own.versions if retain_versions is None else asked.versions,
            own.hours if retain_hours is None else asked.hours,
            # A dry run writes nothing, not even to ask the store for its time.
            int(time.time() * 1000) if dry_run else store_time_ms(timeline.store),
            dry_run=dry_run,
            orphans=True,
        )

    def changes(self, from_version: int, to_version: int | None = None) -> DataFrame:
        """The rows that differ between two versions, commit by commit.

        Only files that a commit removed or added are read. A row that a commit carried unchanged into another file is
        no change, and one that it changed is a 'delete' and an 'insert'; clustering and compaction change nothing.

        Args:
            from_version: The version before the first change.
            to_version: The version of the last change; None for the newest.

        Returns:
            The columns of ``to_version`` (those that a row's version lacks are null), ``_change_type`` string
            ('insert' or 'delete') and ``_commit_version`` bigint.

        Raises:
            VersionNotFoundError: There is no such version, or files that it takes were cleaned.
            ConfigError: The versions are the wrong way round, or a column of the table has one of the two names.
            UnsupportedError: A column changed its type, or is of one that does not compare (variant).
        """
        last = Timeline(self._opened.store).latest_version() if to_version is None else to_version
        return changed_rows(Catalog(self._spark), self._opened, self.name, from_version, last or 0)
