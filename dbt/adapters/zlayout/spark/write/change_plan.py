"""What a change of rows looks at and what it decides: files to replace, rows to write, and what others may not add."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, unescaped
from dbt.adapters.zlayout.spark.files.written_file import FileReport
from dbt.adapters.zlayout.spark.read.relations import frame_of, with_file
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Target:
    """The table that a change is made on.

    Attributes:
        catalog: The session's catalog.
        subject: Its name, for errors.
        opened: The version that the change begins with.
        layout: How new files are laid out; its columns are those that the table will have.
    """

    catalog: Catalog
    subject: str
    opened: TableSnapshot
    layout: TableLayout

    def rows(self, files: npt.NDArray[np.bool_] | None = None) -> DataFrame:
        """Rows of some files, or all, in the columns of the version."""
        return frame_of(self.catalog, self.opened, files)

    def rows_with_file(self, files: npt.NDArray[np.bool_] | None = None) -> DataFrame:
        """The same with the URI of each row's file in the column `FILE`; `file_number` knows them."""
        return with_file(self.rows(files))

    def rows_of(self, files: DataFiles) -> DataFrame:
        """Rows of files that another commit added."""
        return frame_of(self.catalog, self.opened.with_files(files), np.ones(len(files), dtype=bool))

    def file_number(self, uri: str) -> int:
        """The number of a file in the table, from its URI in the column `FILE`."""
        return self._numbers[unescaped(uri)]

    def mask(self, numbers: Collection[int]) -> npt.NDArray[np.bool_]:
        """True for the files of these numbers."""
        found = np.zeros(len(self.opened.files), dtype=bool)
        found[list(numbers)] = True
        return found

    def paths(self, files: npt.NDArray[np.bool_]) -> tuple[str, ...]:
        """Paths of files below the table's folder."""
        return tuple(self.opened.files.filter(files)["path"].to_pylist())

    def row_count(self, files: npt.NDArray[np.bool_]) -> int:
        """Rows of files in all."""
        return int(self.opened.files["row_count"].to_numpy()[files].sum())

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {unescaped(uri): number for number, uri in enumerate(self.opened.file_uris())}


@dataclass(frozen=True)
class RowCounts:
    """What became of rows."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class Rewrite:
    """A change of rows that is ready to be written.

    Attributes:
        rows: What new files shall hold, in the table's future columns; None for nothing.
        removes: Which files go, told once the new ones are written.
        counts: What became of rows, from the number of rows written and of those in the files that go.
        key_conflict: What files that another rewrite added meanwhile mean to it, see `Change`.
    """

    rows: DataFrame | None
    removes: Callable[[Sequence[FileReport]], tuple[str, ...]]
    counts: Callable[[int, int], RowCounts]
    key_conflict: Callable[[DataFiles], str | None] | None = None


def nothing_removed(_: Sequence[FileReport]) -> tuple[str, ...]:
    """For a change that only adds."""
    return ()
