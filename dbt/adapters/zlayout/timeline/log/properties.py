"""Properties of a version: its row count, where files hold several versions of a row, and its stream batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot

_ROWS = "rows"
# Maps the id of a streaming query to the number of its last batch.
_BATCHES = "stream_batches"

Batch = tuple[str, int]


def row_count(snapshot: Snapshot) -> int:
    """Return the number of rows of a version."""
    counted = snapshot.properties.get(_ROWS)
    return counted if isinstance(counted, int) else snapshot.files.total_rows


def with_more_rows(properties: Mapping[str, Any], start: int, more: int) -> dict[str, Any]:
    """Return the properties after a delta commit.

    Args:
        properties: Of the previous version.
        start: Row count of an earlier version without logs; used if the properties have no count yet.
        more: Number of rows added minus rows removed.
    """
    return {**properties, _ROWS: int(properties.get(_ROWS, start)) + more}


def is_taken(properties: Mapping[str, Any], batch: Batch | None) -> bool:
    """Return whether a batch (query id, number) is in the table; streams repeat batches missing in their checkpoint."""
    return batch is not None and batch[1] <= properties.get(_BATCHES, {}).get(batch[0], -1)


def with_batch(properties: Mapping[str, Any], batch: Batch | None) -> dict[str, Any]:
    """Return the properties of a version that adds a batch; None for a version without a batch."""
    taken = {} if batch is None else {_BATCHES: {**properties.get(_BATCHES, {}), batch[0]: batch[1]}}
    return {**properties, **taken}


def batches_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a version that record its batches."""
    return {key: value for key, value in properties.items() if key == _BATCHES}
