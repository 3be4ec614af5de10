"""Clustering of a ``ZTable``: planned from the index, limited by a budget, and yielding to concurrent writers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.config.clustering import CLUSTER_SETTINGS, parse_reclustering
from dbt.adapters.zlayout.config.known_keys import unknown_settings
from dbt.adapters.zlayout.config.settings import PARTITION_BY
from dbt.adapters.zlayout.config.table_config import PartitioningConfig
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.cluster.clustering import Clustering
from dbt.adapters.zlayout.spark.cluster.summary import ClusterSummary
from dbt.adapters.zlayout.spark.read.session import open_managed
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableClustering:
    """Methods that rewrite files where a better layout pays off."""

    name: str
    _spark: SparkSession
    _opened: TableSnapshot

    def cluster(
        self,
        where: str | None = None,
        max_bytes: int | str | None = None,
        rewrite_all: bool = False,
        dry_run: bool = False,
        *,
        partition_by: Sequence[str] | str | None = None,
        pending: bool = False,
        progress: Callable[[str], None] | None = None,
        **settings: Any,
    ) -> ClusterSummary:
        """Rewrites overlapping, small and too large files where it pays off. A second call right after does nothing.

        Concurrent writers win: a group of files that another writer changed is dropped and reported. A group that
        cannot be read or written is reported too. The other groups are committed in both cases.

        Args:
            where: A condition, as in a WHERE clause. Only files that may contain a matching row are rewritten.
            max_bytes: The most bytes to rewrite, as a number or text such as '10gb'; None for no limit.
            rewrite_all: Whether to rewrite every file, even where it does not pay off.
            dry_run: Whether to only return what would be done.
            partition_by: The new partition columns. If the table has other ones, one commit rewrites the whole table.
                None keeps the partition columns, and an empty list makes a table without partitions.
            pending: Whether to execute the plans that `schedule_clustering` wrote, instead of making a new one.
            progress: Receives one line for each group.
            **settings: ``cluster_min_gain``, ``min_file_size``, ``max_file_size``, ``max_group_size``,
                ``min_input_files``, ``max_concurrent_groups``, ``partial_progress``, ``max_commits``, ``verify``, as in
                a model's config.

        Returns:
            ``version``, ``files_added``, ``files_removed``, ``bytes_rewritten``, ``depth_before``, ``depth_after``,
            ``groups``, ``groups_dropped``, ``groups_failed`` … This object then sees the new version.

        Raises:
            ConfigError: A setting is wrong. Nothing has run.
            UnsupportedError: The table is only indexed.
            WriteError: No group could be read or written. The table is unchanged.
        """
        if pending and (where is not None or dry_run or rewrite_all or partition_by is not None):
            raise ConfigError(
                ["pending: where, rewrite_all, dry_run and partition_by belong to a new plan; leave them out"],
                self.name,
            )
        work = self._clustering(where, max_bytes, rewrite_all, progress, settings)
        folders = None if partition_by is None else self.other_folders(partition_by)
        if folders is not None:
            if where is not None or max_bytes is not None:
                raise ConfigError(
                    ["partition_by: the whole table is rewritten; leave out where and max_bytes"], self.name
                )
            done = work.repartition(folders, dry_run=dry_run)
            _, self._opened = open_managed(self._spark, work.name)
            return done
        if dry_run:
            return ClusterSummary.of_dry_run(work.plan())
        done = work.run_scheduled() if pending else work.run()
        _, self._opened = open_managed(self._spark, work.name)
        return done

    def other_folders(self, partition_by: Sequence[str] | str) -> tuple[str, ...] | None:
        """The partition columns as the table spells them, or None if the table is already partitioned by them.

        Args:
            partition_by: The partition columns, as in a model's config.

        Raises:
            ConfigError: The table cannot be partitioned by these columns.
        """
        problems: list[str] = []
        partitioning = PartitioningConfig(PARTITION_BY.read_value(partition_by, problems))
        if problems:
            raise ConfigError(problems, self.name)
        _, opened = open_managed(self._spark, Catalog(self._spark).name(self.name))
        config = replace(config_of(opened.snapshot), partitioning=partitioning)
        folders = TableLayout.of(config, opened.row_schema_json, self.name).partition_by
        return folders if folders != opened.partition_columns else None

    def schedule_clustering(
        self,
        where: str | None = None,
        max_bytes: int | str | None = None,
        rewrite_all: bool = False,
        *,
        progress: Callable[[str], None] | None = None,
        **settings: Any,
    ) -> ClusterSummary:
        """Writes a plan to the timeline for a later ``cluster(pending=True)``. It replaces an older plan.

        Args:
            where: As for `cluster`.
            max_bytes: As for `cluster`.
            rewrite_all: As for `cluster`.
            progress: Receives a line now and then.
            **settings: As for `cluster`.

        Returns:
            What the plan contains, computed from the index alone. If it has no groups, no plan was written.
        """
        return ClusterSummary.of_dry_run(self._clustering(where, max_bytes, rewrite_all, progress, settings).schedule())

    def _clustering(
        self,
        where: str | None,
        max_bytes: int | str | None,
        rewrite_all: bool,
        progress: Callable[[str], None] | None,
        settings: dict[str, Any],
    ) -> Clustering:
        problems = unknown_settings(settings, CLUSTER_SETTINGS)
        raw = {**settings, "cluster_max_bytes": max_bytes, "rewrite_all": rewrite_all}
        config = parse_reclustering(raw, problems)
        if problems:
            raise ConfigError(problems, self.name)
        return Clustering(self._spark, Catalog(self._spark).name(self.name), config, where, progress)
