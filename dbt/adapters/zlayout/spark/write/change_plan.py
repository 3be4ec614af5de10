"""Input and result of planning a change of rows: the table, the files to replace and the rows to write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, unescaped
from dbt.adapters.zlayout.spark.files.file_report import FileReport
from dbt.adapters.zlayout.spark.read.relations import frame_of, with_file
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS_TAKEN = "it wrote rows with some of the same keys"


@dataclass(frozen=True)
class Target:
    """The table that a change applies to.

    Attributes:
        subject: Its name, for error messages.
        opened: The version that the change starts from.
        layout: Layout of new files. Its columns are the table's future columns.
    """

    catalog: Catalog
    subject: str
    opened: TableSnapshot
    layout: TableLayout

    def rows(self, files: npt.NDArray[np.bool_] | None = None) -> DataFrame:
        """Returns the rows of the given files, or of all files, in the version's columns."""
        return frame_of(self.catalog, self.opened, files)

    def rows_with_file(self, files: npt.NDArray[np.bool_] | None = None) -> DataFrame:
        """Returns the same rows with the URI of their file in the column `FILE`, for `file_number`.

        Changes find their rows here, so the scan log has these scans: they skip files by keys as queries do.
        """
        return with_file(frame_of(self.catalog, self.opened, files, logged_as=self.subject))

    def rows_of(self, files: DataFiles) -> DataFrame:
        """Returns the rows of files that another commit added."""
        return frame_of(self.catalog, self.opened.with_files(files), np.ones(len(files), dtype=bool))

    def file_number(self, uri: str) -> int:
        """Returns a file's position in the table's list of files, given its URI from the column `FILE`."""
        return self._numbers[unescaped(uri)]

    def mask(self, numbers: Collection[int]) -> npt.NDArray[np.bool_]:
        """Returns a mask over the table's files that is True at these numbers."""
        found = np.zeros(len(self.opened.files), dtype=bool)
        found[list(numbers)] = True
        return found

    def paths(self, files: npt.NDArray[np.bool_]) -> tuple[str, ...]:
        """Returns the paths of the given files, relative to the table's folder."""
        return tuple(self.opened.files.filter(files)["path"].to_pylist())

    def row_count(self, files: npt.NDArray[np.bool_]) -> int:
        """Returns the total number of rows in the given files."""
        return int(self.opened.files["row_count"].to_numpy()[files].sum())

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {unescaped(uri): number for number, uri in enumerate(self.opened.file_uris())}


@dataclass(frozen=True)
class RowCounts:
    """How many rows a change inserts, updates and deletes."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class Rewrite:
    """A change of rows that is ready to be written.

    Attributes:
        rows: Rows of the new files, in the table's future columns. None if there are none.
        removes: Returns the paths of the files to remove, given the new files once they are written.
        counts: Returns the row counts, given the number of rows written and the number of rows in the removed files.
        key_conflict: Checks files that another rewrite added in the meantime, see `Change`.
    """

    rows: DataFrame | None
    removes: Callable[[Sequence[FileReport]], tuple[str, ...]]
    counts: Callable[[int, int], RowCounts]
    key_conflict: Callable[[DataFiles], str | None] | None = None
