"""Queries for the rows of a merge-on-read table: base rows without a newer log record, and each key's newest upsert.

The newest record of a key is the one with the highest instant; no two records of a key share an instant. Writers apply
the ordering column (`tagging`), so readers need not look at it. Keys are matched within their partition only: a row
that moves to another partition leaves a delete behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.zlayout.config.table_type import DELETE, INSTANT, OP, SEQ, TOMBSTONE, UPSERT
from dbt.adapters.zlayout.predicate.literals import backquoted

# Up to this many log records are broadcast, so that base rows are not shuffled.
_BROADCAST_ROWS = 2_000_000


@dataclass(frozen=True)
class RecordView:
    """Builds the queries that return the rows of one table from its files.

    Attributes:
        columns: Columns of the table, in order.
        keys: Columns of the record key.
        partition_by: Partition columns.
        log_rows: Number of records in the log files.
    """

    columns: Sequence[str]
    keys: Sequence[str]
    partition_by: Sequence[str]
    log_rows: int = 0

    def merged(self, files: str) -> str:
        """Returns the query for the rows of the table.

        Args:
            files: The table of base and log files, as SQL names it.
        """
        # No union and no window: with one scan of all files, any condition on rows skips both base and log files.
        return f"{self._latest(files, _listed(self.columns, 'f.'))} where f.{OP} is null or f.{OP} = '{UPSERT}'"

    def newest(self, files: str) -> str:
        """Returns the query for the newest log record of each key, be it an upsert or a delete."""
        return f"{self._latest(files, 'f.*')} where f.{OP} is not null"

    def kept_deletes(self, files: str, ordering: str, since: str, *further: str) -> str:
        """Returns the query for the deletes that a compaction keeps: key, partition, ordering value and instant.

        Args:
            files: The table of log files and kept deletes, as SQL names it.
            ordering: The ordering column. A delete without a value in it blocks no row and is dropped.
            since: Deletes from this instant on are kept.
            further: More columns of the files to select.
        """
        told = dict.fromkeys([*self.within, ordering])
        # The other columns are not needed any more: null in the type of the column.
        columns = [
            f"f.{backquoted(name)}" if name in told else f"if(false, f.{backquoted(name)}, null) {backquoted(name)}"
            for name in self.columns
        ]
        columns += [f"'{TOMBSTONE}' {OP}", f"f.{INSTANT}", f"f.{SEQ}", *(f"f.{each}" for each in further)]
        newest = self._latest(files, ", ".join(columns), f"{OP} is not null")
        return (
            f"{newest} where f.{OP} <> '{UPSERT}' and f.{backquoted(ordering)} is not null and f.{INSTANT} >= {since}"
        )

    def _latest(self, files: str, columns: str, replaces: str = f"{OP} in ('{UPSERT}', '{DELETE}')") -> str:
        """Returns the query for the base rows and log records that no later log record replaces."""
        within = self.within
        same = " and ".join(
            f"f.{backquoted(name)} {'=' if name in self.keys else '<=>'} l.{backquoted(name)}" for name in within
        )
        hint = "/*+ broadcast(l) */ " if self.log_rows <= _BROADCAST_ROWS else ""
        return (
            f"select {hint}{columns} from {files} f"
            f" left anti join (select {_listed(within)}, {INSTANT} from {files} where {replaces}) l"
            f" on {same} and l.{INSTANT} > coalesce(f.{INSTANT}, 0)"
        )

    def base_rows(self, files: str) -> str:
        """Returns the query for the rows of base files only."""
        return f"select {_listed(self.columns)} from {files} where {OP} is null"

    @property
    def within(self) -> tuple[str, ...]:
        """The columns that identify a record: key and partition."""
        return tuple(dict.fromkeys([*self.keys, *self.partition_by]))


def _listed(names: Sequence[str], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{backquoted(name)}" for name in names)
