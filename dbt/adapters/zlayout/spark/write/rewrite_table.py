"""Rewrites all rows of a table as a separate version, when its files do not fit new columns or partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.config.table_config import PartitioningConfig
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.catalog.schema_evolution import cast_to
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName
from dbt.adapters.zlayout.spark.commit.publish import Description
from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary
from dbt.adapters.zlayout.spark.jobs.jobs import Progress
from dbt.adapters.zlayout.spark.read.record_tables import rows_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.spark.write.replace import Replacement, replace_table
from dbt.adapters.zlayout.timeline.log.properties import row_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rewrite_table(
    spark: SparkSession,
    name: TableName,
    entry: Entry,
    opened: TableSnapshot,
    *,
    schema_json: str,
    partition_by: tuple[str, ...],
    progress: Progress | None = None,
    gives_way: bool = False,
) -> tuple[TableSnapshot, CommitSummary]:
    """Rewrites the existing rows with other columns or another partitioning.

    Args:
        spark: The session.
        name: Name of the table.
        entry: The table's entry in the catalog.
        opened: The table, at its newest version.
        schema_json: The future columns, as Spark's JSON.
        partition_by: The future partition columns.
        progress: Called with a line of text as the work goes on.
        gives_way: Whether the rewrite gives way to a change of rows that is under way.

    Returns:
        The table at its new version, and a summary of what was done.

    Raises:
        ConfigError: The table cannot be partitioned this way.
        ConflictError: Another writer committed in the meantime.
        WriteError: Rows could not be read or written. The table is unchanged.
    """
    have = opened.partition_columns
    if progress is not None and partition_by != have:
        then, now = (", ".join(each) or "nothing" for each in (have, partition_by))
        rows = row_count(opened.snapshot)
        progress(f"partitioned by {then} so far, by {now} from now on: {counted(rows, 'row')} will be rewritten")
    wanted = Replacement(
        name=name,
        frame=cast_to(rows_of(Catalog(spark), opened), schema_json),
        config=replace(config_of(opened.snapshot), partitioning=PartitioningConfig(partition_by)),
        description=Description.of(entry),
        progress=progress,
        of_version=opened.version,
        gives_way=gives_way,
    )
    return replace_table(spark, wanted)
