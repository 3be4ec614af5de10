"""Sizing: how many files and row groups a number of rows needs."""

from __future__ import annotations

from dataclasses import dataclass

PartitionKey = tuple["str | None", ...]

_GROUPS_PER_FILE = 8
_FEWEST_GROUP_ROWS, _MOST_GROUP_ROWS = 1 << 15, 1 << 20
_FEWEST_BUCKETS, _MOST_BUCKETS = 1 << 10, 1 << 15
_BUCKETS_PER_FILE = 16


@dataclass(frozen=True)
class Sizing:
    """The sizes that cuts are made for.

    Attributes:
        rows_per_file: Rows of a file of the target size.
        row_group_rows: Target rows of a row group.
        total_rows: Rows of the table.
        sampled_rows: Rows of the sample.
    """

    rows_per_file: int
    row_group_rows: int
    total_rows: int
    sampled_rows: int

    @classmethod
    def of(
        cls,
        total_rows: int,
        sampled_rows: int,
        bytes_per_row: float,
        target_file_bytes: int,
        row_group_rows: int | None,
    ) -> Sizing:
        """Computes rows per file; row groups have ``row_group_rows`` or, if None, about an eighth of a file."""
        rows_per_file = max(1, round(target_file_bytes / max(bytes_per_row, 1e-3)))
        eighth = -(-min(rows_per_file, max(1, total_rows)) // _GROUPS_PER_FILE)
        group_rows = row_group_rows or min(_MOST_GROUP_ROWS, max(_FEWEST_GROUP_ROWS, eighth))
        return cls(rows_per_file, group_rows, total_rows, sampled_rows)

    @property
    def buckets(self) -> int:
        """Number of ranks per key: enough that one key alone can cut a table of many files evenly."""
        wanted = 1 << (_BUCKETS_PER_FILE * self.total_rows // self.rows_per_file).bit_length()
        return min(_MOST_BUCKETS, max(_FEWEST_BUCKETS, wanted))

    def leaves(self, rows: float) -> int:
        """Returns the number of row groups in a file of this many rows."""
        return max(1, -int(-rows // self.row_group_rows))

    def files_and_leaves(self, sampled_rows: int) -> tuple[int, int]:
        """Returns the number of files for the rows that a part of the sample represents, and the row groups of each."""
        rows = self.total_rows * sampled_rows / max(1, self.sampled_rows)
        files = max(1, round(rows / self.rows_per_file))
        return files, self.leaves(rows / files)
