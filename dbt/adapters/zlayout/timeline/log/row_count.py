"""Row count of a version: tables with logs store it in their properties, since files hold several row versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot

_ROWS = "rows"


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
