"""Stream batches that a table already has: stored in its properties, so that a repeated batch changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Maps the id of a streaming query to the number of its last batch.
_BATCHES = "stream_batches"

Batch = tuple[str, int]


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
