"""What a write did, and the steps that follow its commit.

A step that fails is left to the next writer; the rows stay committed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.zlayout.errors import CommittedError, CorruptError
from dbt.adapters.zlayout.publish.formats import oldest_published_version, what_lags
from dbt.adapters.zlayout.publish.spark_manifest import is_published, published_version
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, short_message
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.instant import HOUR_MS
from dbt.adapters.zlayout.timeline.files.naming import log_path
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.retention.cleaning import clean
from dbt.adapters.zlayout.timeline.retention.orphans import foreign_files, foreign_text, spark_has_written
from dbt.adapters.zlayout.timeline.retention.past import last_clean

_LOG = logging.getLogger(__name__)
_NEXT_STEP = (
    "its rows are in the table: do not write them again; the next writer, or zlayout_refresh_index, completes the "
    "missing steps"
)
AGAIN = "run this again: it completes the missing steps and adds no row twice"


@dataclass(frozen=True)
class CommitSummary:
    """What one write did, for users and for run_results.json.

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
        overlap_depth: Average number of files, itself included, whose boxes intersect the box of a file. 1.0 is best.
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


class AfterCommit:
    """Runs the steps after one commit.

    A step in `needed` makes the version visible to readers. If it fails, it raises an error that says that the commit
    is done. A step in `useful` only saves cost or cleans up. If it fails, the failure is reported.

    Args:
        version: The committed version.
        progress: Called with a line for each failed step of `useful`. None for Python's log.
        next_step: Advice to the user if a step of `needed` fails.

    Attributes:
        unfinished: The failures, one sentence each.
    """

    def __init__(self, version: int, progress: Progress | None = None, next_step: str = _NEXT_STEP) -> None:
        self.version = version
        self._next_step = next_step
        self.unfinished: tuple[str, ...] = ()
        self._tell = progress or _LOG.warning

    @contextmanager
    def needed(self, problem: str) -> Iterator[None]:
        """Runs a step that readers need to see the version.

        Args:
            problem: The consequence of a failure.

        Raises:
            CommittedError: The step failed.
        """
        try:
            yield
        except CommittedError:
            raise
        except Exception as error:
            raise CommittedError(self.version, f"{problem}: {short_message(error)}", self._next_step) from error

    @contextmanager
    def useful(self, problem: str) -> Iterator[None]:
        """Runs a step that readers do not need. Never raises.

        Args:
            problem: The consequence of a failure.
        """
        try:
            yield
        except Exception as error:
            self.leave(f"{problem}: {short_message(error)}")

    def leave(self, problem: str) -> None:
        """Records and reports a failure that is left to the next writer."""
        self.unfinished = (*self.unfinished, problem)
        self._tell(f"version {self.version} is committed; {problem}; the next writer tries again")

    def clean(self, opened: TableSnapshot) -> None:
        """Deletes the files that no retained version needs, if they are many, and reports files of an `INSERT`.

        Never raises.

        Args:
            opened: The table at its newest version.
        """
        with self.useful("old versions are not cleaned"):
            retention = config_of(opened.snapshot).retention
            # The version was written just now, so its time in the store is the current time of the store's clock.
            now_ms = opened.store.stat(log_path(opened.version)).modified_ms
            needed_from = oldest_published(opened, retention.hours, now_ms)
            timeline = opened.timeline
            done = clean(timeline, retention.versions, retention.hours, now_ms, needed_from=needed_from, at_once=False)
            if done.failed:
                self.leave(f"{counted(len(done.failed), 'file')} of old versions cannot be deleted: {done.failed[0]}")
        with self.useful("it is unknown whether other tools wrote into the folder"):
            # A listing of a large folder is too expensive for each commit.
            written = spark_has_written(opened.timeline, opened.version)
            if written and (found := foreign_files(opened.timeline)):
                self._tell(foreign_text(len(found), merges_on_read=opened.merges_on_read))


def oldest_published(opened: TableSnapshot, hours: float, now_ms: int) -> int | None:
    """Returns the oldest version that readers of a published format may be reading; None if there is none.

    A version that was published late was seen by readers for longer than it was the table's newest.

    Args:
        hours: How long a reader may take.
        now_ms: The time by the clock of the store, milliseconds since the epoch.

    Raises:
        StoreError, CorruptError, UnsupportedError: It is unknown what they see.
    """
    formats = config_of(opened.snapshot).publishing.formats or ()
    since_ms = now_ms - hours * HOUR_MS if hours else math.inf
    return oldest_published_version(opened.store, opened.table_id, formats, since_ms)


def unfinished_work(opened: TableSnapshot) -> list[str]:
    """Returns what earlier commits left to the next writer, one sentence each."""
    store, found = opened.store, []
    if opened.managed:
        newest, published = opened.timeline.snapshot(), published_version(store)
        if published != newest.version:
            seen = "no version" if published is None else f"version {published}"
            found.append(f"sessions that do not skip files see {seen} instead of version {newest.version}")
        elif not is_published(store, newest):
            found.append(f"the manifest of version {newest.version} lists other files than its log entry")
        found += what_lags(store, opened.table_id, config_of(newest).publishing, newest.version)
    try:
        cleaned = last_clean(store)
    except CorruptError as error:
        return [*found, f"old versions are not cleaned: {error}"]
    if cleaned.failed:
        found.append(f"{counted(cleaned.failed, 'file')} of old versions could not be deleted")
    return found
