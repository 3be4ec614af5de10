"""Finds files that a table lists but that are gone from its folder, and drops them from the table if asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import TableNotFoundError, UnsupportedError
from dbt.adapters.zlayout.index.footers.footer import footer_table
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.commit.commit_files import commit_files
from dbt.adapters.zlayout.spark.commit.publish import publish_committed
from dbt.adapters.zlayout.spark.jobs.jobs import Progress
from dbt.adapters.zlayout.spark.schema.log_columns import merges_on_read
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of, tracked_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def missing_files(store: Store, files: DataFiles) -> tuple[str, ...]:
    """Returns the paths of files that are not in the folder. It lists the folder once."""
    if not len(files):
        return ()
    stored = pa.array([each.path for each in store.list("", recursive=True)], pa.string())
    return tuple(files.filter(pc.invert(pc.is_in(files["path"], value_set=stored)))["path"].to_pylist())


def drop_missing(spark: SparkSession, name: TableName, opened: TableSnapshot, progress: Progress | None) -> int:
    """Commits a version without the missing files. Their rows are lost.

    Returns:
        The number of files dropped.

    Raises:
        UnsupportedError: The table is only indexed, is merge-on-read, or all of its files are missing.
        ConflictError: Another writer changed these files in the meantime.
    """
    if not opened.managed:
        raise UnsupportedError(
            f"{name} is only indexed: a refresh takes in what its folder holds; refresh it without drop_missing"
        )
    timeline = opened.timeline
    with Transaction.begin(timeline, Action.COMMIT, Operation.DELETE) as transaction:
        base = transaction.base
        if base is None:
            raise TableNotFoundError(f"{name} has no version yet; build its model first")
        missing = missing_files(opened.store, base.files)
        if not missing:
            return 0
        _check(name, base.files, missing, merges=merges_on_read(base.layout))
        gone = base.files.filter(pc.is_in(base.files["path"], value_set=pa.array(missing)))
        summary = {
            "rows": 0,
            "rows_deleted": gone.total_rows,
            "files_added": 0,
            "files_removed": len(missing),
            "bytes_added": 0,
            "data_passes": 0,
            "dropped": "missing",
        }
        tracked = tracked_of(config_of(base), base.schema_json, base.partition_by)
        nothing = base.files[:0]
        change = Change(nothing, missing, summary=summary)
        commit = commit_files(timeline.store, transaction, change, footer_table([], [], tracked))
    publish_committed(Catalog(spark), name, opened, AfterCommit(commit.version, progress))
    return len(missing)


def _check(name: TableName, files: DataFiles, missing: tuple[str, ...], *, merges: bool) -> None:
    if merges:
        raise UnsupportedError(
            f"{name} is merge_on_read, where other files count on {missing[0]}: roll back to a version "
            "without it, or rebuild the table (--full-refresh)"
        )
    if len(missing) == len(files):
        raise UnsupportedError(
            f"{name}: none of its {counted(len(files), 'file')} is in "
            f"{missing[0].rpartition('/')[0] or 'its folder'}; that is a storage that cannot be"
            " reached, or a table to be rebuilt (--full-refresh). Nothing was dropped"
        )
