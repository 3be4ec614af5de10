"""The summary of a write, for users and for run_results.json."""

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
        version: Current version of the table.
        instant: Instant of the commit.
        operation: 'create', 'replace', 'adopt', 'append', 'merge' …
        rows: Number of rows written, including rows that were only copied to new files.
        files_added: Number of files in this version that were not in the one before.
        files_removed: Number of files in the version before that are not in this one.
        bytes_added: Size of the added files.
        bytes_removed: Size of the removed files.
        data_passes: How often the rows went through Spark. 1 if one task wrote them or stored cuts could be used.
        overlap_depth: Average number of files over a point of the key space. 1.0 is best.
        phases: Seconds by phase.
        rows_inserted: Number of new rows.
        rows_updated: Number of rows with new values.
        rows_deleted: Number of rows removed.
        files_total: Number of files in the table before the write.
        groups_touched: Number of file groups that got log files.
        log_bytes: Size of these log files.
        compacted: What a compaction after the write did, see `CompactionSummary`. Empty if none was due.
        unfinished: Steps that failed after the commit and are left to the next writer, one sentence each.
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
        """Returns the summary of a write that found nothing to do."""
        return cls(snapshot.version, snapshot.instant, operation, 0, 0, 0, 0, 0, 0, 1.0, {})

    @property
    def bytes_written(self) -> int:
        """Size of the files that the write added."""
        return self.bytes_added

    def __getitem__(self, name: str) -> Any:
        """Returns a figure by its name, as in run_results.json."""
        return self.to_dict()[name]

    def to_dict(self) -> dict[str, Any]:
        """Returns the summary as plain values."""
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
