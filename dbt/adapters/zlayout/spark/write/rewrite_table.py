"""All rows of a table written anew, as a version of its own: for columns or folders that its files cannot show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.config.partitioning import PartitioningConfig
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
    """Writes the rows that are there in other columns or other folders.

    Args:
        spark: The session.
        name: Of the table.
        entry: Of the table in the catalog.
        opened: The table, at its newest version.
        schema_json: Spark's JSON of the columns to come.
        partition_by: Those of them that are folders.
        progress: Takes a line now and then.
        gives_way: Whether it is given up for a change of rows that is under way.

    Returns:
        The table at its new version, and what was done.

    Raises:
        ConfigError: The table cannot be partitioned so.
        ConflictError: Another writer committed meanwhile.
        WriteError: Rows could not be read or written; the table is as it was.
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
