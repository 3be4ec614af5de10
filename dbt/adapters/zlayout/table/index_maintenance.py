"""The index of a ``ZTable``: brought to the live files, and checked against them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.index.fresh import stale_files
from dbt.adapters.zlayout.spark.index.refresh import Refreshed
from dbt.adapters.zlayout.spark.index.refresh_table import refresh_table
from dbt.adapters.zlayout.spark.index.verify import verify_index
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableIndexCare:
    """Methods that look after the index."""

    name: str
    _spark: SparkSession
    _opened: TableSnapshot

    def refresh_index(
        self,
        take_orphans: bool = False,
        drop_missing: bool = False,
        *,
        progress: Callable[[str], None] | None = None,
    ) -> Refreshed:
        """Brings the index to the live files; a second call does nothing.

        On a table that others write: files that were added, changed or removed. On any table: files without statistics,
        columns that ``stats_columns`` names by now, slices that are damaged or gone. Footers are read of these files
        only, and data only where a footer leaves something open. Runs while others write.

        Args:
            take_orphans: On a managed table, also append the files that other tools put into its folder, all of them or
                none; their columns must be the table's.
            drop_missing: On a managed table, also commit a version without the files that are gone from its folder.
                Their rows are lost.
            progress: Gets a line every few seconds.

        Returns:
            ``version``, ``files_added``, ``files_removed``, ``files_changed``, ``files_rebuilt``, ``data_files``,
            ``repaired``, ``unreadable``, ``missing`` (files that are gone: queries that need them fail),
            ``files_dropped``; this object sees the version.

        Raises:
            UnsupportedError: An orphan does not fit the table; no file at all is left, or the table is merge-on-read,
                so that nothing is dropped; or the table is only indexed.
            ConflictError: Other writers were in the way several times in a row.
        """
        name = Catalog(self._spark).name(self.name)
        self._opened, done = refresh_table(
            self._spark, name, self._opened, orphans=take_orphans, missing=drop_missing, progress=progress
        )
        return done

    def verify(self, data: bool = False) -> pa.Table:
        """Holds the index against the files, and names each wrong cell.

        What is unknown is not wrong, nor is a bound that is wider than it needs to be, unless it claims to be exact.

        Args:
            data: Read all columns with statistics; without it only what the footers say is compared.

        Returns:
            ``path``, ``column``, ``cell``, ``stored``, ``found``: strings; no rows when all is right. A path with a
            slash at its end is a partition; the cell ``file`` is a file that is gone or cannot be read.
        """
        return verify_index(self._spark, self._opened, data=data)

    def index_status(self) -> pa.Table:
        """Where files, index and folder disagree.

        Returns:
            ``path`` string, ``reason`` string; no rows when all is fresh.
        """
        return stale_files(self._opened)
