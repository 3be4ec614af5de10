"""Commits files: their curve and their index slices first, then the log entry that makes them visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.spark.commit.index_update import IndexUpdate, put_slices
from dbt.adapters.zlayout.spark.files.written_file import FileReport, statistics_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.naming import curve_path
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction


@dataclass(frozen=True)
class NewFiles:
    """Files that a transaction has written or found.

    Attributes:
        files: The files.
        column_stats: Their statistics, one row per file.
    """

    files: DataFiles
    column_stats: pa.Table

    @classmethod
    def of(cls, reports: Sequence[FileReport], layout: TableLayout) -> NewFiles:
        """Returns the files that tasks report."""
        files = DataFiles.of([each.file for each in reports], layout.partition_by)
        return cls(files, statistics_of(reports, layout.tracked))


def commit_files(
    store: Store,
    transaction: Transaction,
    change: Change,
    column_stats: pa.Table,
    *,
    curve: bytes | None = None,
    new_columns: tuple[TrackedColumn, ...] = (),
) -> Commit:
    """Commits a change of files with its curve and its index slices. Every commit that writes statistics goes this way.

    Args:
        store: The table's folder.
        transaction: The transaction. If it overwrites the table, base slices replace those of the index.
        change: The change, without its curve.
        column_stats: Statistics of the files that the change adds.
        curve: The curve that placed the files. None keeps the table's curve.
        new_columns: Columns that older files do not have.

    Raises:
        ConflictError: Another writer committed a change that this one cannot follow.
        StoreError: The store failed.
    """
    if curve is not None:
        path = curve_path(transaction.instant, "arrow")
        store.put(path, curve)
        change = replace(change, curve=path)
    if transaction.operation == Operation.OVERWRITE.value:
        slices = put_slices(store, transaction.instant, change.adds, column_stats)
        return transaction.commit(change, index=slices)
    update = IndexUpdate(store, transaction.instant, change.adds, column_stats, change.removes, new_columns)
    return transaction.commit(change, index=update)
