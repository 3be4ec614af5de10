"""The rows of a merge-on-read table: base rows without a newer log record, and the newest upsert of each key.

The newest record of a key is the one with the highest instant, and no two have the same: which of two versions wins by
the ordering column is decided when they are written (`tagging`), so that readers need not look at it. A key is looked
for within its partition only: a row that moved leaves a delete in the partition that it left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.zlayout.config.table_type import DELETE, INSTANT, OP, SEQ, TOMBSTONE, UPSERT
from dbt.adapters.zlayout.spark.schema.table_schema import quoted

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
        # No union, no window: one scan of all files, so that any condition on rows skips files of both kinds.
        return f"{self._latest(files, _listed(self.columns, 'f.'))} where f.{OP} is null or f.{OP} = '{UPSERT}'"

    def newest(self, files: str) -> str:
        """The query that gives the newest log record of each key, upserts and deletes."""
        return f"{self._latest(files, 'f.*')} where f.{OP} is not null"

    def kept_deletes(self, files: str, ordering: str, since: str, *further: str) -> str:
        """The query that gives what a compaction remembers of deletes: key, partition, ordering value and when.

        Args:
            files: The table of log files and kept deletes, as SQL names it.
            ordering: The ordering column; a delete without a value in it bars nothing and is forgotten.
            since: The instant from which on deletes are kept.
            further: Columns of the files that are given too.
        """
        told = dict.fromkeys([*self.within, ordering])
        # Null in the type of the column, which is of no use any more.
        columns = [
            f"f.{quoted(name)}" if name in told else f"if(false, f.{quoted(name)}, null) {quoted(name)}"
            for name in self.columns
        ]
        columns += [f"'{TOMBSTONE}' {OP}", f"f.{INSTANT}", f"f.{SEQ}", *(f"f.{each}" for each in further)]
        newest = self._latest(files, ", ".join(columns), f"{OP} is not null")
        return f"{newest} where f.{OP} <> '{UPSERT}' and f.{quoted(ordering)} is not null and f.{INSTANT} >= {since}"

    def _latest(self, files: str, columns: str, replaces: str = f"{OP} in ('{UPSERT}', '{DELETE}')") -> str:
        """The versions of rows, base rows and log records, that no later log record replaces."""
        within = self.within
        same = " and ".join(
            f"f.{quoted(name)} {'=' if name in self.keys else '<=>'} l.{quoted(name)}" for name in within
        )
        hint = "/*+ broadcast(l) */ " if self.log_rows <= _BROADCAST_ROWS else ""
        return (
            f"select {hint}{columns} from {files} f"
            f" left anti join (select {_listed(within)}, {INSTANT} from {files} where {replaces}) l"
            f" on {same} and l.{INSTANT} > coalesce(f.{INSTANT}, 0)"
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
