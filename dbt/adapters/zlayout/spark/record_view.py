"""The rows of a merge-on-read table: base rows without a newer log record, and the newest upsert of each key.

The newest record of a key is the one with the highest instant: which of two versions wins by the ordering column is
decided when they are written (`tagging`), so that readers need not look at it. A key is looked for within its partition
only: a row that moved leaves a delete in the partition that it left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ, UPSERT
from dbt.adapters.zlayout.spark.schema import quoted

RANK = "_zl_rank"
# So many log records are sent to every task, so that base rows stay where they are read.
_BROADCAST_ROWS = 2_000_000


@dataclass(frozen=True)
class RecordView:
    """How the rows of one table are told from its files.

    Attributes:
        columns: Of the table, in order.
        keys: The record key.
        partition_by: Partition columns.
        log_rows: Records in its logs.
    """

    columns: Sequence[str]
    keys: Sequence[str]
    partition_by: Sequence[str]
    log_rows: int = 0

    def merged(self, files: str) -> str:
        """The query that gives the rows.

        Args:
            files: The table of base and log files, as SQL names it.
        """
        within = self.within
        same = " and ".join(
            f"b.{quoted(name)} {'=' if name in self.keys else '<=>'} l.{quoted(name)}" for name in within
        )
        hint = "/*+ broadcast(l) */ " if self.log_rows <= _BROADCAST_ROWS else ""
        return (
            f"select {hint}{_listed(self.columns, 'b.')} from {files} b"
            f" left anti join (select {_listed(within)} from {files} where {OP} is not null) l on {same}"
            f" where b.{OP} is null"
            f" union all select {_listed(self.columns)} from ({self.newest(files)}) where {OP} = '{UPSERT}'"
        )

    def newest(self, files: str) -> str:
        """The query that gives the newest log record of each key, upserts and deletes."""
        return (
            f"select * from (select *, row_number() over (partition by {_listed(self.within)}"
            f" order by {INSTANT} desc, {SEQ} desc) {RANK} from {files} where {OP} is not null) where {RANK} = 1"
        )

    def base_rows(self, files: str) -> str:
        """The query that gives the rows of base files alone."""
        return f"select {_listed(self.columns)} from {files} where {OP} is null"

    @property
    def within(self) -> tuple[str, ...]:
        """What tells records apart: key and partition."""
        return tuple(dict.fromkeys([*self.keys, *self.partition_by]))


def _listed(names: Sequence[str], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{quoted(name)}" for name in names)
