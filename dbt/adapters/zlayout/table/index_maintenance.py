"""The index of a ``ZTable``: refreshes it and checks it against the files."""

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
    """Methods that maintain the index."""

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
        """Brings the index up to date with the live files. A second call does nothing.

        On a table that other tools write, it picks up files that were added, changed or removed. On any table, it adds
        statistics for files without them and for columns that are new in ``stats_columns``, and replaces damaged or
        missing slices. It only reads the footers of these files, and their data only if a footer is not enough. Other
        writers can commit at the same time.

        Args:
            take_orphans: Whether to also append files that other tools put into a managed table's folder. All are
                appended or none. Their columns must be the table's.
            drop_missing: Whether to also commit a version of a managed table without the files that are gone from its
                folder. Their rows are lost.
            progress: Receives a line every few seconds.

        Returns:
            ``version``, ``files_added``, ``files_removed``, ``files_changed``, ``files_rebuilt``, ``data_files``,
            ``repaired``, ``unreadable``, ``missing`` (files that are gone: queries that need them fail),
            ``files_dropped``. This object then sees the new version.

        Raises:
            UnsupportedError: The table is only indexed; or an orphan does not fit the table; or missing files cannot be
                dropped, because no file would be left or the table is merge-on-read.
            ConflictError: Other writers committed first, several times in a row.
        """
        name = Catalog(self._spark).name(self.name)
        self._opened, done = refresh_table(
            self._spark, name, self._opened, orphans=take_orphans, missing=drop_missing, progress=progress
        )
        return done

    def verify(self, data: bool = False) -> pa.Table:
        """Compares the index with the files and returns each wrong cell.

        An unknown value is not wrong. A bound that is wider than necessary is only wrong if it claims to be exact.

        Args:
            data: Whether to read all columns with statistics. Otherwise only the footers are read.

        Returns:
            ``path``, ``column``, ``cell``, ``stored``, ``found``, all strings; no rows if everything is right. A path
            that ends with a slash is a partition. The cell ``file`` means that the file is gone or cannot be read.
        """
        return verify_index(self._spark, self._opened, data=data)

    def index_status(self) -> pa.Table:
        """The files for which the table, its index and its folder disagree.

        Returns:
            ``path`` string, ``reason`` string; no rows if the index is fresh.
        """
        return stale_files(self._opened)
