"""Finds the version that last changed a table's rows: clustering, compaction and indexing leave them as they are."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import TableNotFoundError
from dbt.adapters.zlayout.timeline.files.action import MOVES_ROWS, Operation
from dbt.adapters.zlayout.timeline.log.entry import CommitHeader
from dbt.adapters.zlayout.timeline.timeline import Timeline

# In the summary of a version that took a table's files as they were.
ADOPTED = "adopted"
_SAME_ROWS = MOVES_ROWS | {Operation.INDEXING.value, Operation.RECOVERY.value}


def last_row_change(headers: Iterable[CommitHeader], subject: str) -> CommitHeader:
    """Returns the newest version that changed rows, or the oldest version if none did.

    Args:
        headers: Versions, newest first. No more are read than needed.
        subject: The table, for messages.

    Raises:
        TableNotFoundError: There is no version.
    """
    oldest = None
    for oldest in headers:
        if oldest.operation not in _SAME_ROWS and (oldest.files_added or oldest.files_removed):
            return oldest
    if oldest is None:
        raise TableNotFoundError(f"{subject} has no committed version; run the model that builds it")
    return oldest


def rows_changed_ms(timeline: Timeline, subject: str) -> int:
    """Returns when rows last changed, in milliseconds since the epoch.

    It is the time of the commit that changed them. An adoption changes none: there it is the time of the newest file.

    Raises:
        TableNotFoundError: There is no version.
        CorruptError: An entry of the log is damaged.
    """
    last = last_row_change(timeline.headers(), subject)
    if ADOPTED not in last.summary:
        return last.committed_ms
    newest = pc.max(timeline.read(last.version).adds["modified_ms"]).as_py()
    return last.committed_ms if newest is None else min(int(newest), last.committed_ms)
