"""Finds the version that last changed a table's rows: clustering, compaction and indexing leave them as they are."""

from __future__ import annotations

from collections.abc import Iterable

from dbt.adapters.zlayout.errors import TableNotFoundError
from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.log.entry import CommitHeader

_SAME_ROWS = frozenset(
    each.value
    for each in (
        Operation.CLUSTERING,
        Operation.COMPACTION,
        Operation.CONVERSION,
        Operation.INDEXING,
        Operation.RECOVERY,
    )
)


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
