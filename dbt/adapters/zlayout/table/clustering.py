"""Clustering of a ``ZTable``: planned from the index, within a budget, giving way to writers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.config.known_keys import unknown_settings
from dbt.adapters.zlayout.config.partitioning import parse_partitioning
from dbt.adapters.zlayout.config.reclustering import CLUSTER_SETTINGS, parse_reclustering
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
    """Methods that rewrite files whose layout is worth it."""

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
        """Rewrites overlapping, small and too large files where it pays; a second call right after does nothing.

        Writers win: a group of files that somebody changed meanwhile is dropped and reported, the others land. So do
        they where a group cannot be read or written: it is reported too.

        Args:
            where: A condition, as in a WHERE clause: only files that may hold a matching row are rewritten.
            max_bytes: Most bytes to rewrite, a number or such as '10gb'; None for no limit.
            rewrite_all: Rewrite every file, gain or not.
            dry_run: Only say what would be done.
            partition_by: Columns that are folders from now on: where the table has others, all of it is written anew
                in one commit. None leaves them, an empty list is a table without partitions.
            pending: Carry out the plans that `schedule_clustering` wrote, instead of a new one.
            progress: Gets a line a group.
            **settings: ``cluster_min_gain``, ``min_file_size``, ``max_file_size``, ``max_group_size``,
                ``min_input_files``, ``max_concurrent_groups``, ``partial_progress``, ``max_commits``, ``verify``, as in
                a model's config.

        Returns:
            ``version``, ``files_added``, ``files_removed``, ``bytes_rewritten``, ``depth_before``, ``depth_after``,
            ``groups``, ``groups_dropped``, ``groups_failed`` …; this object sees the version.

        Raises:
            ConfigError: A setting is wrong; nothing has run.
            UnsupportedError: The table is only indexed.
            WriteError: No group could be read or written; the table is as it was.
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
                    ["partition_by: all of the table is written anew; leave out where and max_bytes"], self.name
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
        """The partition columns as the table spells them, or None where it has them already.

        Args:
            partition_by: As in a model's config.

        Raises:
            ConfigError: The table cannot be partitioned so.
        """
        problems: list[str] = []
        partitioning = parse_partitioning({"partition_by": partition_by}, problems)
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
        """Writes a plan to the timeline for a later ``cluster(pending=True)``; it takes the place of an older one.

        Args:
            where: As for `cluster`.
            max_bytes: As for `cluster`.
            rewrite_all: As for `cluster`.
            progress: Gets a line now and then.
            **settings: As for `cluster`.

        Returns:
            What the plan holds, reckoned from the index alone; without groups nothing was written.
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
