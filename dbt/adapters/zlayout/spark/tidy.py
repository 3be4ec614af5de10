"""Cleaning after a commit, by what the version itself says is to be kept."""

from __future__ import annotations

import time

from dbt.adapters.zlayout.spark.table_layout import config_of
from dbt.adapters.zlayout.timeline.cleaning import clean
from dbt.adapters.zlayout.timeline.log import Timeline
from dbt.adapters.zlayout.timeline.snapshot import Snapshot


def clean_as_kept(timeline: Timeline, snapshot: Snapshot) -> None:
    """Deletes the files of versions that are past the time a table keeps them.

    Args:
        timeline: The table's timeline.
        snapshot: Its newest version.
    """
    retention = config_of(snapshot).retention
    clean(timeline, retention.versions, retention.hours, int(time.time() * 1000))
