"""Which version last changed a table's rows, and what they were made from. Clustering and indexing change no rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import TableNotFoundError
from dbt.adapters.zlayout.timeline.files.action import MOVES_ROWS, Operation
from dbt.adapters.zlayout.timeline.log.entry import CommitHeader
from dbt.adapters.zlayout.timeline.timeline import Timeline

# In the summary of a version that took a table's files as they were.
ADOPTED = "adopted"
# In the summary of a version that rewrote all rows unchanged, to put them into other folders.
REPARTITIONED = "repartitioned"
_ORIGIN = "made_from"
# In an origin: the version that a run added its rows to.
BASE = "base"
_SAME_ROWS = MOVES_ROWS | {Operation.INDEXING.value, Operation.RECOVERY.value}


def origin_summary(made_from: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the part of a version's summary that says what its rows were made from."""
    return {} if made_from is None else {_ORIGIN: dict(made_from)}


def last_origin(headers: Iterable[CommitHeader]) -> tuple[CommitHeader, Mapping[str, Any]] | None:
    """Returns the version that a model wrote last, and what it made the rows from.

    Args:
        headers: The versions, newest first. No more of them are read than needed.

    Returns:
        None if something else has changed the rows since, or while the model ran, such as a delete.
    """
    found: tuple[CommitHeader, Mapping[str, Any]] | None = None
    for header in headers:
        origin = header.summary.get(_ORIGIN)
        if not isinstance(origin, Mapping):
            if changes_rows(header):
                return None
        elif found is None:
            found = header, origin
        if found is not None:
            base = found[1].get(BASE)
            if not isinstance(base, int) or header.version <= base + 1:
                break
    return found


def changes_rows(header: CommitHeader) -> bool:
    """Returns whether a version has other rows than the version before it."""
    if header.operation in _SAME_ROWS or header.summary.get(REPARTITIONED):
        return False
    return bool(header.files_added or header.files_removed)


def row_change_after(headers: Iterable[CommitHeader], version: int) -> CommitHeader | None:
    """Returns the newest version that changed rows after another version, or None.

    Args:
        headers: The versions, newest first. None before ``version`` is read.
        version: The other version.
    """
    return next(filter(changes_rows, takewhile(lambda header: header.version > version, headers)), None)


def last_row_change(headers: Iterable[CommitHeader], subject: str) -> CommitHeader:
    """Returns the newest version that changed rows, or the oldest version if none did.

    Args:
        headers: The versions, newest first. No more of them are read than needed.
        subject: The table, for the error.

    Raises:
        TableNotFoundError: There is no version.
    """
    oldest = None
    for oldest in headers:
        if changes_rows(oldest):
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
