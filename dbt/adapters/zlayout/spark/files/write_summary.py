"""What a write did, in the numbers that a person and run_results.json want."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot


@dataclass(frozen=True)
class CommitSummary:
    """What one write did.

    Attributes:
        version: Of the table now.
        instant: Of the commit.
        operation: 'create', 'replace', 'adopt', 'append', 'merge' …
        rows: Rows written, those that were only carried over into new files among them.
        files_added: Files the version has that the one before had not.
        files_removed: The reverse.
        bytes_added: Their size.
        bytes_removed: Their size.
        data_passes: How often the rows went through: 1 when one task wrote them or stored cuts could be used.
        overlap_depth: Files that a point of the key space lies in, on average; 1.0 is best.
        phases: Seconds by phase.
        rows_inserted: Rows that are new.
        rows_updated: Rows that have new values.
        rows_deleted: Rows that are gone.
        files_total: Files that the table had before.
        groups_touched: File groups that got logs.
        log_bytes: Size of these.
        compacted: What a compaction after the write did, see `CompactionSummary`; empty where none was due.
        unfinished: What failed after the commit and is left to the next writer, a sentence each.
    """

    version: int
    instant: str
    operation: str
    rows: int
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int
    data_passes: int
    overlap_depth: float
    phases: Mapping[str, float]
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    files_total: int = 0
    groups_touched: int = 0
    log_bytes: int = 0
    compacted: Mapping[str, Any] = field(default_factory=dict)
    unfinished: tuple[str, ...] = ()

    @classmethod
    def of_nothing(cls, snapshot: Snapshot, operation: str) -> CommitSummary:
        """What a write did that found nothing to do."""
        return cls(snapshot.version, snapshot.instant, operation, 0, 0, 0, 0, 0, 0, 1.0, {})

    @property
    def bytes_written(self) -> int:
        """Size of the files that the write made."""
        return self.bytes_added

    def __getitem__(self, name: str) -> Any:
        """A figure by its name, as in run_results.json."""
        return self.to_dict()[name]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            **vars(self),
            "bytes_written": self.bytes_written,
            "phases": dict(self.phases),
            "compacted": dict(self.compacted),
            "unfinished": list(self.unfinished),
        }


class Timed:
    """Adds the wall time of a ``with`` block to a phase."""

    def __init__(self, phases: dict[str, float], name: str) -> None:
        self._phases, self._name, self._start = phases, name, 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._phases[self._name] = round(self._phases.get(self._name, 0.0) + time.perf_counter() - self._start, 3)
