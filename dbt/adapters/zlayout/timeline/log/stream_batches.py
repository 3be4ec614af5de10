"""Which batches of streams a table has taken: kept in its properties, so that one that comes again changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# By the id of a streaming query the number of its last batch.
_BATCHES = "stream_batches"

Batch = tuple[str, int]


def is_taken(properties: Mapping[str, Any], batch: Batch | None) -> bool:
    """Tell whether a batch (query id, number) is in; a stream repeats what was not written to its checkpoint."""
    return batch is not None and batch[1] <= properties.get(_BATCHES, {}).get(batch[0], -1)


def with_batch(properties: Mapping[str, Any], batch: Batch | None) -> dict[str, Any]:
    """Return the properties of a version that takes a batch; None for one that takes none."""
    taken = {} if batch is None else {_BATCHES: {**properties.get(_BATCHES, {}), batch[0]: batch[1]}}
    return {**properties, **taken}


def batches_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return of a version's properties those that say which batches it has."""
    return {key: value for key, value in properties.items() if key == _BATCHES}
