"""How many rows a version has: of a table with logs its properties tell, as its files also hold versions of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot

_ROWS = "rows"


def row_count(snapshot: Snapshot) -> int:
    """Return how many rows a version has."""
    counted = snapshot.properties.get(_ROWS)
    return counted if isinstance(counted, int) else snapshot.files.total_rows


def with_more_rows(properties: Mapping[str, Any], start: int, more: int) -> dict[str, Any]:
    """Return the properties after a delta commit.

    Args:
        properties: Of the version that it follows.
        start: Rows of a version that is no later; it counts where nobody has counted before, and there are no logs.
        more: Rows that come, less those that go.
    """
    return {**properties, _ROWS: int(properties.get(_ROWS, start)) + more}
